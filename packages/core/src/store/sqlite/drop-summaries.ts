/**
 * Takes all summaries of a conversation away and shows its messages again. For a conversation whose graph or cover does not prove, as a forged
 * archive could leave it before imports were proven. Everything removed here was made from messages, and can be made from them again.
 *
 * Invariant: no message, no record and no link of the chain changes; afterwards the cover holds one item for each first message.
 */
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";

const SUMMARY_IDS = "SELECT summary_id FROM summaries WHERE conversation_id = ?";
/** Forks show summaries of their parent by id, and a summary elsewhere may claim one of these as its source. */
const IN_USE = `
  SELECT 1 AS found FROM fork_items WHERE summary_id IN (${SUMMARY_IDS.replace("?", "?1")})
  UNION ALL SELECT 1 FROM summary_parents p JOIN summaries s USING (summary_id)
  WHERE p.parent_summary_id IN (${SUMMARY_IDS.replace("?", "?1")}) AND s.conversation_id <> ?1 LIMIT 1`;
const DELETIONS = [
  "DELETE FROM context_items WHERE conversation_id = ?",
  `DELETE FROM summary_messages WHERE summary_id IN (${SUMMARY_IDS})`,
  `DELETE FROM summary_parents WHERE summary_id IN (${SUMMARY_IDS})`,
  `DELETE FROM summary_refs WHERE summary_id IN (${SUMMARY_IDS})`,
  "DELETE FROM summaries WHERE conversation_id = ?",
];
const INSERT_ITEMS = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, tokens, messages, depth, hidden)
  SELECT m.conversation_id, m.position, m.seq, m.position, m.message_id, coalesce(n.tokens, m.tokens), 1, -1, m.hidden_now
  FROM messages m LEFT JOIN messages n ON n.message_id = m.newest WHERE m.conversation_id = ? AND m.revises IS NULL`;
const SET_COUNTERS = `
  UPDATE conversations SET summary_count = 0, fold_revision = fold_revision + 1, epoch_seq = head_seq,
    (shown_messages, shown_tokens) = (
      SELECT count(*), coalesce(sum(tokens), 0) FROM context_items WHERE conversation_id = ?1 AND hidden = 0)
  WHERE conversation_id = ?1`;

/** How many were removed; null, and nothing happens, if something outside the conversation uses one of them. */
export function dropSummaries({ connection, index }: StoreContext, conversationId: number): number | null {
  return connection.write(() => {
    if (connection.get(IN_USE, conversationId) !== undefined) return null;
    const ids = listIds(connection, conversationId);
    for (const id of ids) index.removeSummary(id);
    for (const sql of DELETIONS) connection.run(sql, conversationId);
    connection.run(INSERT_ITEMS, conversationId);
    connection.run(SET_COUNTERS, conversationId);
    return ids.length;
  });
}

const listIds = (connection: Connection, conversationId: number): string[] =>
  connection.all<{ summary_id: string }>(SUMMARY_IDS, conversationId).map((row) => row.summary_id);
