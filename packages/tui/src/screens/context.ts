/**
 * The context a model gets for a budget: its items in order, a bar of tokens for each, and why it is there. Also the former context of a
 * summary.
 */
import { EngineError } from "@lossless/core";
import type { AssembledContext, HeadedConversation, DissolveResult } from "@lossless/core";
import {
  countOf,
  formatCount,
  formatShare,
  formatSpan,
  MODES,
  readTokenCount,
  renderBar,
  TOKEN_COUNT_RULE,
} from "@lossless/core/doors";
import { ChosenText } from "../chosen-text.ts";
import { listContextLines, putBack, type ContextLine } from "../context-lines.ts";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, type Paint, type Span, type Style } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import { Previews, renderPreview, type PreviewId } from "../previews.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { findNewest } from "./previous.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "open" },
  { keys: "+ -", does: "double, halve the budget" },
  { keys: "b", does: "set the budget" },
  { keys: "s", does: "graph" },
  { keys: "p", does: "previous context" },
  { keys: "P", does: "the context before it" },
  { keys: "d", does: "dissolve" },
  { keys: "r", does: "rewrite" },
  { keys: "R", does: "repair" },
  { keys: "J K", does: "scroll the text" },
];

export const DEFAULT_BUDGET = 32_000;
const MIN_BUDGET = 500;
const MAX_BUDGET = 10_000_000;
const HEAD_ROWS = 2;
/** Below this there is no room for bars. */
const NARROW_COLUMNS = 60;
const BAR = 6;
/** The words need room: a narrower terminal has the text below. */
const WIDE_COLUMNS = 160;

/** Null: the current context. Otherwise the former context of this summary, or of the newest one. */
export interface Before {
  readonly summaryId: string | null;
}

export class ContextScreen implements Screen {
  readonly keys = KEYS;
  readonly conversation: HeadedConversation;
  readonly #desk: Desk;
  readonly #before: Before | null;
  readonly #text: ChosenText;
  readonly #previews: Previews;
  #budget: number;
  #context: AssembledContext | null = null;
  #report: DissolveResult | null = null;
  #note = "";
  #lines: readonly ContextLine[] = [];
  #cursor: ListCursor = LIST_START;
  #isOpen = false;

  constructor(desk: Desk, conversation: HeadedConversation, before: Before | null, budget = DEFAULT_BUDGET) {
    this.#desk = desk;
    this.conversation = conversation;
    this.#before = before;
    this.#budget = budget;
    this.#text = new ChosenText(desk);
    this.#previews = new Previews(desk.archive.engine, desk.archive.scope);
  }

  get name(): string {
    return `${this.#before === null ? "context" : "former context"} of ${this.conversation.heading}`;
  }

  get area(): ListArea {
    return placeList(
      this.#cursor,
      this.#lines.length,
      splitPanes(this.#desk.size, WIDE_COLUMNS).list,
      HEAD_ROWS,
    );
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size, WIDE_COLUMNS).list.rows - HEAD_ROWS);
  }

  get #selected(): ContextLine | undefined {
    return this.#lines[this.#cursor.selected];
  }

  async load(): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const { conversationId } = this.conversation;
    const wasAtEnd = !this.#isOpen || this.#cursor.selected >= this.#lines.length - 1;
    const chosen = this.#selected?.id;
    this.#context = await engine.assemble({ ...scope, conversationId, budgetTokens: this.#budget });
    if (this.#context === null)
      throw new EngineError("not_found", `cannot find conversation ${conversationId}`);
    this.#lines = listContextLines(this.#context);
    if (this.#before !== null) await this.#goBackInTime(this.#before, this.#context);
    const at = this.#lines.findIndex(({ id }) => id === chosen);
    const former = this.#lines.findIndex((line) => line.isFormer);
    const start = this.#before !== null && !this.#isOpen ? Math.max(0, former) : this.#lines.length - 1;
    const selected = !wasAtEnd && at >= 0 ? at : start;
    this.#cursor = keepInList({ ...this.#cursor, selected }, this.#lines.length, this.#rows);
    this.#isOpen = true;
  }

  async #goBackInTime({ summaryId }: Before, { items }: AssembledContext): Promise<void> {
    const { engine } = this.#desk.archive;
    const id = summaryId ?? (await this.#findNewest(items.flatMap((item) => item.summaryId ?? [])));
    this.#report = id === null ? null : await engine.dissolveSummary({ summaryId: id, dryRun: true });
    if (id === null)
      this.#note = "this context shows no summary; press - to halve the budget and see folded parts";
    else if (this.#report === null) this.#note = `${id} is not in the context: choose the summary above it`;
    else {
      const { tokensBefore, tokensAfter, sources } = this.#report;
      this.#note = `before ${id} was made: ${countOf(sources.length, "item")} with ${formatCount(tokensAfter)} tokens instead of ${formatCount(tokensBefore)}`;
      this.#lines = putBack(this.#lines, this.#report);
    }
  }

  async #findNewest(ids: readonly string[]): Promise<string | null> {
    const nodes = await this.#desk.graphs.read(this.conversation.conversationId);
    return findNewest(ids.flatMap((id) => nodes.get(id) ?? []));
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#lines.length, this.#rows);
      return true;
    }
    if (this.#text.handle(key)) return true;
    if (key.name === "+" || key.name === "=") return this.#setBudget(this.#budget * 2);
    if (key.name === "-") return this.#setBudget(Math.round(this.#budget / 2));
    if (key.name === "b") return this.#askBudget();
    return this.#go(key.name);
  }

  async #go(name: string): Promise<boolean> {
    const { go } = this.#desk;
    const { conversation } = this;
    const line = this.#selected;
    if (name === "R") return go.repair(conversation);
    if (name === "t") return go.transplant(conversation);
    if (name === "F" || name === "f") return go.files(conversation);
    const summaryId = line?.summaryId ?? undefined;
    if (name === "s") return go.graph(conversation, summaryId);
    if (name === "p") return go.previousContext(conversation, summaryId ?? null);
    if (name === "P") return go.contextBefore(conversation, summaryId ?? null);
    if (isOpen(name)) {
      if (summaryId !== undefined) return go.graph(conversation, summaryId);
      return typeof line?.messageId === "number" && go.message(line.messageId);
    }
    if (summaryId === undefined) return false;
    if (name === "d") return go.dissolve(conversation, summaryId);
    return (name === "r" || name === "w") && go.rewrite(conversation, summaryId);
  }

  async #setBudget(tokens: number): Promise<boolean> {
    this.#budget = Math.max(MIN_BUDGET, Math.min(MAX_BUDGET, tokens));
    await this.load();
    return true;
  }

  #askBudget(): boolean {
    this.#desk.ask({
      label: "budget in tokens (32k)",
      onDone: async (text) => {
        if (text === null || text.trim() === "") return;
        const tokens = readTokenCount(text);
        if (tokens === null) return this.#desk.say(TOKEN_COUNT_RULE);
        await this.#setBudget(tokens);
      },
    });
    return true;
  }

  async settle(): Promise<void> {
    const { top } = this.#cursor;
    const ids = this.#lines.slice(top, top + this.#rows).flatMap((line) => previewIdOf(line) ?? []);
    const isSeen = (): boolean => this.#cursor.top === top;
    await Promise.all([this.#previews.read(ids, isSeen), this.#text.read(this.#selected ?? null)]);
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size, WIDE_COLUMNS);
    const { columns } = panes.list;
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#cursor = keepInList(this.#cursor, this.#lines.length, rows);
    const { top, selected } = this.#cursor;
    const largest = Math.max(1, ...this.#lines.map(({ tokens }) => tokens));
    const lines = this.#lines.slice(top, top + rows).map((line, at) =>
      renderRow([...renderFacts(line, largest, columns, paint), ...this.#renderWords(line, paint)], {
        columns,
        isSelected: top + at === selected,
        paint,
      }),
    );
    const line = this.#selected;
    return joinPanes(
      panes,
      {
        list: [...this.#renderHead(columns, paint), ...lines],
        title: line === undefined ? "nothing" : this.#describe(line),
        detail: this.#text.render(line ?? null, panes.detail, paint),
      },
      paint,
    );
  }

  /** A line for a range has no words of its own. */
  #renderWords(line: ContextLine, paint: Paint): Span[] {
    const id = previewIdOf(line);
    if (id === null || line.kind === "range") return [span(line.reason, paint.faint)];
    return renderPreview(this.#previews.get(id), false, paint);
  }

  #describe({ id, reason, earliestAt, latestAt }: ContextLine): string {
    const when = earliestAt === null ? [] : [formatSpan(earliestAt, latestAt, this.#desk.timezone)];
    return [id, ...when, reason].join(" · ");
  }

  #renderHead(columns: number, paint: Paint): string[] {
    const context = this.#context;
    if (context === null) return ["", ""];
    const { estimatedTokens, budgetTokens, mode, shownMessages } = context;
    const share = Math.min(1, estimatedTokens / budgetTokens);
    const first = [
      span("  "),
      span(renderBar(share, 20), paint.good),
      span(
        ` ${formatCount(estimatedTokens)} of ${formatCount(budgetTokens)} tokens (${formatShare(estimatedTokens, budgetTokens)})`,
      ),
      span(
        `  ${countOf(context.items.length, "item")} for ${countOf(shownMessages, "message")}`,
        paint.faint,
      ),
    ];
    const second = this.#before === null ? `  ${MODES[mode]}` : `  ${this.#note}`;
    return [renderSpans(first, columns), renderSpans([span(second, paint.faint)], columns)];
  }
}

const KIND_STYLE = (paint: Paint, { kind, label }: ContextLine): Style =>
  kind === "summary" ? paint.name : kind === "message" ? paint.role(label) : paint.warning;

const previewIdOf = ({ messageId, summaryId }: ContextLine): PreviewId | null => summaryId ?? messageId;

/** What it is, what it costs, and for how many messages; the id and the reason are in the title of the text. */
function renderFacts(line: ContextLine, largest: number, columns: number, paint: Paint): Span[] {
  const style = KIND_STYLE(paint, line);
  if (columns < NARROW_COLUMNS)
    return [cell(line.label, 10, { style }), cell(formatCount(line.tokens), 7, { right: true }), span("  ")];
  return [
    span(line.isFormer ? "◂ " : "  ", paint.warning),
    cell(line.label, 10, { style }),
    cell(formatCount(line.tokens), 8, { right: true }),
    span(" "),
    span(renderBar(line.tokens / largest, BAR), style),
    cell(line.messages === null || line.messages === 1 ? "" : `${formatCount(line.messages)} msg`, 10, {
      right: true,
      style: paint.faint,
    }),
    span("  "),
  ];
}
