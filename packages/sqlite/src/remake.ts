/** Finds what to remake; the rules are in `archive/remake.ts`. */
import { must, planNextStale, toSummary } from "@lossless/core/adapter";
import type { Row, StaleSummary } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import { toRunItems } from "./fold.ts";
import { answerNow } from "./plans.ts";

const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ?";
const ANY_STALE = `
  SELECT 1 AS found FROM summaries INDEXED BY stale_summaries
  WHERE conversation_id = ? AND state = 'cover' AND stale = 1 LIMIT 1`;

export function hasStale({ connection }: StoreContext, conversationId: number): boolean {
  return connection.get(ANY_STALE, conversationId) !== undefined;
}

export function readStale({ connection, files }: StoreContext, conversationId: number): StaleSummary | null {
  return connection.read(() => {
    const next = answerNow({ connection }, planNextStale(conversationId));
    if (next === null) return null;
    const stale = must(connection.get<Row<"summaries">>(SUMMARY, next.summaryId), "a stale summary");
    return { summary: toSummary(stale), run: toRunItems(connection, files, next.sources) };
  });
}
