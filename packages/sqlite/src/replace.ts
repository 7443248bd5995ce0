/** One summary in the place of another; the rules are in `archive/replace.ts`. */
import { planReplaceSummary } from "@lossless/core/adapter";
import type { PublishOutcome, RunItem, SummaryReplacement } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { toRunItems } from "./fold.ts";
import { PlanReads } from "./plan-reads.ts";
import { writePlan } from "./plans.ts";

const ITEM = `
  SELECT i.start_pos, i.seq, i.tokens, i.messages, i.hidden FROM summaries s JOIN context_items i
    ON (i.conversation_id, i.start_pos, i.seq) = (s.conversation_id, s.start_pos, s.start_seq) AND i.summary_id = s.summary_id
  WHERE s.conversation_id = ? AND s.summary_id = ?`;

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

export function readSources({ connection, files }: StoreContext, summaryId: string): RunItem[] {
  return connection.read(() =>
    toRunItems(connection, files, new PlanReads(connection).currentSources(summaryId, false)),
  );
}

export const replaceSummary = (
  context: StoreContext,
  replacement: SummaryReplacement,
  now: number,
): PublishOutcome => writePlan(context, () => planReplaceSummary(replacement, now));
