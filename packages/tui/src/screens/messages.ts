/**
 * A conversation as people read it, one line each: turns, what was said, and calls with their results; the chosen one is shown below or beside.
 * Scrolls through any number; follows new ones.
 */
import { formatMessageId, parseMessageId } from "@lossless/core";
import type { HeadedConversation } from "@lossless/core";
import {
  countOf,
  displayWidth,
  findFrom,
  findTurnFrom,
  formatCount,
  formatSeconds,
  parseTime,
  toOneLine,
  truncateToWidth,
} from "@lossless/core/doors";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { ChosenText, type Choosable } from "../chosen-text.ts";
import { versionOf, type Entry } from "../entries.ts";
import {
  writeOutcome,
  readEntryText,
  readTurnText,
  renderEntryText,
  renderTurnText,
  shortenPaths,
  styleEntry,
} from "../entry-text.ts";
import { describeMessage } from "../message-text.ts";
import { placeList } from "../list-cursor.ts";
import { MessageWindow } from "../message-window.ts";
import type { ListArea } from "../mouse.ts";
import { renderRow, renderSpans, span, storedSpan, type Paint, type Span } from "../paint.ts";
import { joinPanes, splitPanes } from "../panes.ts";
import { renderRowColumns } from "../row-columns.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import type { Sought } from "../sought.ts";
import type { NumberedTurn, Turns } from "../turn-book.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Enter", does: "read" },
  { keys: "{ }", does: "turn" },
  { keys: "T", does: "turns only" },
  { keys: "s", does: "graph" },
  { keys: "c", does: "context" },
  { keys: "p", does: "previous context" },
  { keys: "H", does: "housekeeping" },
  { keys: ":", does: "go to a time or id" },
  { keys: "F", does: "large files" },
  { keys: "J K", does: "scroll the text" },
  { keys: "x", does: "reasoning" },
  { keys: "t", does: "transplant" },
  { keys: "R", does: "repair" },
];

const HEAD_ROWS = 1;
/** Of every row, for the mark of the chosen one. */
const MARKER_COLUMNS = 2;
/** Longer messages are not loaded for the pane while scrolling past them; Enter opens them. */
const MAX_PANE_BYTES = 2_000_000;
/** Messages of a turn that the pane shows. */
const MAX_PANE_MESSAGES = 60;

export class MessagesScreen implements Screen {
  readonly keys = KEYS;
  conversation: HeadedConversation;
  readonly #desk: Desk;
  readonly #window: MessageWindow;
  readonly #text: ChosenText;
  readonly #startAt: number | null;
  /** The search hit in the message that was opened. */
  readonly #sought: Sought | null;
  #isOpen = false;
  #foldsReasoning = true;
  #turns: Turns | null = null;

  constructor(desk: Desk, conversation: HeadedConversation, messageId?: number, sought?: Sought) {
    const { engine, scope } = desk.archive;
    this.#desk = desk;
    this.conversation = conversation;
    this.#startAt = messageId ?? null;
    this.#sought = sought ?? null;
    this.#window = new MessageWindow(engine, scope, conversation.conversationId);
    this.#text = new ChosenText(desk);
  }

  get name(): string {
    return toOneLine(this.conversation.heading);
  }

  get area(): ListArea {
    return placeList(
      this.#window.cursor,
      this.#window.rows.length,
      splitPanes(this.#desk.size).list,
      HEAD_ROWS,
    );
  }

  /** The list is a window: the place among all messages, or all turns. */
  get position(): string | null {
    const entry = this.#window.selected;
    if (entry === undefined || this.#turns === null) return null;
    const { outline, byMessage } = this.#turns;
    const turn = this.#window.showsTurns ? this.#turnOf(entry) : undefined;
    if (turn !== undefined) return `${turn.number}/${byMessage.size}`;
    const { position, seq } = (entry.result ?? entry).row;
    let at = findFrom(outline.positions, position);
    while (outline.positions[at] === position && (outline.seqs[at] ?? seq) < seq) at += 1;
    return `${Math.min(at + 1, outline.seqs.length)}/${outline.seqs.length}`;
  }

  get #rows(): number {
    return Math.max(1, splitPanes(this.#desk.size).list.rows - HEAD_ROWS);
  }

  async load(): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const { conversationId } = this.conversation;
    this.conversation = (await engine.readConversation({ ...scope, conversationId })) ?? this.conversation;
    this.#desk.graphs.prepare(this.conversation);
    if (this.#isOpen) return this.#window.reload(this.#rows);
    this.#isOpen = true;
    // Where there is nothing else, an empty list would say that nothing is stored.
    this.#window.showsHousekeeping = this.conversation.shownMessages === 0;
    if (this.#startAt === null) await this.#window.openEnd(this.#rows);
    else await this.#goToMessage(this.#startAt);
  }

  async handle(key: Key): Promise<boolean> {
    const move = readMove(key.name, this.#rows) ?? readPageKey(key.name, this.#rows);
    if (move !== null) {
      await this.#window.move(move, this.#rows);
      return true;
    }
    if (this.#text.handle(key)) return true;
    if (key.name === ":") return this.#askWhere();
    if (key.name === "H")
      return this.#list(() => (this.#window.showsHousekeeping = !this.#window.showsHousekeeping));
    if (key.name === "T") return this.#switchTurns();
    if (key.name === "{" || key.name === "}") return this.#goToTurn(key.name === "}" ? 1 : -1);
    if (key.name === "x") {
      this.#foldsReasoning = !this.#foldsReasoning;
      this.#desk.say(this.#foldsReasoning ? "reasoning is folded" : "reasoning is shown");
      return true;
    }
    return this.#go(key.name);
  }

  /** Lists more or less, around the chosen row. */
  async #list(change: () => void): Promise<boolean> {
    change();
    await this.#window.reload(this.#rows);
    return true;
  }

  /** From a row to its turn, and back. */
  async #switchTurns(): Promise<boolean> {
    const window = this.#window;
    const { outline, byMessage } = await this.#readTurns();
    if (byMessage.size === 0) {
      this.#desk.say("nobody asked anything in this conversation: it has no turns");
      return true;
    }
    const { row } = window.selected ?? {};
    window.showsTurns = !window.showsTurns;
    const begin = row && findTurnFrom(outline, { ...row, seq: row.seq + 1 }, -1);
    if (begin) await window.openAt(begin, this.#rows);
    else await window.openStart(this.#rows);
    return true;
  }

  async #goToTurn(by: 1 | -1): Promise<boolean> {
    const { row } = this.#window.selected ?? {};
    if (row === undefined || this.#window.chooseTurn(by, this.#rows)) return true;
    const { outline } = await this.#readTurns();
    const begin = findTurnFrom(outline, row, by);
    if (begin) await this.#window.openAt(begin, this.#rows);
    else this.#desk.say(by > 0 ? "this is the last turn" : "this is the first turn");
    return true;
  }

  async #readTurns(): Promise<Turns> {
    this.#turns = await this.#desk.turns.read(this.conversation);
    return this.#turns;
  }

  #turnOf(entry: Entry | undefined): NumberedTurn | undefined {
    return entry && this.#turns?.byMessage.get(entry.row.messageId);
  }

  async #go(name: string): Promise<boolean> {
    const { go } = this.#desk;
    const entry = this.#window.selected;
    if (isOpen(name)) {
      if (entry === undefined) return false;
      return this.#isTurn(entry) ? go.turn(entry, this.conversation) : go.entry(entry, this.#soughtIn(entry));
    }
    if (name === "s") return go.graph(this.conversation);
    if (name === "c") return go.context(this.conversation);
    if (name === "p") return go.previousContext(this.conversation, null);
    if (name === "P") return go.contextBefore(this.conversation, null);
    if (name === "F" || name === "f") return go.files(this.conversation);
    if (name === "t") return go.transplant(this.conversation);
    return name === "R" && go.repair(this.conversation);
  }

  /** Whether the whole turn is shown for it. */
  #isTurn({ kind, row }: Entry): boolean {
    return kind === "turn" || (this.#window.showsTurns && row.role === "user");
  }

  #soughtIn(entry: Entry | undefined): Sought | null {
    if (entry === undefined || this.#startAt === null) return null;
    const rows = [entry.row, ...(entry.result === null ? [] : [entry.result.row])];
    const isIt = rows.some((row) => row.messageId === this.#startAt || versionOf(row) === this.#startAt);
    return isIt ? this.#sought : null;
  }

  #askWhere(): boolean {
    this.#desk.ask({
      label: "go to (msg_12, 2026-02-21, yesterday, 3h)",
      onDone: async (text) => {
        if (text !== null && text.trim() !== "") await this.#goTo(text.trim());
      },
    });
    return true;
  }

  async #goTo(text: string): Promise<void> {
    const id = parseMessageId(text);
    if (id !== null) return this.#goToMessage(id);
    const { timezone } = this.#desk;
    const at = parseTime(text, { now: this.#desk.now(), timezone, option: "the time" });
    await this.#window.openTime(at, this.#rows);
  }

  async #goToMessage(messageId: number): Promise<void> {
    const { engine, scope } = this.#desk.archive;
    const message = await engine.readMessage({ ...scope, messageId });
    const isHere = message?.row.conversationId === this.conversation.conversationId;
    if (message === null || !isHere) {
      this.#desk.say(`${formatMessageId(messageId)} is not in this conversation`);
      if (this.#window.rows.length === 0) await this.#window.openEnd(this.#rows);
      return;
    }
    await this.#window.openAt(message.row, this.#rows);
  }

  /** The text of the chosen row, and the sizes of the turns. */
  async settle(): Promise<void> {
    await Promise.all([this.#text.read(this.#toChoosable(this.#window.selected)), this.#readTurns()]);
  }

  render(size: Size, paint: Paint): string[] {
    const panes = splitPanes(size);
    const rows = Math.max(1, panes.list.rows - HEAD_ROWS);
    this.#window.keep(rows);
    const { columns } = panes.list;
    const { top, selected } = this.#window.cursor;
    const lines = this.#window.rows.slice(top, top + rows).map((row, at) =>
      renderRow(this.#renderCells(row, top + at, columns, paint), {
        columns,
        isSelected: top + at === selected,
        paint,
      }),
    );
    const entry = this.#window.selected;
    return joinPanes(
      panes,
      {
        list: [this.#renderHead(columns, paint), ...lines],
        title: this.#describe(entry),
        detail: this.#text.render(this.#toChoosable(entry), panes.detail, paint, this.#soughtIn(entry)),
      },
      paint,
    );
  }

  #renderHead(columns: number, paint: Paint): string {
    const { messages, summaries, shownTokens } = this.conversation;
    const facts = `${countOf(messages, "message")}, ${countOf(summaries, "summary", "summaries")}, ${formatCount(shownTokens)} tokens in context`;
    const follow = this.#window.isFollowing ? "; following" : "";
    const all = this.#window.showsHousekeeping ? "; with housekeeping" : "";
    return renderSpans([span(`  ${facts}${follow}${all}`, paint.faint)], columns);
  }

  #describe(entry: Entry | undefined): string {
    if (entry === undefined) return "no messages";
    const turn = this.#isTurn(entry) ? this.#turnOf(entry) : undefined;
    if (turn !== undefined)
      return `turn ${formatCount(turn.number)} · ${countOf(turn.messages, "message")} · ${formatCount(turn.tokens)} tokens${describeTime(turn, " · ")}`;
    return describeMessage({ row: entry.row, result: entry.result?.row ?? null }, this.#desk.timezone);
  }

  #renderCells(entry: Entry, at: number, columns: number, paint: Paint): Span[] {
    const { row, kind } = entry;
    const { top, selected } = this.#window.cursor;
    const above = at === top || at === selected ? undefined : this.#window.rows[at - 1];
    const turn = this.#isTurn(entry) ? this.#turnOf(entry) : undefined;
    const who = kind === "turn" ? `turn ${turn?.number ?? ""}` : kind === "call" ? "tool" : row.role;
    const facts = renderRowColumns(
      {
        at: row.createdAt,
        above: above?.row.createdAt ?? null,
        who,
        role: kind === "turn" ? "turn" : who,
        tokens: turn?.tokens ?? entry.tokens,
      },
      columns,
      this.#desk.timezone,
      paint,
    );
    if (kind === "turn") return [...facts, span(describeTurn(turn), paint.faint)];
    const before = [...facts, ...renderMarks(entry, paint)];
    const room = columns - MARKER_COLUMNS - before.reduce((sum, { text }) => sum + displayWidth(text), 0);
    return [...before, ...renderEntry(entry, { room, project: this.conversation.project }, paint)];
  }

  #toChoosable(entry: Entry | undefined): Choosable | null {
    if (entry === undefined) return null;
    const { engine, scope } = this.#desk.archive;
    const { row, result, ordinals } = entry;
    const isTurn = this.#isTurn(entry);
    const isLong = row.arrivalBytes + (result?.row.arrivalBytes ?? 0) > MAX_PANE_BYTES && !isTurn;
    const foldsReasoning = this.#foldsReasoning;
    const { project } = this.conversation;
    const read = isTurn
      ? async () => {
          const request = { request: row, project, maxMessages: MAX_PANE_MESSAGES };
          const texts = await readTurnText(engine, scope, request);
          return (paint: Paint) => renderTurnText(texts, paint, { foldsReasoning });
        }
      : async () => {
          const texts = await readEntryText(engine, scope, entry);
          return (paint: Paint) => renderEntryText(texts, paint, { foldsReasoning });
        };
    const what = [isTurn, foldsReasoning, result === null ? null : versionOf(result.row)];
    return {
      id: [versionOf(row), ordinals?.[0], ...what].join(" "),
      messageId: null,
      summaryId: null,
      ...(isLong ? {} : { read }),
      reason: "This message is very long. Enter opens it.",
    };
  }
}

const describeTime = ({ tookMs }: NumberedTurn, before: string): string =>
  tookMs > 0 ? `${before}${formatSeconds(tookMs)}` : "";

const describeTurn = (turn: NumberedTurn | undefined): string =>
  turn === undefined ? "…" : `${countOf(turn.messages, "message")}${describeTime(turn, ", ")}`;

function renderMarks({ row }: Entry, paint: Paint): Span[] {
  const marks = [
    ...(row.forgottenAt === null ? [] : ["forgotten"]),
    ...(row.newest === null ? [] : ["changed"]),
    ...row.hidden,
  ];
  return marks.length === 0 ? [] : [span(`[${marks.join(", ")}] `, paint.warning)];
}

/** Enough to see what came back, and what the call acts on. */
const OUTCOME_COLUMNS = 20;
const TARGET_COLUMNS = 12;

/** What it begins with has the colour of its type. A card ends with what came back: what the call acts on is cut for it. */
function renderEntry(
  entry: Entry,
  { room, project }: { readonly room: number; readonly project: string | null },
  paint: Paint,
): Span[] {
  const { row, kind, line, result } = entry;
  const head = toOneLine(entry.head) + (entry.head === "" || line === "" ? "" : " ");
  if (row.hidden.length > 0 || kind === "reasoning") return [storedSpan(head + line, paint.faint)];
  const outcome = toOneLine(writeOutcome(entry));
  const kept = Math.min(displayWidth(outcome), OUTCOME_COLUMNS);
  const target = toOneLine(kind === "call" ? shortenPaths(line, project) : line);
  return [
    span(head, styleEntry(entry, paint)),
    span(cutTarget(target, Math.max(TARGET_COLUMNS, room - displayWidth(head) - kept))),
    span(outcome, result?.isError === true ? paint.bad : paint.faint),
  ];
}

/** The end of a path says more than its beginning. */
function cutTarget(target: string, columns: number): string {
  const isPath = /^[\w~.-]*\/\S*$/.test(target);
  if (!isPath || displayWidth(target) <= columns) return truncateToWidth(target, columns);
  return `…${target.slice(1 - columns)}`;
}

/** Older and newer, with the keys of earlier programs. */
function readPageKey(name: string, rows: number): ReturnType<typeof readMove> {
  if (name === "[") return readMove("pageUp", rows);
  return name === "]" ? readMove("pageDown", rows) : null;
}
