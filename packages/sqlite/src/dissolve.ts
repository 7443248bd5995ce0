/**
 * A summary gives way to what it was made from: its sources stand in the context again, and it is retired. Spans and counts are those of the
 * sources, so cover and graph stay right.
 */
import { EngineError, formatMessageId, must } from "@lossless/core/adapter";
import type { DissolveReport, Row, RunRow } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { PlanReads } from "./plan-reads.ts";
import { findItem } from "./replace.ts";

const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const DELETE_ITEM = "DELETE FROM context_items WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const COUNT_ITEMS = `
  SELECT count(*) FILTER (WHERE (start_pos, seq) < (?2, ?3)) AS before, count(*) FILTER (WHERE (start_pos, seq) > (?2, ?3)) AS behind
  FROM context_items WHERE conversation_id = ?1`;
/** What was made ahead from a summary cannot be published once that summary has left the cover. */
const RETIRE_DERIVED = `
  UPDATE summaries SET state = 'retired' WHERE state IN ('prepared', 'reserve')
    AND summary_id IN (SELECT summary_id FROM summary_parents WHERE parent_summary_id = ?)`;

export function dissolveSummary(
  { connection }: StoreContext,
  { summaryId, isDry, now }: { summaryId: string; isDry: boolean; now: number },
): DissolveReport | null {
  const work = (): DissolveReport | null => {
    const summary = connection.get<Row<"summaries">>(SUMMARY, summaryId);
    if (!summary)
      throw new EngineError("not_found", `cannot dissolve ${summaryId}: there is no such summary`);
    const conversationId = summary.conversation_id;
    const item = findItem(connection, conversationId, summaryId);
    if (!item) return null;
    const sources = new PlanReads(connection).currentSources(summaryId, false);
    const places = connection.get<{ before: number; behind: number }>(
      COUNT_ITEMS,
      conversationId,
      item.start_pos,
      item.seq,
    );
    const tokensBefore = item.hidden === 0 ? item.tokens : 0;
    const tokensAfter = sources.reduce((sum, row) => sum + (row.hidden === 0 ? row.tokens : 0), 0);
    if (!isDry)
      putSourcesBack(connection, conversationId, summaryId, item, sources, tokensAfter - tokensBefore, now);
    return {
      summaryId,
      conversationId,
      sources: sources.map((row) => ({
        id: row.summary_id ?? formatMessageId(must(row.message_id, "a message or a summary")),
        tokens: row.tokens,
        isShown: row.hidden === 0,
      })),
      tokensBefore,
      tokensAfter,
      ordinal: places?.before ?? 0,
      itemsBehind: places?.behind ?? 0,
    };
  };
  return isDry ? connection.read(work) : connection.write(work);
}

function putSourcesBack(
  connection: Connection,
  conversationId: number,
  summaryId: string,
  item: { start_pos: number; seq: number },
  sources: readonly RunRow[],
  tokensMore: number,
  now: number,
): void {
  const head = openHeads(connection).of(conversationId);
  connection.run(DELETE_ITEM, conversationId, item.start_pos, item.seq);
  for (const row of sources) {
    connection.insert("context_items", {
      conversation_id: conversationId,
      start_pos: row.start_pos,
      seq: row.seq,
      end_pos: row.end_pos,
      message_id: row.message_id,
      summary_id: row.summary_id,
      tokens: row.tokens,
      messages: row.messages,
      depth: row.depth,
      hidden: row.hidden,
    });
  }
  connection.update("summaries", { summary_id: summaryId }, { state: "retired" });
  connection.run(RETIRE_DERIVED, summaryId);
  head.noteShown(0, tokensMore);
  head.noteSummary(true, 0);
  head.save(connection, now);
}
