/**
 * The next id of a table. An id that was given out once never names anything else: where the rows with the highest ids were removed, `meta`
 * remembers how high they were.
 *
 * Invariant: every row of these tables gets its id from here.
 */
import type { Connection } from "./connection.ts";

const ID_COLUMNS = {
  conversations: "conversation_id",
  messages: "message_id",
  sessions: "session_ref",
} as const;
type Table = keyof typeof ID_COLUMNS;

const markOf = (table: Table): string => `last_id_of_${table}`;
const highest = (table: Table): string =>
  `max(coalesce((SELECT max(${ID_COLUMNS[table]}) FROM ${table}), 0),
       coalesce((SELECT value FROM meta WHERE key = '${markOf(table)}'), 0))`;

/** An SQL expression for an INSERT. */
export const nextId = (table: Table): string => `(SELECT ${highest(table)} + 1)`;

/** Remembers the highest ids. To be called before rows are removed, in the same transaction. */
export function keepHighestIds(connection: Connection): void {
  for (const table of Object.keys(ID_COLUMNS) as Table[]) {
    connection.run(
      `INSERT INTO meta (key, value) VALUES (?, (SELECT ${highest(table)}))
       ON CONFLICT DO UPDATE SET value = excluded.value`,
      markOf(table),
    );
  }
}
