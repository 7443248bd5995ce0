/**
 * Replacing summaries that tell something old. What replaces them is made from below and waits, stored as prepared, until an epoch begins:
 * a context shows its summaries and the ids of what those were made from, and the front of a running context keeps its bytes. What it is
 * to replace something is said in `replace.ts`.
 */
import { isMadeOf, must, planStoreRemade, takePlace } from "@lossless/core/adapter";
import type { Head } from "@lossless/core/adapter";
import type { PublishOutcome, Row, StaleSummary, SummaryReplacement } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { toRunItems } from "./fold.ts";
import { toSummary } from "./graph.ts";
import { IS_WAITING, PlanReads } from "./plan-reads.ts";
import { answerNow, writePlan } from "./plans.ts";

/** Stale itself, not replaced yet, and nothing below it that is stale and not replaced yet. */
const NEXT_STALE = `
  SELECT * FROM summaries t INDEXED BY stale_summaries
  WHERE t.conversation_id = ? AND t.state = 'cover' AND t.stale = 1
    AND NOT EXISTS (SELECT 1 FROM summaries s JOIN summaries w ON ${IS_WAITING} WHERE s.summary_id = t.summary_id)
    AND NOT EXISTS (
      SELECT 1 FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id LEFT JOIN summaries w ON ${IS_WAITING}
      WHERE p.summary_id = t.summary_id AND s.stale = 1 AND w.summary_id IS NULL)
  ORDER BY t.depth, t.start_pos LIMIT 1`;
const REPLACED_SOURCES = `
  SELECT o.parent_summary_id AS old_id, n.parent_summary_id AS new_id FROM summary_parents o JOIN summary_parents n USING (ordinal)
  WHERE o.summary_id = ? AND n.summary_id = ? AND o.parent_summary_id <> n.parent_summary_id`;
const WAITING = `
  SELECT s.start_pos, s.end_pos, s.summary_id AS old_id, w.summary_id AS new_id
  FROM summaries s CROSS JOIN context_items i
    ON (i.conversation_id, i.start_pos, i.seq) = (s.conversation_id, s.start_pos, s.start_seq) AND i.summary_id = s.summary_id
  JOIN summaries w ON ${IS_WAITING}
  WHERE s.conversation_id = ? AND s.stale = 1 ORDER BY s.start_pos`;
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
    const stale = connection.get<Row<"summaries">>(NEXT_STALE, conversationId);
    if (!stale) return null;
    const rows = new PlanReads(connection).currentSources(stale.summary_id, true);
    return { summary: toSummary(stale), run: toRunItems(connection, files, rows) };
  });
}

export const storeRemade = (
  context: StoreContext,
  replacement: SummaryReplacement,
  now: number,
): PublishOutcome => writePlan(context, () => planStoreRemade(replacement, now));

interface WaitingRow {
  start_pos: number;
  end_pos: number;
  old_id: string;
  new_id: string;
}

export function swapRemade(
  { connection }: StoreContext,
  request: { conversationId: number; now: number },
): number {
  const { conversationId, now } = request;
  const reads = new PlanReads(connection);
  return connection.write(() => {
    const waiting = connection
      .all<WaitingRow>(WAITING, conversationId)
      .filter((row) => isMadeOf(reads.sources([row.new_id]), reads.currentSources(row.old_id, true)));
    if (waiting.length === 0) return 0;
    const head = openHeads(connection).of(conversationId);
    for (const row of waiting) {
      swap(connection, head, row.old_id, row.new_id);
      connection.run(DROP_STAND_INS, conversationId, row.end_pos, row.start_pos);
    }
    head.noteSummary(true, 0);
    head.save(connection, now);
    return waiting.length;
  });
}

/** Puts a summary and what it brings along below it in force. */
function swap(connection: Connection, head: Head, oldId: string, newId: string): void {
  const reads = new PlanReads(connection);
  const [old] = reads.summaries([oldId]);
  const [next] = reads.summaries([newId]);
  answerNow(
    { connection },
    takePlace(connection, head, must(old, `summary ${oldId}`), must(next, `summary ${newId}`)),
  );
  for (const below of connection.all<{ old_id: string; new_id: string }>(REPLACED_SOURCES, oldId, newId)) {
    swap(connection, head, below.old_id, below.new_id);
  }
}
