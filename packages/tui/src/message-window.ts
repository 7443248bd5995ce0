/**
 * The messages of a conversation as a sliding window: a bounded number of them around the chosen one, loaded by key while scrolling, and the
 * entries that they are read as. A conversation of a hundred thousand messages takes no more memory than one of a thousand, and a jump does not
 * load what is in between.
 *
 * Invariant: the messages are a gapless run of what is listed of the conversation, in the order of positions, each once, at its first version.
 */
import { POSITION_STEP } from "@lossless/core";
import type { Engine, MessageRow, Scope } from "@lossless/core";
import { isHousekeeping } from "@lossless/interchange/pairs";
import { findEntry, isEmpty, isRequest, loadMessage, toEntries } from "./entries.ts";
import type { Entry, LoadedMessage } from "./entries.ts";
import type { Move } from "./keys.ts";
import { keepInList, LIST_START, type ListCursor } from "./list-cursor.ts";

/** The texts of a page are read with it, because only they say what belongs together; more would take longer than a key may. */
export const PAGE = 64;
/** Where only turns are listed, most rows are passed over without reading their texts. */
const TURN_PAGE = 500;
/** The maximum number of messages kept. */
export const KEPT = 1_000;
/** Nearer to an edge than this, more is loaded. */
const MARGIN = 40;

interface Mark {
  readonly position: number;
  readonly seq: number;
}

export class MessageWindow {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #conversationId: number;
  #messages: LoadedMessage[] = [];
  rows: readonly Entry[] = [];
  isAtStart = false;
  isAtEnd = false;
  cursor: ListCursor = LIST_START;
  /** Whether lines of the host are listed, too. */
  showsHousekeeping = false;
  /** Whether only the requests that begin turns are listed. */
  showsTurns = false;
  /** The message somebody came for: listed whatever it is. */
  #wanted: Mark | null = null;

  constructor(engine: Engine, scope: Scope, conversationId: number) {
    this.#engine = engine;
    this.#scope = scope;
    this.#conversationId = conversationId;
  }

  get selected(): Entry | undefined {
    return this.rows[this.cursor.selected];
  }

  /** Whether the newest message is chosen: then new ones are followed. */
  get isFollowing(): boolean {
    return this.isAtEnd && this.cursor.selected >= this.rows.length - 1;
  }

  async openStart(screenRows: number): Promise<void> {
    this.#empty(true);
    do await this.#readNewer();
    while (this.rows.length < screenRows && !this.isAtEnd);
    this.cursor = LIST_START;
  }

  async openEnd(screenRows: number): Promise<void> {
    this.#empty(false);
    do await this.#readOlder();
    while (this.rows.length < screenRows && !this.isAtStart);
    const last = this.rows.length - 1;
    this.cursor = keepInList({ selected: last, top: last }, this.rows.length, screenRows);
  }

  #empty(isAtStart: boolean): void {
    this.#messages = [];
    this.rows = [];
    this.cursor = LIST_START;
    this.isAtStart = isAtStart;
    this.isAtEnd = !isAtStart;
  }

  /** Around a place; the entry with that message, or the first one after it, is chosen, and is in the middle of the screen. */
  async openAt(mark: Mark, screenRows: number, ordinal = 0): Promise<void> {
    this.#wanted = mark;
    const [older, newer] = await Promise.all([
      this.#readPage("newest", toCursor(mark)),
      this.#readPage("oldest", `${mark.position}.${mark.seq - 1}`),
    ]);
    this.#messages = [...older.messages.toReversed(), ...newer.messages];
    this.rows = toEntries(this.#messages);
    this.isAtStart = older.isLast;
    this.isAtEnd = newer.isLast;
    const found = findEntry(this.rows, mark, ordinal);
    const selected = found < 0 ? this.rows.length - 1 : found;
    const half = Math.floor(screenRows / 2);
    this.cursor = { selected, top: selected - half };
    while (this.cursor.selected < half && !this.isAtStart) await this.#readOlder();
    while (this.rows.length - this.cursor.selected <= half && !this.isAtEnd) await this.#readNewer();
    this.keep(screenRows);
  }

  /**
   * Opens at the first message at or after a time: binary search over the positions until a page holds the rest. Messages are in order of time
   * except for late ones.
   */
  async openTime(at: number, screenRows: number): Promise<void> {
    const [first] = (await this.#readRows("oldest", null, 1)).items;
    const [last] = (await this.#readRows("newest", null, 1)).items;
    if (first === undefined || last === undefined) return this.openEnd(screenRows);
    let [low, high] = [first.position, last.position];
    while (high - low > PAGE * POSITION_STEP) {
      const middle = Math.floor((low + high) / 2);
      const [row] = (await this.#readRows("oldest", `${middle}.-1`, 1)).items;
      if (row === undefined || row.createdAt >= at) high = middle;
      else low = row.position;
    }
    for (let from = `${low}.-1`; ;) {
      const page = await this.#readRows("oldest", from, TURN_PAGE);
      const found = page.items.find((row) => this.#isListed(row) && row.createdAt >= at);
      if (found !== undefined) return this.openAt(found, screenRows);
      if (page.next === null) return this.openEnd(screenRows);
      from = page.next;
    }
  }

  async move(move: Move, screenRows: number): Promise<void> {
    if (move.kind === "first")
      return this.isAtStart ? this.#choose(0, screenRows) : this.openStart(screenRows);
    if (move.kind === "last")
      return this.isAtEnd ? this.#choose(this.rows.length - 1, screenRows) : this.openEnd(screenRows);
    while (this.cursor.selected + move.rows < MARGIN && !this.isAtStart) await this.#readOlder();
    while (this.cursor.selected + move.rows >= this.rows.length - MARGIN && !this.isAtEnd)
      await this.#readNewer();
    this.#choose(this.cursor.selected + move.rows, screenRows);
  }

  /** To the next beginning of a turn in this direction: its heading, or its request. False if none is loaded. */
  chooseTurn(by: 1 | -1, screenRows: number): boolean {
    for (let at = this.cursor.selected + by; at >= 0 && at < this.rows.length; at += by) {
      const entry = this.rows[at];
      if (entry === undefined || !isRequest(entry.row) || this.rows[at - 1]?.row === entry.row) continue;
      this.#choose(at, screenRows);
      return true;
    }
    return false;
  }

  /**
   * Reloads everything, because agents write: new rows at the end, which are followed when the newest was chosen, late rows in the middle, and
   * new versions of existing rows. The text being read stays in place on the screen.
   */
  async reload(screenRows: number): Promise<void> {
    const entry = this.selected;
    if (entry === undefined || this.isFollowing) return this.openEnd(screenRows);
    const offset = this.cursor.selected - this.cursor.top;
    await this.openAt(entry.row, screenRows, entry.ordinals?.[0]);
    const { selected } = this.cursor;
    this.cursor = keepInList({ selected, top: selected - offset }, this.rows.length, screenRows);
  }

  keep(screenRows: number): void {
    this.cursor = keepInList(this.cursor, this.rows.length, screenRows);
  }

  #choose(selected: number, screenRows: number): void {
    this.cursor = keepInList({ ...this.cursor, selected }, this.rows.length, screenRows);
  }

  async #readOlder(): Promise<void> {
    const first = this.#messages[0];
    const page = await this.#readPage("newest", first === undefined ? null : toCursor(first.row));
    this.isAtStart = page.isLast;
    this.#messages.unshift(...page.messages.toReversed());
    if (this.#messages.length > KEPT) {
      this.#messages.length = KEPT;
      this.isAtEnd = false;
    }
    this.#regroup();
  }

  async #readNewer(): Promise<void> {
    const last = this.#messages.at(-1);
    const page = await this.#readPage("oldest", last === undefined ? null : toCursor(last.row));
    this.isAtEnd = page.isLast;
    this.#messages.push(...page.messages);
    const surplus = this.#messages.length - KEPT;
    if (surplus > 0) {
      this.#messages.splice(0, surplus);
      this.isAtStart = false;
    }
    this.#regroup();
  }

  /** New neighbours can turn two rows into one card; the chosen one stays chosen, and where it is on the screen. */
  #regroup(): void {
    const { selected: chosen, cursor } = this;
    this.rows = toEntries(this.#messages);
    if (chosen === undefined) return;
    const selected = findEntry(this.rows, chosen.row, chosen.ordinals?.[0]);
    this.cursor = { selected, top: cursor.top + selected - cursor.selected };
  }

  /** Only what is listed, and enough of it to go on: where little of a page is, the next ones are read, too. */
  async #readPage(
    direction: "oldest" | "newest",
    from: string | null,
  ): Promise<{ messages: LoadedMessage[]; isLast: boolean }> {
    const messages: LoadedMessage[] = [];
    for (let after = from; ;) {
      const page = await this.#readRows(direction, after, this.showsTurns ? TURN_PAGE : PAGE);
      const listed = page.items.filter((row) => this.#isListed(row));
      // A page of turns can have many: the rest is read next time.
      const taken = listed.slice(0, 2 * PAGE);
      messages.push(...(await this.#load(taken)));
      const last = taken.length < listed.length ? taken.at(-1) : undefined;
      after = last === undefined ? page.next : toCursor(last);
      if (after === null) return { messages, isLast: true };
      if (messages.length >= MARGIN) return { messages, isLast: false };
    }
  }

  async #load(rows: readonly MessageRow[]): Promise<LoadedMessage[]> {
    const loaded = await Promise.all(rows.map((row) => loadMessage(this.#engine, this.#scope, row)));
    return this.showsHousekeeping
      ? loaded
      : loaded.filter((message) => !isEmpty(message) || message.row.seq === this.#wanted?.seq);
  }

  #readRows(
    direction: "oldest" | "newest",
    after: string | null,
    limit: number,
  ): ReturnType<Engine["listMessages"]> {
    return this.#engine.listMessages({
      ...this.#scope,
      conversationId: this.#conversationId,
      limit,
      after,
      direction,
    });
  }

  /** Later versions are listed at the place of the first one. */
  #isListed(row: MessageRow): boolean {
    if (row.revises !== null) return false;
    if (row.seq === this.#wanted?.seq) return true;
    if (this.showsTurns) return isRequest(row);
    return this.showsHousekeeping || !isHousekeeping(row);
  }
}

const toCursor = ({ position, seq }: Mark): string => `${position}.${seq}`;
