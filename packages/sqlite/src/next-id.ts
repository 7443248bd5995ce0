/**
 * The next id of a table. An id is never reused: if the rows with the highest ids were removed, `meta` records how high they were.
 *
 * Invariant: every row of these tables gets its id from here.
 */
import type { NumberedTable } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";

const ID_COLUMNS = {
  conversations: "conversation_id",
  messages: "message_id",
  sessions: "session_ref",
  spend: "spend_id",
} as const;
const markOf = (table: NumberedTable): string => `last_id_of_${table}`;
const highest = (table: NumberedTable): string =>
  `max(coalesce((SELECT max(${ID_COLUMNS[table]}) FROM ${table}), 0),
       coalesce((SELECT value FROM meta WHERE key = '${markOf(table)}'), 0))`;

const NEXT_ID: Readonly<Record<NumberedTable, string>> = {
  sessions: `SELECT ${highest("sessions")} + 1 AS id`,
  conversations: `SELECT ${highest("conversations")} + 1 AS id`,
  messages: `SELECT ${highest("messages")} + 1 AS id`,
  spend: `SELECT ${highest("spend")} + 1 AS id`,
};

export const readNextId = (connection: Connection, table: NumberedTable): number =>
  connection.get<{ id: number }>(NEXT_ID[table])?.id ?? 1;

/** Records the highest ids. Call it before rows are removed, in the same transaction. */
export function keepHighestIds(connection: Connection): void {
  for (const table of Object.keys(ID_COLUMNS) as NumberedTable[]) {
    setMark(connection, table, readNextId(connection, table) - 1);
  }
}

const SET_MARK =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const giveBack = (table: NumberedTable): string => `
  UPDATE meta SET value = max(?, coalesce((SELECT max(${ID_COLUMNS[table]}) FROM ${table}), 0)) WHERE key = ? AND value = ?`;

const setMark = (connection: Connection, table: NumberedTable, id: number): number =>
  connection.run(SET_MARK, markOf(table), id);

/** Numbers taken at once: of messages as many as some batches have. */
const AT_ONCE = { messages: 4_096, sessions: 64, conversations: 16, spend: 1 } as const;

/** Ids for rows that are first stored elsewhere: they are reserved in the archive to which the rows will be transferred. */
export class ReservedIds {
  readonly #archive: Connection;
  readonly #elsewhere: Connection;
  /** The last reserved ranges. */
  readonly #taken = new Map<NumberedTable, { readonly first: number; readonly last: number }>();

  constructor(archive: Connection, elsewhere: Connection) {
    this.#archive = archive;
    this.#elsewhere = elsewhere;
  }

  /** The first of this many. */
  take(table: NumberedTable, count: number): number {
    const next = readNextId(this.#elsewhere, table);
    if (next + count - 1 <= (this.#taken.get(table)?.last ?? 0)) return next;
    const size = Math.max(count, AT_ONCE[table]);
    const first = this.#archive.write(() => {
      const free = readNextId(this.#archive, table);
      setMark(this.#archive, table, free + size - 1);
      return free;
    });
    this.#taken.set(table, { first, last: first + size - 1 });
    setMark(this.#elsewhere, table, first - 1);
    return first;
  }

  /** Returns unused ids, unless another process has reserved ids after them, or is writing now: then they are lost. */
  giveBack(): void {
    this.#archive.tryWrite(() => {
      for (const [table, { first, last }] of this.#taken)
        this.#archive.run(giveBack(table), first - 1, markOf(table), last);
    });
  }
}
