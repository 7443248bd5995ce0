/**
 * An archive as schema 16 left it: made by a program of that version that was killed twice while it imported. 43 messages in two sessions, of
 * which 37 wait for the index and, but for one revision, for their row in `event_ids`; one vector space with vectors of the first three messages.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";

const ARCHIVE = join(import.meta.dirname, "../archives/schema-16-interrupted-import.db.gz");

export function writeInterruptedArchive(path: string): void {
  writeFileSync(path, gunzipSync(readFileSync(ARCHIVE)), { mode: 0o600 });
}

/** The same with so many further messages without a row in `event_ids`: only their own rows, so that `verify` would not pass. */
export function writeLongInterruptedArchive(path: string, messages: number): void {
  writeInterruptedArchive(path);
  const database = new DatabaseSync(path);
  database.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${messages})
    INSERT INTO messages (conversation_id, seq, position, session_ref, event_id, role, tokens, created_at, hidden, hidden_now,
                          arrival_bytes, encoding, body, salt, commitment, chain)
    SELECT conversation_id, 1000 + n, 1000 + n, session_ref, 'many ' || n, role, tokens, created_at, hidden, hidden_now,
           arrival_bytes, encoding, body, salt, commitment, chain
    FROM numbers, messages WHERE message_id = 1`);
  database.close();
}

/** What takes a migration back, newest first, where no row of its own is needed to look like an archive from before it. */
const TAKE_BACK: Readonly<Record<number, string>> = {
  19: `DROP TRIGGER index_new_message; DROP TABLE index_pending;
       INSERT INTO meta (key, value) SELECT 'index_until', max(message_id) FROM messages;`,
  18: "DROP TABLE imports;",
  17: `CREATE TABLE event_ids_behind (
         session_ref INTEGER PRIMARY KEY REFERENCES sessions (session_ref), until INTEGER NOT NULL) STRICT;`,
  16: "DROP TABLE seals; DROP TRIGGER refuse_older_programs;",
};

/** SQL that makes an archive look as one of an older schema. */
export function renderTakeBack(version: number): string {
  const newest = Object.keys(TAKE_BACK)
    .map(Number)
    .toSorted((a, b) => b - a);
  const undone = newest.filter((migration) => migration > version).map((migration) => TAKE_BACK[migration]);
  return [...undone, `PRAGMA user_version = ${version};`].join("\n");
}
