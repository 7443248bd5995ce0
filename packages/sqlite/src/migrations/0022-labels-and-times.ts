/**
 * A person's labels of a conversation, and which messages have their own time. Until now a transcript line without a time had that of the
 * line before it, or that of its import, and the list of conversations showed it.
 *
 * Whether a stored line was given a time is no longer known, so it is derived from its bytes: a line without one, in a session that an
 * import wrote, has no time of its own if the stored time is that of the line before it or not earlier than the conversation itself.
 */
import { decodeBody, readOwnTime } from "@lossless/core/adapter";
import type { Connection } from "../connection.ts";
import { takeOutBookkeeping } from "../bookkeeping.ts";

export const version = 22;

export const sql = `
ALTER TABLE conversations ADD COLUMN name TEXT;            -- what a person calls it
ALTER TABLE conversations ADD COLUMN tags TEXT;            -- JSON list, or null
ALTER TABLE conversations ADD COLUMN pinned_at INTEGER;    -- lists show it first
ALTER TABLE conversations ADD COLUMN unlisted_at INTEGER;  -- lists leave it out; nothing else does
ALTER TABLE messages ADD COLUMN dated INTEGER NOT NULL DEFAULT 1;  -- 0: nobody knows when it was said; created_at is a guess

-- The column stands behind the body; this tells of it without reading bodies to their end.
CREATE INDEX undated_messages ON messages (conversation_id) WHERE dated = 0;
`;

/** Sessions whose cursor an import wrote, and their conversations. One walk for all: messages have no index by session. */
const IMPORTED = `
  SELECT DISTINCT session_ref, conversation_id FROM messages WHERE session_ref IN (
    SELECT session_ref FROM sessions WHERE json_valid(cursor) AND json_type(cursor, '$.import') = 'text')`;
const ROWS = `
  SELECT m.message_id, m.seq, m.created_at, m.body, m.encoding, c.created_at AS begun_at,
         EXISTS (SELECT 1 FROM message_parts p WHERE p.message_id = m.message_id AND p.type = 'payload') AS is_cut
  FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.session_ref = ?1 AND m.forgotten_at IS NULL AND m.seq > ?2 AND m.conversation_id = ?3 ORDER BY m.seq LIMIT ?4`;
const RECOUNT = `
  UPDATE conversations SET
    first_at = (SELECT min(m.created_at) FROM messages m WHERE m.conversation_id = conversations.conversation_id AND m.dated = 1),
    last_at = (SELECT max(m.created_at) FROM messages m WHERE m.conversation_id = conversations.conversation_id AND m.dated = 1)
  WHERE conversation_id IN (SELECT DISTINCT conversation_id FROM messages WHERE dated = 0)`;
const PAGE = 500;
/** An import prepares a line a moment before the conversation begins. */
const AHEAD_MS = 60_000;

interface StoredLine {
  readonly message_id: number;
  readonly created_at: number;
  readonly body: Uint8Array;
  readonly encoding: number;
  readonly begun_at: number;
  readonly is_cut: number;
}

/** After `sql`: marks the lines without their own time, recounts the first and last time, and removes copies of prompts from the index. */
export function finish(connection: Connection, onProgress: (done: number, total: number) => void): void {
  const imported = connection.all<{ session_ref: number; conversation_id: number }>(IMPORTED);
  for (const [index, { session_ref, conversation_id }] of imported.entries()) {
    markLines(connection, session_ref, conversation_id);
    onProgress(index + 1, imported.length);
  }
  if (imported.length > 0) connection.exec(RECOUNT);
  takeOutBookkeeping(connection, onProgress);
}

function markLines(connection: Connection, sessionRef: number, conversationId: number): void {
  let last: number | null = null;
  let seq = 0;
  for (;;) {
    const rows = connection.all<StoredLine & { seq: number }>(ROWS, sessionRef, seq, conversationId, PAGE);
    const undated: number[] = [];
    for (const row of rows) {
      if (isUndated(row, last)) undated.push(row.message_id);
      else last = row.created_at;
    }
    if (undated.length > 0)
      connection.run(
        "UPDATE messages SET dated = 0 WHERE message_id IN (SELECT value FROM json_each(?))",
        JSON.stringify(undated),
      );
    const end = rows.at(-1);
    if (!end || rows.length < PAGE) return;
    seq = end.seq;
  }
}

function isUndated(row: StoredLine, last: number | null): boolean {
  const isGuess = row.created_at === last || row.created_at >= row.begun_at - AHEAD_MS;
  // If a payload was cut out, it may have contained the time.
  return isGuess && row.is_cut === 0 && !mayCarryTime(row);
}

/** A damaged body must not prevent the archive from being opened: it keeps its time, and `verify` reports it. */
function mayCarryTime(row: StoredLine): boolean {
  try {
    return readOwnTime(decodeBody(row)) !== undefined;
  } catch {
    // Its bytes cannot be read, so its time is unknown.
    return true;
  }
}
