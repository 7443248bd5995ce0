/**
 * The messages of a conversation as a sliding window: a bounded number of rows around the chosen one, loaded by key while scrolling. A
 * conversation of a hundred thousand messages takes no more memory than one of a thousand, and a jump does not load what is in between.
 *
 * Invariant: `rows` is a gapless run of what is listed of the conversation, in the order of positions, each message once, at its first version.
 */
import { POSITION_STEP } from "@lossless/core";
import type { Engine, MessageRow, Scope } from "@lossless/core";
import type { Move } from "./keys.ts";
import { keepInList, LIST_START, type ListCursor } from "./list-cursor.ts";

export const PAGE = 150;
/** The maximum number of rows kept. */
export const KEPT = 1_000;
/** Nearer to an edge than this, more is loaded. */
const MARGIN = 60;

/** Lines of the host that are not part of the conversation. */
const HOUSEKEEPING: ReadonlySet<string> = new Set(["meta", "heartbeat"]);

interface Mark {
  readonly position: number;
  readonly seq: number;
}

export class MessageWindow {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #conversationId: number;
  rows: MessageRow[] = [];
  isAtStart = false;
  isAtEnd = false;
  cursor: ListCursor = LIST_START;
  /** Whether lines of the host are listed, too. */
  showsHousekeeping = false;
  /** The message somebody came for: listed whatever it is. */
  #wanted: Mark | null = null;

  constructor(engine: Engine, scope: Scope, conversationId: number) {
    this.#engine = engine;
    this.#scope = scope;
    this.#conversationId = conversationId;
  }

  get selected(): MessageRow | undefined {
    return this.rows[this.cursor.selected];
  }

  /** Whether the newest message is chosen: then new ones are followed. */
  get isFollowing(): boolean {
    return this.isAtEnd && this.cursor.selected >= this.rows.length - 1;
  }

  async openStart(): Promise<void> {
    this.rows = [];
    this.isAtStart = true;
    this.isAtEnd = false;
    await this.#readNewer();
    this.cursor = LIST_START;
  }

  async openEnd(screenRows: number): Promise<void> {
    this.rows = [];
    this.isAtStart = false;
    this.isAtEnd = true;
    await this.#readOlder();
    this.cursor = keepInList(
      { selected: this.rows.length - 1, top: this.rows.length },
      this.rows.length,
      screenRows,
    );
  }

  /** Around a place; the first message at or after it is chosen, and is in the middle of the screen. */
  async openAt(mark: Mark, screenRows: number): Promise<void> {
    this.#wanted = mark;
    const older = await this.#readPage("newest", `${mark.position}.${mark.seq}`);
    const newer = await this.#readPage("oldest", `${mark.position}.${mark.seq - 1}`);
    this.rows = [...older.rows.toReversed(), ...newer.rows];
    this.isAtStart = older.isLast;
    this.isAtEnd = newer.isLast;
    const selected = Math.min(older.rows.length, Math.max(0, this.rows.length - 1));
    this.cursor = keepInList(
      { selected, top: selected - Math.floor(screenRows / 2) },
      this.rows.length,
      screenRows,
    );
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
      const page = await this.#readPage("oldest", from);
      const found = page.rows.find(({ createdAt }) => createdAt >= at);
      const end = page.rows.at(-1);
      if (found !== undefined) return this.openAt(found, screenRows);
      if (page.isLast || end === undefined) return this.openEnd(screenRows);
      from = toCursor(end);
    }
  }

  async move(move: Move, screenRows: number): Promise<void> {
    if (move.kind === "first") return this.isAtStart ? this.#choose(0, screenRows) : this.openStart();
    if (move.kind === "last")
      return this.isAtEnd ? this.#choose(this.rows.length - 1, screenRows) : this.openEnd(screenRows);
    while (this.cursor.selected + move.rows < MARGIN && !this.isAtStart) {
      const added = await this.#readOlder();
      this.cursor = { selected: this.cursor.selected + added, top: this.cursor.top + added };
    }
    while (this.cursor.selected + move.rows >= this.rows.length - MARGIN && !this.isAtEnd)
      await this.#readNewer();
    this.#choose(this.cursor.selected + move.rows, screenRows);
  }

  /**
   * Reloads everything, because agents write: new rows at the end, which are followed when the newest was chosen, late rows in the middle, and
   * new versions of existing rows. The text being read stays in place on the screen.
   */
  async reload(screenRows: number): Promise<void> {
    const row = this.selected;
    if (row === undefined || this.isFollowing) return this.openEnd(screenRows);
    const offset = this.cursor.selected - this.cursor.top;
    await this.openAt(row, screenRows);
    const { selected } = this.cursor;
    this.cursor = keepInList({ selected, top: selected - offset }, this.rows.length, screenRows);
  }

  keep(screenRows: number): void {
    this.cursor = keepInList(this.cursor, this.rows.length, screenRows);
  }

  #choose(selected: number, screenRows: number): void {
    this.cursor = keepInList({ ...this.cursor, selected }, this.rows.length, screenRows);
  }

  /** Returns how many rows were added at the front. */
  async #readOlder(): Promise<number> {
    const first = this.rows[0];
    const page = await this.#readPage("newest", first === undefined ? null : toCursor(first));
    this.rows = [...page.rows.toReversed(), ...this.rows];
    this.isAtStart = page.isLast;
    if (this.rows.length > KEPT) {
      this.rows.length = KEPT;
      this.isAtEnd = false;
    }
    return page.rows.length;
  }

  async #readNewer(): Promise<void> {
    const last = this.rows.at(-1);
    const page = await this.#readPage("oldest", last === undefined ? null : toCursor(last));
    this.rows.push(...page.rows);
    this.isAtEnd = page.isLast;
    const surplus = this.rows.length - KEPT;
    if (surplus <= 0) return;
    this.rows.splice(0, surplus);
    this.isAtStart = false;
    this.cursor = { selected: this.cursor.selected - surplus, top: this.cursor.top - surplus };
  }

  /** Only what is listed, and enough of it to go on: where little of a page is, the next ones are read, too. */
  async #readPage(
    direction: "oldest" | "newest",
    from: string | null,
  ): Promise<{ rows: MessageRow[]; isLast: boolean }> {
    const rows: MessageRow[] = [];
    for (let after = from; ;) {
      const page = await this.#readRows(direction, after, PAGE);
      rows.push(...page.items.filter((row) => this.#isListed(row)));
      if (page.next === null) return { rows, isLast: true };
      if (rows.length >= MARGIN) return { rows, isLast: false };
      after = page.next;
    }
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
  #isListed({ revises, hidden, seq }: MessageRow): boolean {
    if (revises !== null) return false;
    return (
      this.showsHousekeeping ||
      seq === this.#wanted?.seq ||
      !hidden.some((reason) => HOUSEKEEPING.has(reason))
    );
  }
}

const toCursor = ({ position, seq }: Mark): string => `${position}.${seq}`;
