/**
 * A search needs the times and places of thousands of messages, and their rows are as long as their texts: a few to a page of the file. This
 * index has them side by side, a hundred to a page, so that a search in a large archive reads few pages.
 *
 * Its condition holds for every message. It is there because a query must repeat it to be given the index: no other query, which needs the
 * rows anyway, ever takes it.
 */
import type { Connection } from "../connection.ts";

export const version = 23;

export const sql = `
CREATE INDEX message_places ON messages (message_id, conversation_id, session_ref, seq, created_at, revises, newest, forgotten_at)
  WHERE message_id > 0;
`;

/** An entry, once in the log and once in the database. */
const ENTRY_BYTES = 2 * 32;

export const countBytes = (connection: Connection): number =>
  ENTRY_BYTES *
  (connection.get<{ n: number }>("SELECT coalesce(max(message_id), 0) AS n FROM messages")?.n ?? 0);
