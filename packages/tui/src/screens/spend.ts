/** Model usage by day, model, purpose or conversation, with a bar each, and the remaining caps. */
import {
  countOf,
  describeCaps,
  formatCount,
  GROUPINGS,
  type Ledger,
  readLedger,
  renderBar,
  toOneLine,
} from "@lossless/core/doors";
import { EngineError } from "@lossless/core";
import { isOpen, readMove, type Key, type KeyHelp } from "../keys.ts";
import { keepInList, LIST_START, moveInList, placeList, type ListCursor } from "../list-cursor.ts";
import type { ListArea } from "../mouse.ts";
import { cell, renderRow, renderSpans, span, storedSpan, type Paint } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";

const KEYS: readonly KeyHelp[] = [
  { keys: "Tab", does: "by day, conversation, model, purpose" },
  { keys: "+ -", does: "longer, shorter time" },
  { keys: "Enter", does: "the conversation" },
];
const PERIODS_DAYS = [1, 7, 30, 90, 365, 3650] as const;
const DAY_MS = 86_400_000;
const BAR = 20;
/** An empty line and the titles. */
const GAP_ROWS = 2;

export class SpendScreen implements Screen {
  readonly name = "spend";
  readonly keys = KEYS;
  readonly #desk: Desk;
  #by: (typeof GROUPINGS)[number] = "day";
  #period = 2;
  #ledger: Ledger | null = null;
  #cursor: ListCursor = LIST_START;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get #days(): number {
    return PERIODS_DAYS[this.#period] ?? 30;
  }

  get #groups(): Ledger["groups"] {
    return this.#ledger?.groups ?? [];
  }

  /** The lines above the rows: the sums, the caps, and after a gap the titles. */
  get #facts(): readonly (readonly [string, string])[] {
    if (this.#ledger === null) return [];
    const { calls, inputTokens, outputTokens } = this.#ledger.total;
    const total = `${countOf(calls, "call")} in ${countOf(this.#days, "day")}: ${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`;
    return [["Total", total], ...describeCaps(this.#ledger, this.#desk.timezone, (text) => text)];
  }

  get #headRows(): number {
    return this.#facts.length + GAP_ROWS;
  }

  get #rows(): number {
    return Math.max(1, this.#desk.size.rows - this.#headRows);
  }

  get area(): ListArea {
    return placeList(this.#cursor, this.#groups.length, this.#desk.size, this.#headRows);
  }

  async load(): Promise<void> {
    const { engine, settings, scope } = this.#desk.archive;
    if (scope.owner !== undefined)
      throw new EngineError(
        "usage",
        "cannot show what one owner has spent: the ledger is kept for the whole archive",
      );
    const now = this.#desk.now();
    this.#ledger = await readLedger(engine, settings, {
      since: now - this.#days * DAY_MS,
      now,
      by: this.#by,
    });
  }

  async handle({ name }: Key): Promise<boolean> {
    const move = readMove(name, this.#rows);
    if (move !== null) {
      this.#cursor = moveInList(this.#cursor, move, this.#groups.length, this.#rows);
      return true;
    }
    if (isOpen(name)) return this.#open();
    if (name === "tab") this.#by = GROUPINGS[(GROUPINGS.indexOf(this.#by) + 1) % GROUPINGS.length] ?? "day";
    else if (name === "+" || name === "=") this.#period = Math.min(PERIODS_DAYS.length - 1, this.#period + 1);
    else if (name === "-") this.#period = Math.max(0, this.#period - 1);
    else return false;
    this.#cursor = LIST_START;
    await this.load();
    return true;
  }

  async #open(): Promise<boolean> {
    const key = this.#groups[this.#cursor.selected]?.key;
    if (key === undefined) return true;
    const conversationId = this.#by === "conversation" ? Number(key) : Number.NaN;
    const conversation = Number.isSafeInteger(conversationId)
      ? await this.#desk.archive.engine.readConversation({ conversationId })
      : null;
    if (conversation !== null) return this.#desk.go.messages(conversation);
    this.#desk.say("only a conversation can be opened: Tab shows spend by conversation");
    return true;
  }

  render({ columns, rows }: Size, paint: Paint): string[] {
    const ledger = this.#ledger;
    if (ledger === null) return [];
    const head = this.#facts.map(([name, says]) =>
      renderSpans([span("  "), cell(name, 8, { style: paint.faint }), storedSpan(says)], columns),
    );
    head.push("");
    const titles = renderSpans(
      [
        span("  "),
        cell(this.#by.toUpperCase(), 34, { style: paint.faint }),
        span("   CALLS  TOKENS IN       OUT", paint.faint),
      ],
      columns,
    );
    const room = Math.max(1, rows - this.#headRows);
    this.#cursor = keepInList(this.#cursor, ledger.groups.length, room);
    const { top, selected } = this.#cursor;
    const largest = Math.max(1, ...ledger.groups.map((group) => group.inputTokens + group.outputTokens));
    const lines = ledger.groups
      .slice(top, top + room)
      .map((group, at) =>
        renderRow(
          [
            cell(toOneLine(group.key), 34, { style: paint.name }),
            cell(formatCount(group.calls), 8, { right: true }),
            cell(formatCount(group.inputTokens), 11, { right: true }),
            cell(formatCount(group.outputTokens), 10, { right: true }),
            span("  "),
            span(renderBar((group.inputTokens + group.outputTokens) / largest, BAR), paint.good),
          ],
          { columns, isSelected: top + at === selected, paint },
        ),
      );
    const empty = renderSpans([span("  No model was called in this time.", paint.faint)], columns);
    return [...head, titles, ...(lines.length === 0 ? [empty] : lines)];
  }
}
