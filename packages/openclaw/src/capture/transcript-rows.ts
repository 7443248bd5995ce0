/**
 * New rows of a transcript since the last read, in the order they were written. The visible messages give the rows on the active branch and
 * their numbers; the raw events have everything else. Both are read in parallel: a raw message that is missing from the branch has left it.
 *
 * Invariant: a row after the last visible message is not returned, because only the next visible message shows whether it is on the branch; so
 * both cursors of a state always point at the same place.
 */

import { setImmediate } from "node:timers/promises";
import { POSITION_STEP } from "@lossless/core";
import type { HiddenReason } from "@lossless/core";
import { given } from "@lossless/core/doors";
import type { AgentMessage } from "../host/host.ts";
import { UNREAD, type ReaderState } from "./reader-state.ts";
import type { RawEvent, ReadPage, TranscriptPage, TranscriptReader, TranscriptTarget } from "./transcript.ts";

export type TranscriptRow = MessageRow | ResetRow;

export interface MessageRow {
  readonly kind: "message";
  readonly entryId: string;
  readonly message: AgentMessage;
  readonly position: number;
  readonly createdAt: number | undefined;
  /** `branch` for a row that left the active branch, `meta` for one that the host does not show to the model. Both are stored. */
  readonly hidden: readonly HiddenReason[];
}

export interface ResetRow {
  readonly kind: "reset";
  readonly entryId: string;
  readonly reason: "new" | "reset";
  readonly position: number;
  readonly at: number | undefined;
}

/** An entry identified by the host: its id, and its number among the visible messages, from one. */
export interface NumberedEntry {
  readonly entryId: string;
  readonly seq: number;
}

export type RowsRead =
  | { readonly kind: "rows"; readonly rows: readonly TranscriptRow[]; readonly end: ReadEnd | null }
  | ReadFailure;

export type ReadFailure = Exclude<TranscriptPage<never>, { kind: "page" }>;

/** Part of the last batch of a read. */
export interface ReadEnd {
  readonly state: ReaderState;
  /** True when the entry of the limit was among the rows. */
  readonly sawLimit: boolean;
}

const PAGE_SIZE = 200;
const BATCH_SIZE = 200;

/** Yields the new rows in batches; the last one has the state for the next read. Any other kind ends the read at once. */
export async function* readNewRows(
  reader: TranscriptReader,
  target: TranscriptTarget,
  start: ReaderState,
  limit?: NumberedEntry,
): AsyncGenerator<RowsRead, void> {
  const visible = new Feed(reader.readVisible, target, start.visible);
  const raw = new Feed(reader.readRaw, target, start.raw);
  const positions = new Positions(start.position);
  let rows: TranscriptRow[] = [];
  let sawLimit = false;
  try {
    for (let entry = await visible.peek(); entry !== undefined && !sawLimit; entry = await visible.peek()) {
      if (limit !== undefined && entry.seq > limit.seq) break;
      for (;;) {
        const event = await raw.take();
        if (event === undefined)
          throw new Interruption({ kind: "restart", reason: "the branch changed while it was read" });
        const onBranch = event.id === entry.entryId;
        rows.push(...toRows(event, positions, onBranch ? entry.seq : null));
        if (onBranch) break;
      }
      await visible.take();
      sawLimit = entry.entryId === limit?.entryId;
      if (rows.length >= BATCH_SIZE) {
        yield { kind: "rows", rows, end: null };
        rows = [];
      }
    }
    for (
      let event = await raw.peek();
      event !== undefined && readMessage(event) === undefined;
      event = await raw.peek()
    ) {
      rows.push(...toRows(event, positions, null));
      await raw.take();
    }
    yield {
      kind: "rows",
      rows,
      end: { state: await findEndState(visible, raw, positions.last, start), sawLimit },
    };
  } catch (error) {
    if (!(error instanceof Interruption)) throw error;
    yield error.read;
  }
}

/** Where the next read starts. If the place cannot be determined exactly, the next read repeats these rows, which adds nothing. */
async function findEndState(
  visible: Feed<unknown>,
  raw: Feed<unknown>,
  position: number,
  start: ReaderState,
): Promise<ReaderState> {
  const cursors = { visible: await visible.cursor(), raw: await raw.cursor() };
  if (cursors.visible === undefined || cursors.raw === undefined) return start;
  return { ...start, visible: cursors.visible, raw: cursors.raw, position };
}

/** The state for a restart after the transcript was rewritten: nothing read; turns without ids are kept. */
export function restartState(state: ReaderState): ReaderState {
  return { ...UNREAD, unnamed: state.unnamed };
}

/** Leaves the merge from inside a feed with a result for the caller. */
class Interruption extends Error {
  readonly read: ReadFailure;

  constructor(read: ReadFailure) {
    super(read.kind);
    this.read = read;
  }
}

/** Items of one view, one by one, across pages. */
class Feed<Item> {
  readonly #read: ReadPage<Item>;
  readonly #target: TranscriptTarget;
  /** Cursors before and after the current page, and how many of its items were taken. */
  #before: string | null;
  #behind: string | null;
  #page: readonly Item[] = [];
  #taken = 0;
  #hasMore = true;

  constructor(read: ReadPage<Item>, target: TranscriptTarget, cursor: string | null) {
    this.#read = read;
    this.#target = target;
    this.#before = cursor;
    this.#behind = cursor;
  }

  async peek(): Promise<Item | undefined> {
    while (this.#taken >= this.#page.length && this.#hasMore) await this.#turnPage();
    return this.#page[this.#taken];
  }

  async take(): Promise<Item | undefined> {
    const item = await this.peek();
    if (item !== undefined) this.#taken += 1;
    return item;
  }

  /** The cursor directly after the last item taken; undefined when the view cannot be cut there. */
  async cursor(): Promise<string | null | undefined> {
    if (this.#taken >= this.#page.length) return this.#behind;
    if (this.#taken === 0) return this.#before;
    const exact = await this.#read(this.#target, this.#before, this.#taken);
    return exact.kind === "page" && exact.items.length === this.#taken ? exact.cursor : undefined;
  }

  async #turnPage(): Promise<void> {
    // The host reads its pages synchronously: let others run between two of them.
    if (this.#page.length > 0) await setImmediate();
    const page = await this.#read(this.#target, this.#behind, PAGE_SIZE);
    if (page.kind !== "page") throw new Interruption(page);
    if (page.hasMore && page.items.length === 0 && page.cursor === this.#behind) {
      throw new Interruption({ kind: "unavailable", reason: "the host's reader makes no progress" });
    }
    this.#before = this.#behind;
    this.#behind = page.cursor;
    this.#page = page.items;
    this.#taken = 0;
    this.#hasMore = page.hasMore;
  }
}

/** Positions for rows in their order: numbered rows use their number, the others follow the row before them. */
class Positions {
  last: number;

  constructor(last: number) {
    this.last = last;
  }

  numbered(seq: number): number {
    return (this.last = seq * POSITION_STEP);
  }

  behind(): number {
    return (this.last += 1);
  }

  /** A boundary leaves room on both sides for rows without a number. */
  boundary(): number {
    const half = (Math.floor(this.last / POSITION_STEP) + 0.5) * POSITION_STEP;
    return (this.last = Math.max(half, this.last + 1));
  }
}

function toRows(event: RawEvent, positions: Positions, seq: number | null): TranscriptRow[] {
  const at = event.timestamp === undefined ? undefined : readTime(event.timestamp);
  if (event.type === "reset" && event.id !== undefined) {
    const reason = event.reason === "new" ? "new" : "reset";
    return [{ kind: "reset", entryId: event.id, reason, position: positions.boundary(), at }];
  }
  const message = readMessage(event);
  if (message === undefined || event.id === undefined) return [];
  const position = seq === null ? positions.behind() : positions.numbered(seq);
  return [
    {
      kind: "message",
      entryId: event.id,
      message,
      position,
      createdAt: at,
      hidden: findHiddenReasons(event, seq),
    },
  ];
}

/** The host's own messages (notes, announcements) never have a number, so only the others can be recognised as off-branch. */
function findHiddenReasons(event: RawEvent, seq: number | null): HiddenReason[] {
  if (event.type === "custom_message") return isKeptFromModel(event) ? ["meta"] : [];
  return seq === null ? ["branch"] : [];
}

/** Notes for people only, and facts about a running turn, which the host adds to every request itself. */
function isKeptFromModel(event: RawEvent): boolean {
  const details = event.details as { runtimeContextCarrier?: unknown } | undefined;
  return event.excludeFromContext === true || details?.runtimeContextCarrier === true;
}

function readMessage(event: RawEvent): AgentMessage | undefined {
  if (event.type === "message") return event.message;
  if (event.type !== "custom_message") return undefined;
  const { type: _type, id: _id, parentId: _parentId, timestamp, ...content } = event;
  return {
    role: "custom",
    ...content,
    ...given({ timestamp: timestamp === undefined ? undefined : readTime(timestamp) }),
  };
}

function readTime(timestamp: string): number | undefined {
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? undefined : time;
}
