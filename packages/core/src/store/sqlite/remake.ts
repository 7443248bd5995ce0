/**
 * Replacing summaries that tell something old. What replaces them is made from below and waits, stored as prepared, until an epoch begins:
 * a context shows its summaries and the ids of what those were made from, and the front of a running context keeps its bytes.
 *
 * Invariant: a replacement has the span and the counts of what it replaces, and its sources or what replaces those; the old one is retired
 * and can still be opened.
 */
import type { PublishOutcome, RemadeSummary, StaleSummary } from "../folding.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { ConversationHead } from "./conversation-head.ts";
import { hasSources, insertSummary, isSameRun, toRunItems } from "./fold.ts";
import { toSummary } from "./graph.ts";

const IS_SAME_SPAN = `
  w.conversation_id = s.conversation_id AND w.depth = s.depth AND w.messages = s.messages
  AND (w.start_pos, w.start_seq, w.end_pos, w.end_seq) = (s.start_pos, s.start_seq, s.end_pos, s.end_seq)`;
const IS_WAITING = `w.state = 'prepared' AND w.stale = 0 AND ${IS_SAME_SPAN}`;
/** Stale itself, not replaced yet, and nothing below it that is stale and not replaced yet. */
const NEXT_STALE = `
  SELECT * FROM summaries t INDEXED BY stale_summaries
  WHERE t.conversation_id = ? AND t.state = 'cover' AND t.stale = 1
    AND NOT EXISTS (SELECT 1 FROM summaries s JOIN summaries w ON ${IS_WAITING} WHERE s.summary_id = t.summary_id)
    AND NOT EXISTS (
      SELECT 1 FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id LEFT JOIN summaries w ON ${IS_WAITING}
      WHERE p.summary_id = t.summary_id AND s.stale = 1 AND w.summary_id IS NULL)
  ORDER BY t.depth, t.start_pos LIMIT 1`;
/** The sources of a summary as they are now, with what is to replace them in their place. */
const SOURCE_ROWS = `
  SELECT l.ordinal, m.position AS start_pos, m.seq, m.position AS end_pos, m.message_id, NULL AS summary_id,
         coalesce(n.tokens, m.tokens) AS tokens, 1 AS messages, -1 AS depth, m.hidden_now AS hidden,
         coalesce(m.newest, m.message_id) AS version_id, m.created_at AS earliest_at, m.created_at AS latest_at,
         NULL AS descendant_count, NULL AS start_seq, NULL AS end_seq
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest
  WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.ordinal, s.start_pos, s.start_seq, s.end_pos, NULL, coalesce(w.summary_id, s.summary_id), coalesce(w.tokens, s.tokens),
         s.messages, s.depth, 0, NULL, coalesce(w.earliest_at, s.earliest_at), coalesce(w.latest_at, s.latest_at), s.descendant_count,
         s.start_seq, s.end_seq
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id LEFT JOIN summaries w ON s.stale = 1 AND ${IS_WAITING}
  WHERE p.summary_id = ?1 ORDER BY 1`;
const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const SET_STATE = "UPDATE summaries SET state = ? WHERE summary_id = ?";
const REPLACED_SOURCES = `
  SELECT o.parent_summary_id AS old_id, n.parent_summary_id AS new_id FROM summary_parents o JOIN summary_parents n USING (ordinal)
  WHERE o.summary_id = ? AND n.summary_id = ? AND o.parent_summary_id <> n.parent_summary_id`;
const WAITING = `
  SELECT i.start_pos, i.seq, i.hidden, i.tokens, s.summary_id AS old_id, s.end_pos, w.summary_id AS new_id, w.tokens AS new_tokens
  FROM summaries s CROSS JOIN context_items i
    ON (i.conversation_id, i.start_pos, i.seq) = (s.conversation_id, s.start_pos, s.start_seq) AND i.summary_id = s.summary_id
  JOIN summaries w ON ${IS_WAITING}
  WHERE s.conversation_id = ? AND s.stale = 1 ORDER BY i.start_pos`;
const SET_ITEM = `
  UPDATE context_items SET summary_id = ?, tokens = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?`;
/** Whatever was made from the old text ahead of need tells the same old thing. */
const DROP_STAND_INS = `
  UPDATE summaries SET state = 'retired'
  WHERE conversation_id = ? AND state IN ('prepared', 'reserve') AND start_pos <= ? AND end_pos >= ?`;

const ANY_STALE = `
  SELECT 1 AS found FROM summaries INDEXED BY stale_summaries
  WHERE conversation_id = ? AND state = 'cover' AND stale = 1 LIMIT 1`;

export function hasStale({ connection }: StoreContext, conversationId: number): boolean {
  return connection.get(ANY_STALE, conversationId) !== undefined;
}

export function readStale({ connection, files }: StoreContext, conversationId: number): StaleSummary | null {
  return connection.read(() => {
    const stale = connection.get(NEXT_STALE, conversationId);
    if (!stale) return null;
    const rows = connection.all(SOURCE_ROWS, stale.summary_id as string);
    return { summary: toSummary(stale), run: toRunItems(connection, files, rows) };
  });
}

export function storeRemade(context: StoreContext, request: RemadeSummary): PublishOutcome {
  const { connection } = context;
  const { conversationId, replacesId, summary, now } = request;
  return connection.write(() => {
    const old = connection.get(SUMMARY, replacesId);
    const rows = connection.all(SOURCE_ROWS, replacesId);
    if (!old || old.state !== "cover" || old.stale !== 1 || !isSameRun(rows, request.run))
      return { kind: "stale" };
    const head = ConversationHead.read(connection, conversationId);
    insertSummary(context, head, { conversationId, summary, now, state: "prepared" }, rows);
    head.noteSummary(false);
    head.save(connection, now);
    return {
      kind: "published",
      summaryId: summary.summaryId,
      tokensBefore: old.tokens as number,
      tokensAfter: summary.tokens,
    };
  });
}

export function swapRemade(
  { connection }: StoreContext,
  request: { conversationId: number; now: number },
): number {
  const { conversationId, now } = request;
  return connection.write(() => {
    const waiting = connection
      .all(WAITING, conversationId)
      .filter((row) =>
        hasSources(connection, row.new_id as string, connection.all(SOURCE_ROWS, row.old_id as string)),
      );
    if (waiting.length === 0) return 0;
    const head = ConversationHead.read(connection, conversationId);
    for (const row of waiting) swap(connection, head, row);
    head.noteSummary(true, 0);
    head.save(connection, now);
    return waiting.length;
  });
}

function swap(connection: Connection, head: ConversationHead, row: Row): void {
  const [start, end] = [row.start_pos as number, row.end_pos as number];
  replace(connection, row.old_id as string, row.new_id as string);
  connection.run(
    SET_ITEM,
    row.new_id as string,
    row.new_tokens as number,
    head.conversationId,
    start,
    row.seq as number,
  );
  connection.run(DROP_STAND_INS, head.conversationId, end, start);
  if (row.hidden === 0) head.noteShown(0, (row.new_tokens as number) - (row.tokens as number));
}

/** Puts a summary and what it brings along below it in force. */
function replace(connection: Connection, oldId: string, newId: string): void {
  connection.run(SET_STATE, "cover", newId);
  connection.run(SET_STATE, "retired", oldId);
  for (const below of connection.all<{ old_id: string; new_id: string }>(REPLACED_SOURCES, oldId, newId)) {
    replace(connection, below.old_id, below.new_id);
  }
}
