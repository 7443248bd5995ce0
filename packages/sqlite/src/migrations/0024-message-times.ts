/**
 * Thousands of messages can be equally good answers to a search, and the newest of them are shown. This index says when the newest message of
 * every 4096 consecutive ones was written, so that a search reads the times of those only that can be among the newest.
 *
 * Like `message_places` it has a condition that holds for every message, so that no other query takes it.
 */
import type { Connection } from "../connection.ts";

export const version = 24;

export const sql = `
CREATE INDEX message_times ON messages (message_id >> 12, created_at) WHERE message_id > 0;
`;

/** An entry, once in the log and once in the database. */
const ENTRY_BYTES = 2 * 18;

export const countBytes = (connection: Connection): number =>
  ENTRY_BYTES *
  (connection.get<{ n: number }>("SELECT coalesce(max(message_id), 0) AS n FROM messages")?.n ?? 0);
