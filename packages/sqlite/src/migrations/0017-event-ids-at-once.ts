/**
 * Every event id is written with its message. Archives in which an import had left ids unwritten get them now; the table that tracked them
 * is dropped.
 */
import type { Connection } from "../connection.ts";

export const version = 17;

export const sql = `
DROP TABLE event_ids_behind;
`;

const MISSING = `
  SELECT session_ref AS sessionRef, until, (SELECT max(message_id) FROM messages) AS newest FROM event_ids_behind`;
/** Sorted, so that neighbouring ids in the table share the work on a page. */
const WRITE_IDS = `
  INSERT INTO event_ids (session_ref, event_id, message_id, kind)
  SELECT session_ref, event_id, message_id, 0 FROM messages
  WHERE message_id > ?2 AND message_id <= ?3 AND session_ref = ?1 AND revises IS NULL ORDER BY event_id
  ON CONFLICT DO NOTHING`;

/** Messages per statement: some 100 ms. */
const AT_ONCE = 16_384;
/** A row of `event_ids` with its entry in the index of the table. */
const BYTES_PER_ID = 200;

interface Missing {
  readonly sessionRef: number;
  readonly until: number;
  readonly newest: number;
}

const listMissing = (connection: Connection): Missing[] => connection.all<Missing>(MISSING);
const countMissing = (missing: readonly Missing[]): number =>
  missing.reduce((sum, { until, newest }) => sum + Math.max(0, newest - until), 0);

export function fill(connection: Connection, onProgress: (done: number, total: number) => void): void {
  const missing = listMissing(connection);
  const total = countMissing(missing);
  let done = 0;
  for (const { sessionRef, until, newest } of missing) {
    for (let from = until; from < newest; from += AT_ONCE) {
      const to = Math.min(from + AT_ONCE, newest);
      connection.run(WRITE_IDS, sessionRef, from, to);
      done += to - from;
      // The work of one statement is over before anybody could read a report.
      if (to - from === AT_ONCE) onProgress(done, total);
    }
  }
}

/** At worst each id rewrites a separate page in the log; never more pages than the database then has. */
export function countBytes(connection: Connection): number {
  const ids = countMissing(listMissing(connection));
  const pages = connection.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0;
  const pageSize = connection.get<{ page_size: number }>("PRAGMA page_size")?.page_size ?? 0;
  const grown = ids * BYTES_PER_ID;
  return grown + Math.min(ids * pageSize, pages * pageSize + grown);
}
