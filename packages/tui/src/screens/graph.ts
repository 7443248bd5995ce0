/** The summaries of a conversation as a tree from the highest depth down to the messages, and the text of the chosen one. */
import { formatMessageId } from "@lossless/core";
import type { HeadedConversation } from "@lossless/core";
import { countOf, formatCount, formatSpan, toOneLine } from "@lossless/core/doors";
import { ChosenText, type Choosable } from "../chosen-text.ts";
import { drawGraph, listAbove, type GraphLine, type GraphNode } from "../graph-lines.ts";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, type Paint, type Span } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import { Previews, renderPreview } from "../previews.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import type { Sought } from "../sought.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter → l", does: "expand, open a message" },
  { keys: "← h", does: "collapse" },
  { keys: "d", does: "dissolve" },
  { keys: "r", does: "rewrite" },
  { keys: "R", does: "repair" },
  { keys: "c", does: "context" },
  { keys: "p", does: "previous context" },
  { keys: "P", does: "the context before it" },
  { keys: "J K", does: "scroll the text" },
  { keys: "e", does: "expand all" },
  { keys: "x", does: "show replaced ones" },
  { keys: "m", does: "messages here" },
];

const HEAD_ROWS = 1;
/** Expanding everything draws no more than this. */
const MAX_OPEN = 20_000;

export class GraphScreen implements Screen {
  readonly keys = KEYS;
  readonly conversation: HeadedConversation;
  readonly #desk: Desk;
  readonly #previews: Previews;
  readonly #text: ChosenText;
  readonly #open = new Set<string>();
  readonly #messages = new Map<string, readonly number[]>();
  #wanted: string | null;
  /** The summary that a search found, and the hit. */
  readonly #found: { readonly summaryId: string; readonly sought: Sought } | null;
  #withRetired = false;
  #nodes: ReadonlyMap<string, GraphNode> = new Map();
  #counts: ReadonlyMap<GraphNode["state"], number> = new Map();
  #lines: readonly GraphLine[] = [];
  #cursor: ListCursor = LIST_START;

  constructor(desk: Desk, conversation: HeadedConversation, summaryId?: string, sought?: Sought) {
    this.#desk = desk;
    this.conversation = conversation;
    this.#wanted = summaryId ?? null;
    this.#found = summaryId === undefined || sought === undefined ? null : { summaryId, sought };
    this.#previews = new Previews(desk.archive.engine, desk.archive.scope);
    this.#text = new ChosenText(desk);
  }

  get name(): string {
    return `graph of ${this.conversation.heading}`;
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#lines.length, splitPanes(this.#desk.size).list, HEAD_ROWS);
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size).list.rows - HEAD_ROWS);
  }

  get #selected(): GraphLine | undefined {
    return this.#lines[this.#cursor.selected];
  }

  async load(): Promise<void> {
    this.#nodes = await this.#desk.graphs.read(this.conversation.conversationId);
    this.#counts = countStates(this.#nodes);
    this.#text.forget();
    if (this.#wanted !== null) {
      if (this.#nodes.get(this.#wanted)?.state === "retired") this.#withRetired = true;
      for (const id of listAbove(this.#nodes, this.#wanted)) this.#open.add(id);
    }
    this.#draw();
    if (this.#wanted !== null) this.#choose(this.#wanted);
    this.#wanted = null;
  }

  /** Rebuilds the lines; the chosen one stays chosen if it still exists. */
  #draw(): void {
    const chosen = this.#selected;
    this.#lines = drawGraph({
      nodes: this.#nodes,
      open: this.#open,
      messages: this.#messages,
      withRetired: this.#withRetired,
    });
    this.#cursor = keepInList(this.#cursor, this.#lines.length, this.#rows);
    if (chosen !== undefined) this.#choose(nameOf(chosen));
  }

  #choose(name: string): void {
    const at = this.#lines.findIndex((line) => nameOf(line) === name);
    if (at >= 0) this.#cursor = keepInList({ ...this.#cursor, selected: at }, this.#lines.length, this.#rows);
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#lines.length, this.#rows);
      return true;
    }
    if (this.#text.handle(key)) return true;
    return (await this.#fold(key.name)) || this.#go(key.name);
  }

  async #fold(name: string): Promise<boolean> {
    const line = this.#selected;
    if (name === "e") return this.#expandAll();
    if (name === "x") {
      this.#withRetired = !this.#withRetired;
      this.#draw();
      return true;
    }
    if (line === undefined) return false;
    if (name === "left" || name === "h") return this.#collapse(line);
    if (line.kind === "message") return isOpen(name) && this.#desk.go.message(line.messageId);
    if (!isOpen(name) && name !== "space") return false;
    if (line.isOpen && name !== "right" && name !== "l") return this.#collapse(line);
    return this.#expand(line.node);
  }

  async #expand(node: GraphNode): Promise<boolean> {
    const { engine, scope } = this.#desk.archive;
    if (node.kind === "leaf" && !this.#messages.has(node.summaryId)) {
      const read = await engine.readSummary({ ...scope, summaryId: node.summaryId });
      this.#messages.set(node.summaryId, read?.messageIds ?? []);
    }
    this.#open.add(node.summaryId);
    this.#draw();
    return true;
  }

  /** Collapses it, or goes to its parent; at the top, back. */
  #collapse(line: GraphLine): boolean {
    if (line.kind === "summary" && line.isOpen) {
      this.#open.delete(line.node.summaryId);
      this.#messages.delete(line.node.summaryId);
      this.#draw();
      return true;
    }
    const above = this.#lines.findLastIndex(
      (some, at) => at < this.#cursor.selected && some.level < line.level,
    );
    if (line.level === 0 || above < 0) return false;
    this.#cursor = keepInList({ ...this.#cursor, selected: above }, this.#lines.length, this.#rows);
    return true;
  }

  #expandAll(): boolean {
    const condensed = [...this.#nodes.values()].filter(({ kind }) => kind === "condensed");
    const isAllOpen = condensed.every(({ summaryId }) => this.#open.has(summaryId));
    this.#open.clear();
    if (!isAllOpen) for (const { summaryId } of condensed.slice(0, MAX_OPEN)) this.#open.add(summaryId);
    this.#draw();
    return true;
  }

  async #go(name: string): Promise<boolean> {
    const { go } = this.#desk;
    const { conversation } = this;
    const line = this.#selected;
    if (name === "c") return go.context(conversation);
    if (name === "R") return go.repair(conversation);
    if (name === "F" || name === "f") return go.files(conversation);
    if (name === "t") return go.transplant(conversation);
    if (line === undefined) return false;
    const node = line.kind === "summary" ? line.node : line.parent;
    if (name === "d") return go.dissolve(conversation, node.summaryId);
    if (name === "r" || name === "w") return go.rewrite(conversation, node.summaryId);
    if (name === "p") return go.previousContext(conversation, node.summaryId);
    if (name === "P") return go.contextBefore(conversation, node.summaryId);
    return name === "m" && this.#openMessages(line, node);
  }

  async #openMessages(line: GraphLine, node: GraphNode): Promise<boolean> {
    const { archive, go } = this.#desk;
    if (line.kind === "message") return go.messages(this.conversation, line.messageId);
    const [first] = await findFirstMessages(archive, node);
    return go.messages(this.conversation, first);
  }

  async settle(): Promise<void> {
    const { top } = this.#cursor;
    const seen = this.#lines.slice(top, top + this.#rows);
    const ids = seen.map((line) => (line.kind === "message" ? line.messageId : line.node.summaryId));
    const isSeen = (): boolean => this.#cursor.top === top;
    await Promise.all([this.#previews.read(ids, isSeen), this.#text.read(toChoosable(this.#selected))]);
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const { columns } = panes.list;
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#lines.length, rows);
    const { top, selected } = this.#cursor;
    const lines = this.#lines
      .slice(top, top + rows)
      .map((line, at) =>
        renderRow(this.#renderLine(line, paint), { columns, isSelected: top + at === selected, paint }),
      );
    const chosen = toChoosable(this.#selected);
    const isFound = this.#found !== null && chosen?.summaryId === this.#found.summaryId;
    const empty = paint.faint("  Nothing is folded yet: every message is in the context in full.");
    return joinPanes(
      panes,
      {
        list: [this.#renderHead(columns, paint), ...(lines.length === 0 ? [empty] : lines)],
        title: this.#describeShown(),
        detail: this.#text.render(chosen, panes.detail, paint, isFound ? this.#found.sought : null),
      },
      paint,
    );
  }

  #renderHead(columns: number, paint: Paint): string {
    const count = (state: GraphNode["state"]): number => this.#counts.get(state) ?? 0;
    const retired = this.#withRetired ? `, ${formatCount(count("retired"))} replaced` : "";
    const text = `  ${countOf(count("cover"), "summary", "summaries")} in the fold, ${countOf(count("reserve"), "stand-in")}${retired}`;
    return renderSpans([span(text, paint.faint)], columns);
  }

  #renderLine(line: GraphLine, paint: Paint): Span[] {
    if (line.kind === "message") {
      return [
        span(line.prefix, paint.faint),
        span(`${formatMessageId(line.messageId)}  `, paint.name),
        ...renderPreview(this.#previews.get(line.messageId), false, paint),
      ];
    }
    const { node, prefix, sourcesAbove } = line;
    const sign = line.isOpen ? "− " : "+ ";
    return [
      span(prefix, paint.faint),
      span(sign, paint.match),
      span(`d${node.depth} `, paint.title),
      cell(`${formatCount(node.messages)} msg`, 9, { right: true, style: paint.faint }),
      cell(`${formatCount(node.tokens)} tok`, 11, { right: true, style: paint.faint }),
      span(`  ${formatSpan(node.earliestAt, node.latestAt, this.#desk.timezone)}`),
      ...describeState(node).map((word) => span(`  ${word}`, paint.warning)),
      ...(sourcesAbove > 0 ? [span(`  ${countOf(sourcesAbove, "source")} above`, paint.faint)] : []),
      span("  "),
      // The id is in the title of the text.
      ...renderPreview(this.#previews.get(node.summaryId), false, paint),
    ];
  }

  #describeShown(): string {
    const line = this.#selected;
    if (line === undefined) return "";
    return line.kind === "summary"
      ? describeSummary(line.node, this.#desk.timezone)
      : formatMessageId(line.messageId);
  }
}

function countStates(nodes: ReadonlyMap<string, GraphNode>): Map<GraphNode["state"], number> {
  const counts = new Map<GraphNode["state"], number>();
  for (const { state } of nodes.values()) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

function toChoosable(line: GraphLine | undefined): Choosable | null {
  if (line === undefined) return null;
  const isMessage = line.kind === "message";
  return {
    id: nameOf(line),
    messageId: isMessage ? line.messageId : null,
    summaryId: isMessage ? null : line.node.summaryId,
    reason: "",
  };
}

const nameOf = (line: GraphLine): string =>
  line.kind === "summary" ? line.node.summaryId : `${line.parent.summaryId}/${line.messageId}`;

function describeState({ state, isRoot, isStale }: GraphNode): string[] {
  return [
    ...(isRoot ? ["root"] : []),
    ...(state === "reserve" && !isRoot ? ["stand-in"] : []),
    ...(state === "prepared" ? ["prepared"] : []),
    ...(state === "retired" ? ["replaced"] : []),
    ...(isStale ? ["stale"] : []),
  ];
}

function describeSummary(node: GraphNode, timezone: string): string {
  const facts = [
    node.summaryId,
    `${node.kind} d${node.depth}`,
    `${formatCount(node.tokens)} tokens for ${formatCount(node.sourceTokens)}`,
    formatSpan(node.earliestAt, node.latestAt, timezone),
    toOneLine(node.model),
  ];
  return facts.join(" · ");
}

/** Down the first sources to a leaf. */
async function findFirstMessages(
  { engine, scope }: Desk["archive"],
  node: GraphNode,
): Promise<readonly number[]> {
  let summary = await engine.readSummary({ ...scope, summaryId: node.summaryId });
  while (summary !== null && summary.messageIds.length === 0) {
    const [summaryId] = summary.sourceIds;
    summary = summaryId === undefined ? null : await engine.readSummary({ ...scope, summaryId });
  }
  return summary?.messageIds ?? [];
}
