/**
 * One summary in the place of another, wherever that stands: in the cover or below another summary. Care replaces at once (`replaceSummary`,
 * forgetting); what upkeep made anew waits until an epoch begins (`remake.ts`). Both end in `takePlace`.
 *
 * Invariant: a replacement has the span and the counts of what it replaces, and its sources or what replaces those; the old one is retired
 * and can still be opened. What was made from something stale is stale itself.
 */
import type { Head } from "../../archive/head.ts";
import type { RunRow } from "../../archive/reads.ts";
import type { Row } from "../../archive/tables.ts";
import { must } from "../../model/errors.ts";
import { HIDDEN } from "../../model/message.ts";
import { nameSource } from "../folding.ts";
import type { PublishOutcome, RunItem, SummaryReplacement } from "../folding.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { insertSummary, toRunItems } from "./fold.ts";

export const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const IS_SAME_SPAN = `
  w.conversation_id = s.conversation_id AND w.depth = s.depth AND w.messages = s.messages
  AND (w.start_pos, w.start_seq, w.end_pos, w.end_seq) = (s.start_pos, s.start_seq, s.end_pos, s.end_seq)`;
/** `w` waits to replace the stale summary `s`. */
export const IS_WAITING = `w.state = 'prepared' AND w.stale = 0 AND ${IS_SAME_SPAN}`;
/** The sources of a summary as they are now; with ?2, what waits to replace them stands in their place. */
const SOURCES = `
  SELECT l.ordinal, m.position AS start_pos, m.seq, m.position AS end_pos, m.message_id, NULL AS summary_id,
         coalesce(n.tokens, m.tokens) AS tokens, 1 AS messages, -1 AS depth, m.hidden_now AS hidden,
         coalesce(m.newest, m.message_id) AS version_id, m.created_at AS earliest_at, m.created_at AS latest_at,
         NULL AS descendant_count, NULL AS end_seq, 0 AS stale
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest
  WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.ordinal, s.start_pos, s.start_seq, s.end_pos, NULL, coalesce(w.summary_id, s.summary_id), coalesce(w.tokens, s.tokens),
         s.messages, s.depth, CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, NULL, coalesce(w.earliest_at, s.earliest_at),
         coalesce(w.latest_at, s.latest_at), s.descendant_count, s.end_seq, coalesce(w.stale, s.stale)
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
  LEFT JOIN summaries w ON ?2 = 1 AND s.stale = 1 AND ${IS_WAITING}
  WHERE p.summary_id = ?1 ORDER BY 1`;
const MOVE_DERIVED = "UPDATE summary_parents SET parent_summary_id = ?2 WHERE parent_summary_id = ?1";
export const RETIRE = "UPDATE summaries SET state = 'retired' WHERE summary_id = ?";
/** A text that was made ahead for the same place is not wanted any more. */
const RETIRE_WAITING = `
  UPDATE summaries SET state = 'retired'
  WHERE state = 'prepared' AND (conversation_id, depth, start_pos, start_seq, end_pos, end_seq) =
    (SELECT conversation_id, depth, start_pos, start_seq, end_pos, end_seq FROM summaries WHERE summary_id = ?)`;
const ITEM = `
  SELECT i.start_pos, i.seq, i.tokens, i.messages, i.hidden FROM summaries s JOIN context_items i
    ON (i.conversation_id, i.start_pos, i.seq) = (s.conversation_id, s.start_pos, s.start_seq) AND i.summary_id = s.summary_id
  WHERE s.conversation_id = ? AND s.summary_id = ?`;
const SET_ITEM = `
  UPDATE context_items SET summary_id = ?, tokens = ?, messages = ?, hidden = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?`;

/** A row of the cover that a summary stands in. */
export interface ItemRow {
  start_pos: number;
  seq: number;
  tokens: number;
  messages: number;
  hidden: number;
}

export const findItem = (
  connection: Connection,
  conversationId: number,
  summaryId: string,
): ItemRow | undefined => connection.get<ItemRow>(ITEM, conversationId, summaryId);

export const selectSources = (connection: Connection, summaryId: string, withWaiting = false): RunRow[] =>
  connection.all<RunRow>(SOURCES, summaryId, withWaiting ? 1 : 0);

export function readSources({ connection, files }: StoreContext, summaryId: string): RunItem[] {
  return connection.read(() => toRunItems(connection, files, selectSources(connection, summaryId)));
}

/** Whether a summary still has the sources, in the versions, that a new text was made from. */
export function hasSources(
  connection: Connection,
  { oldId, sourceKeys }: Pick<SummaryReplacement, "oldId" | "sourceKeys">,
): boolean {
  return isMadeFrom(selectSources(connection, oldId), sourceKeys);
}

export function isMadeFrom(rows: readonly RunRow[], sourceKeys: readonly string[]): boolean {
  const nameRow = (row: RunRow): string =>
    nameSource({
      hidden: row.hidden,
      messageId: row.message_id,
      versionId: row.version_id,
      summary: row.summary_id === null ? null : { summaryId: row.summary_id },
    });
  return rows.length === sourceKeys.length && rows.every((row, i) => nameRow(row) === sourceKeys[i]);
}

export function replaceSummary(
  context: StoreContext,
  replacement: SummaryReplacement,
  now: number,
): PublishOutcome {
  const { connection } = context;
  return connection.write(() => {
    const old = connection.get<Row<"summaries">>(SUMMARY, replacement.oldId);
    if (!old || old.state !== "cover" || !hasSources(connection, replacement)) return { kind: "stale" };
    const head = openHeads(connection).of(old.conversation_id);
    putInstead(context, head, replacement, now);
    head.save(connection, now);
    const { summaryId, tokens } = replacement.summary;
    return { kind: "published", summaryId, tokensBefore: old.tokens, tokensAfter: tokens };
  });
}

/** Inside the caller's transaction: the new summary stands wherever the old one stood, and the old one is retired. */
export function putInstead(
  context: StoreContext,
  head: Head,
  { oldId, summary }: Omit<SummaryReplacement, "sourceKeys">,
  now: number,
): void {
  const { connection } = context;
  const { conversationId } = head;
  const rows = selectSources(connection, oldId);
  const isStale = rows.some((row) => row.stale === 1);
  insertSummary(context, head, { conversationId, summary, now, state: "cover", isStale }, rows);
  connection.run(MOVE_DERIVED, oldId, summary.summaryId);
  const isInCover = takePlace(connection, head, oldId, summary.summaryId);
  connection.run(RETIRE_WAITING, oldId);
  head.noteSummary(isInCover);
}

/** Inside the caller's transaction: a stored summary is in force from now on, and the old one is not. Whether it stands in the cover itself. */
export function takePlace(connection: Connection, head: Head, oldId: string, newId: string): boolean {
  const { conversationId } = head;
  connection.update("summaries", { summary_id: newId }, { state: "cover", published_seq: head.seq });
  connection.run(RETIRE, oldId);
  const item = findItem(connection, conversationId, oldId);
  if (!item) return false;
  const { tokens, messages } = must(
    connection.get<{ tokens: number; messages: number }>(SUMMARY, newId),
    `summary ${newId}`,
  );
  // A summary of which nothing is shown any more is not shown either.
  const hidden = messages > 0 ? 0 : item.hidden || HIDDEN.branch;
  connection.run(SET_ITEM, newId, tokens, messages, hidden, conversationId, item.start_pos, item.seq);
  head.noteShown(
    messages - item.messages,
    (hidden === 0 ? tokens : 0) - (item.hidden === 0 ? item.tokens : 0),
  );
  return true;
}
