/**
 * Removes summaries of a conversation that do not prove, with all that were made from them, and shows what they stood for again. For a
 * conversation whose graph or cover is damaged. Everything removed here was made from messages, and can be made from them again.
 *
 * Invariant: no message, no record and no link of the chain changes; afterwards the cover holds the highest published summaries that are left, and
 * an item for each first message under none of them.
 */
import { HIDDEN, hashSummary } from "@lossless/core/adapter";
import type { Row } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";

const ALL = "SELECT summary_id AS id FROM summaries WHERE conversation_id = ?";
/** The given ones, and whatever was made from them. */
const WITH_THOSE_ABOVE = `
  WITH RECURSIVE above (id) AS (
    SELECT value FROM json_each(?2)
    UNION SELECT p.summary_id FROM above a JOIN summary_parents p ON p.parent_summary_id = a.id)
  SELECT s.summary_id AS id FROM above a JOIN summaries s ON s.summary_id = a.id WHERE s.conversation_id = ?1`;
const CHOSEN = "(SELECT value FROM json_each(?1))";
/** Forks show summaries of their parent by id, and a summary elsewhere may claim one of these as its source. */
const IN_USE = `
  SELECT 1 AS found FROM fork_items WHERE summary_id IN ${CHOSEN}
  UNION ALL SELECT 1 FROM summary_parents WHERE parent_summary_id IN ${CHOSEN} AND summary_id NOT IN ${CHOSEN} LIMIT 1`;
const DELETIONS = ["summary_messages", "summary_parents", "summary_refs", "summaries"].map(
  (table) => `DELETE FROM ${table} WHERE summary_id IN ${CHOSEN}`,
);
const WITHOUT_PREVIOUS = `
  SELECT * FROM summaries s WHERE conversation_id = ? AND previous_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM summaries p WHERE p.summary_id = s.previous_id)`;
const DROP_PREVIOUS = "UPDATE summaries SET previous_id = NULL, hash = ? WHERE summary_id = ?";
const DELETE_ITEMS = "DELETE FROM context_items WHERE conversation_id = ?";
const TOPS = `
  SELECT s.* FROM summaries s WHERE s.conversation_id = ?1 AND s.state = 'cover' AND NOT EXISTS (
    SELECT 1 FROM summary_parents p JOIN summaries a ON a.summary_id = p.summary_id
    WHERE p.parent_summary_id = s.summary_id AND a.state = 'cover')`;
const INSERT_SUMMARIES = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, summary_id, tokens, messages, depth, hidden)
  SELECT conversation_id, start_pos, start_seq, end_pos, summary_id, tokens, messages, depth,
    CASE WHEN messages = 0 THEN ${HIDDEN.branch} ELSE 0 END FROM (${TOPS})`;
const INSERT_MESSAGES = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, tokens, messages, depth, hidden)
  WITH RECURSIVE below (id) AS (
    SELECT summary_id FROM (${TOPS})
    UNION SELECT p.parent_summary_id FROM below b JOIN summary_parents p ON p.summary_id = b.id)
  SELECT m.conversation_id, m.position, m.seq, m.position, m.message_id, coalesce(n.tokens, m.tokens), 1, -1, m.hidden_now
  FROM messages m LEFT JOIN messages n ON n.message_id = m.newest
  WHERE m.conversation_id = ?1 AND m.revises IS NULL
    AND m.message_id NOT IN (SELECT l.message_id FROM below b JOIN summary_messages l ON l.summary_id = b.id)`;
const SET_COUNTERS = `
  UPDATE conversations SET fold_revision = fold_revision + 1, epoch_seq = head_seq,
    summary_count = (SELECT count(*) FROM summaries WHERE conversation_id = ?1),
    (shown_messages, shown_tokens) = (
      SELECT coalesce(sum(messages), 0), coalesce(sum(tokens), 0) FROM context_items WHERE conversation_id = ?1 AND hidden = 0)
  WHERE conversation_id = ?1`;

/** How many were removed, all when none are named; null, and nothing happens, if something else uses one of them. */
export function dropSummaries(
  { connection, index }: StoreContext,
  conversationId: number,
  summaryIds: readonly string[] | null,
): number | null {
  return connection.write(() => {
    const rows =
      summaryIds === null
        ? connection.all<{ id: string }>(ALL, conversationId)
        : connection.all<{ id: string }>(WITH_THOSE_ABOVE, conversationId, JSON.stringify(summaryIds));
    const ids = rows.map(({ id }) => id);
    const chosen = JSON.stringify(ids);
    if (connection.get(IN_USE, chosen) !== undefined) return null;
    for (const id of ids) index.removeSummary(id);
    connection.run(DELETE_ITEMS, conversationId);
    for (const sql of DELETIONS) connection.run(sql, chosen);
    dropLostPrevious(connection, conversationId);
    for (const sql of [INSERT_SUMMARIES, INSERT_MESSAGES, SET_COUNTERS]) connection.run(sql, conversationId);
    return ids.length;
  });
}

/** A summary that was written after one that is gone no longer names it; the hash binds that name. */
function dropLostPrevious(connection: Connection, conversationId: number): void {
  for (const row of connection.all<Row<"summaries">>(WITHOUT_PREVIOUS, conversationId))
    connection.run(DROP_PREVIOUS, hashSummary({ ...row, previous_id: null }), row.summary_id);
}
