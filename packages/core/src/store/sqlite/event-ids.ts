/**
 * Which message an event id names, session by session. Ids are random: in a large archive each one that is written to `event_ids` rewrites
 * a page of its own, which costs an import as much as all other rows of the message. So the batches of an import put their ids off. They
 * stand in `messages` anyway, and are kept in memory meanwhile; each time many have gathered they are sorted, and some are written with
 * every further batch, so that neighbours share a page.
 *
 * Invariants: the id of the first message of an event stands in `event_ids`, or the session has a row in `event_ids_behind` and the message
 * a number above its `until`. After {@link follow}, inside the same transaction, {@link find} knows both kinds. A query that joins
 * `event_ids` is right only after {@link settle}, and where it decides what is written, after one in the same transaction.
 *
 * To look for each new id in the table would read a random page again, and of a file that is imported for the first time nearly all are new.
 * So a session that began with this import has its ids in a filter as well. It is complete only as long as nobody else writes: every
 * foreign commit, and every call of {@link settle}, behind which ids may be written by other ways, ends it.
 */
import { NameFilter } from "../../model/name-filter.ts";
import type { Connection } from "./connection.ts";

const SELECT_EVENT = "SELECT message_id FROM event_ids WHERE session_ref = ? AND event_id = ?";
const INSERT_EVENT = "INSERT INTO event_ids (session_ref, event_id, message_id, kind) VALUES (?, ?, ?, ?)";
const INSERT_LATER = `${INSERT_EVENT} ON CONFLICT DO NOTHING`;
const INSERT_RANGE = `
  INSERT INTO event_ids (session_ref, event_id, message_id, kind)
  SELECT session_ref, event_id, message_id, 0 FROM messages
  WHERE message_id > ?2 AND message_id <= ?3 AND session_ref = ?1 AND revises IS NULL ORDER BY event_id
  ON CONFLICT DO NOTHING`;
const SELECT_BEHIND = "SELECT until FROM event_ids_behind WHERE session_ref = ?";
const LIST_BEHIND = "SELECT session_ref, until FROM event_ids_behind";
const INSERT_BEHIND = "INSERT INTO event_ids_behind (session_ref, until) VALUES (?, ?)";
const MOVE_BEHIND = "UPDATE event_ids_behind SET until = ?2 WHERE session_ref = ?1";
const DELETE_BEHIND = "DELETE FROM event_ids_behind WHERE session_ref = ?";
const ANY_EVENT = "SELECT 1 AS found FROM event_ids WHERE session_ref = ? LIMIT 1";
const DATA_VERSION = "PRAGMA data_version";
const NEWEST = "SELECT coalesce(max(message_id), 0) AS id FROM messages";
const FIRSTS_BEHIND = `
  SELECT event_id, message_id FROM messages WHERE message_id > ? AND session_ref = ? AND revises IS NULL`;

export const EVENT_KIND = { entry: 0, provisional: 1, alias: 2 } as const;

export interface Deferral {
  /** In an archive of fewer messages all ids fit into the cache, and there is nothing to be gained. */
  readonly fromMessages: number;
  /** So many are sorted and written together. */
  readonly together: number;
}

const DEFERRAL: Deferral = { fromMessages: 32_768, together: 16_384 };
/** Of those that are sorted, so many are written for each id that a batch brings: they are gone before as many have gathered again. */
const WRITTEN_PER_NEW = 2;
/** Messages of one transaction of {@link EventIds.settle}, so that other writers get their turn in between. */
const SETTLED_AT_ONCE = 1_024;
/** An import that has been quiet for so long has ended, or been stopped. */
const QUIET_MS = 300;

/** Ids that are being written, in the order in which they stand in the table. */
interface Sorted {
  readonly messageIds: ReadonlyMap<string, number>;
  readonly order: readonly string[];
  written: number;
  /** Every message of the session up to this one is among them or was written before. */
  readonly last: number;
}

/** All ids of a session, as of a version of the database: SQLite counts the commits of other connections. */
interface Complete {
  readonly sessionRef: number;
  readonly ids: NameFilter;
  readonly dataVersion: number;
  /** What was rolled back may have begun the session. */
  readonly rollbacks: number;
}

export class EventIds {
  readonly #connection: Connection;
  readonly #deferral: Deferral;
  /** The session whose unwritten ids are in memory; 0 when there is none. */
  #sessionRef = 0;
  #until = 0;
  /** The last message that was looked at for it. */
  #seen = 0;
  #gathered = new Map<string, number>();
  #sorted: Sorted | null = null;
  /** What was rolled back may be in memory still: then everything is read anew. */
  #rollbacks = 0;
  #timer: NodeJS.Timeout | null = null;
  #complete: Complete | null = null;

  constructor(connection: Connection, deferral: Deferral = DEFERRAL) {
    this.#connection = connection;
    this.#deferral = deferral;
    if (!connection.readOnly && this.#listBehind().length > 0) this.settleSoon();
  }

  /** Learns which ids of a session are not written, also those that another process stored. First thing in a transaction. */
  follow(sessionRef: number): void {
    if (this.#complete !== null && !this.#isComplete(this.#complete)) this.#complete = null;
    const row = this.#connection.get<{ until: number }>(SELECT_BEHIND, sessionRef);
    if (row === undefined) {
      if (this.#sessionRef === sessionRef) this.#start(0, 0);
      return;
    }
    const isKnown = this.#sessionRef === sessionRef && this.#until === row.until;
    if (!isKnown || this.#rollbacks !== this.#connection.rollbacks) this.#start(sessionRef, row.until);
    const newest = this.#newest();
    if (newest === this.#seen) return;
    const rows = this.#connection.walk<readonly [string, number]>(FIRSTS_BEHIND, this.#seen, sessionRef);
    for (const [eventId, messageId] of rows) this.#gathered.set(eventId, messageId);
    this.#seen = newest;
  }

  /** The first message of an event, if it is stored. */
  find(sessionRef: number, eventId: string): number | undefined {
    const unwritten = this.findUnwritten(sessionRef, eventId);
    if (unwritten !== undefined) return unwritten;
    return this.#connection.get<{ message_id: number }>(SELECT_EVENT, sessionRef, eventId)?.message_id;
  }

  findUnwritten(sessionRef: number, eventId: string): number | undefined {
    if (sessionRef !== this.#sessionRef) return undefined;
    return this.#gathered.get(eventId) ?? this.#sorted?.messageIds.get(eventId);
  }

  /** False for an id that the table cannot have: then there is no need to look. */
  mayBeWritten(sessionRef: number, eventId: string): boolean {
    return this.#complete?.sessionRef !== sessionRef || this.#complete.ids.mayHave(eventId);
  }

  /** A session of which {@link follow} was told, and of which a whole import may come: if it has no ids yet, all that come are noted. */
  watch(sessionRef: number): void {
    if (this.#complete?.sessionRef === sessionRef || this.#sessionRef === sessionRef) return;
    if (this.#connection.get(ANY_EVENT, sessionRef) !== undefined) return;
    const { rollbacks } = this.#connection;
    this.#complete = { sessionRef, ids: new NameFilter(), dataVersion: this.#readDataVersion(), rollbacks };
  }

  #isComplete({ dataVersion, rollbacks }: Complete): boolean {
    return rollbacks === this.#connection.rollbacks && dataVersion === this.#readDataVersion();
  }

  #readDataVersion(): number {
    return this.#connection.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? 0;
  }

  /** Begins, or goes on, to put off the ids of a session that {@link follow} was told of. False where that is of no use. */
  defer(sessionRef: number): boolean {
    if (this.#sessionRef === sessionRef) return true;
    const newest = this.#newest();
    if (newest < this.#deferral.fromMessages) return false;
    this.#connection.run(INSERT_BEHIND, sessionRef, newest);
    this.#start(sessionRef, newest);
    return true;
  }

  /** Takes the id of a message that the caller's transaction stores. */
  record(
    sessionRef: number,
    eventId: string,
    messageId: number,
    kind: keyof typeof EVENT_KIND,
    isDeferred = false,
  ): void {
    if (this.#complete?.sessionRef === sessionRef) this.#complete.ids.add(eventId);
    if (isDeferred && kind === "entry") this.#gathered.set(eventId, messageId);
    else this.#connection.run(INSERT_EVENT, sessionRef, eventId, messageId, EVENT_KIND[kind]);
    if (isDeferred) this.#seen = messageId;
  }

  /** Behind each batch that put its ids off: writes some of those that are sorted, in the caller's transaction. */
  writeSome(taken: number): void {
    if (this.#sorted === null && this.#gathered.size >= this.#deferral.together) this.#sort();
    const sorted = this.#sorted;
    if (sorted === null) return;
    const end = Math.min(sorted.written + taken * WRITTEN_PER_NEW, sorted.order.length);
    for (; sorted.written < end; sorted.written++) {
      const eventId = sorted.order[sorted.written] as string;
      const messageId = sorted.messageIds.get(eventId) as number;
      this.#connection.run(INSERT_LATER, this.#sessionRef, eventId, messageId, EVENT_KIND.entry);
    }
    if (end < sorted.order.length) return;
    this.#connection.run(MOVE_BEHIND, this.#sessionRef, sorted.last);
    this.#until = sorted.last;
    this.#sorted = null;
  }

  #sort(): void {
    const order = [...this.#gathered.keys()].sort();
    this.#sorted = { messageIds: this.#gathered, order, written: 0, last: this.#seen };
    this.#gathered = new Map();
  }

  /** Writes all that was put off, by whomever: in the transaction under way, else in several short ones. */
  settle(): void {
    this.#complete = null;
    if (this.#connection.readOnly) return;
    for (const { session_ref: sessionRef } of this.#listBehind())
      while (this.#connection.write(() => this.#settleSome(sessionRef)));
  }

  /** The same for what another session than this one has put off here: before the batches of the next file, not among them. */
  settleOther(sessionRef: number | null): void {
    const other = this.#sessionRef;
    if (other === 0 || other === sessionRef) return;
    while (this.#connection.write(() => this.#settleSome(other)));
  }

  /** The same, as far as the lock can be had at once: nothing depends on it, and whoever writes next can do it as well. */
  trySettle(): "done" | "busy" | "failed" {
    if (this.#connection.readOnly) return "done";
    for (const { session_ref: sessionRef } of this.#listBehind()) {
      for (let isMore = true; isMore;) {
        const attempt = this.#connection.tryWrite(() => this.#settleSome(sessionRef));
        if (attempt.kind !== "done") return attempt.kind;
        isMore = attempt.value;
      }
    }
    return "done";
  }

  /** True while there is more. */
  #settleSome(sessionRef: number): boolean {
    const row = this.#connection.get<{ until: number }>(SELECT_BEHIND, sessionRef);
    if (this.#sessionRef === sessionRef) this.#start(0, 0);
    if (row === undefined) return false;
    const newest = this.#newest();
    const end = Math.min(row.until + SETTLED_AT_ONCE, newest);
    this.#connection.run(INSERT_RANGE, sessionRef, row.until, end);
    if (end < newest) this.#connection.run(MOVE_BEHIND, sessionRef, end);
    else this.#connection.run(DELETE_BEHIND, sessionRef);
    return end < newest;
  }

  /** Settles when no batch has come for a while, and gives back what memory only an import needs. */
  settleSoon(): void {
    if (this.#timer !== null) return void this.#timer.refresh();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#complete = null;
      if (this.trySettle() === "busy") this.settleSoon();
    }, QUIET_MS).unref();
  }

  /** Nothing is written after this; a database that is closed cannot be written to. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#connection.isOpen) this.trySettle();
  }

  #start(sessionRef: number, until: number): void {
    [this.#sessionRef, this.#until, this.#seen] = [sessionRef, until, until];
    this.#gathered = new Map();
    this.#sorted = null;
    this.#rollbacks = this.#connection.rollbacks;
  }

  #listBehind(): { session_ref: number; until: number }[] {
    return this.#connection.all<{ session_ref: number; until: number }>(LIST_BEHIND);
  }

  #newest(): number {
    return this.#connection.get<{ id: number }>(NEWEST)?.id ?? 0;
  }
}

/** By session, the message behind which ids may not be written yet; for whoever checks that they all are. */
export function readBehind(connection: Connection): ReadonlyMap<number, number> {
  const rows = connection.all<{ session_ref: number; until: number }>(LIST_BEHIND);
  return new Map(rows.map(({ session_ref: sessionRef, until }) => [sessionRef, until]));
}
