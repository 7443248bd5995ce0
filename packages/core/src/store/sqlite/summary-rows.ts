/**
 * Writing the row of a summary, the links to its sources and its terms. Folding, care, moving in and transplanting all come through here.
 *
 * Invariant: the hash binds everything about a summary that never changes; the links are numbered from 0 without a gap.
 */
import { hash } from "node:crypto";
import type { MovedSummary } from "../transfer.ts";
import type { StoreContext } from "./context.ts";

const INSERT_SUMMARY = `
  INSERT INTO summaries (summary_id, conversation_id, kind, depth, state, start_pos, start_seq, end_pos, end_seq, messages,
    descendant_count, tokens, source_tokens, earliest_at, latest_at, content, hash, model, level, stale, is_root, made_at_seq, created_at,
    published_seq, previous_id)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
export const INSERT_MESSAGE_LINK =
  "INSERT INTO summary_messages (summary_id, ordinal, message_id) VALUES (?, ?, ?)";
const INSERT_SOURCE_LINK =
  "INSERT INTO summary_parents (summary_id, ordinal, parent_summary_id) VALUES (?, ?, ?)";

/** Everything the row of a summary says, but for its sources. */
export interface SummaryFacts extends Omit<MovedSummary, "sources"> {
  readonly conversationId: number;
}

export function hashSummary(
  facts: Pick<
    SummaryFacts,
    | "summaryId"
    | "conversationId"
    | "depth"
    | "content"
    | "tokens"
    | "model"
    | "level"
    | "createdAt"
    | "previousId"
  > & { readonly kind: string },
): Buffer {
  const { summaryId, conversationId, kind, depth, content, tokens, model, level, createdAt, previousId } =
    facts;
  const bound = [summaryId, conversationId, kind, depth, content, tokens, model, level, createdAt];
  // What has none is bound as it was before a previous context was kept.
  return hash("sha256", JSON.stringify(previousId === null ? bound : [...bound, previousId]), "buffer");
}

/** Sources in order: messages by their number in this database, summaries by their id. */
export function writeSummary(
  { connection, index }: StoreContext,
  facts: SummaryFacts,
  sources: readonly (number | string)[],
): void {
  const { summaryId, conversationId, content } = facts;
  connection.run(
    INSERT_SUMMARY,
    summaryId,
    conversationId,
    facts.kind,
    facts.depth,
    facts.state,
    facts.startPosition,
    facts.startSeq,
    facts.endPosition,
    facts.endSeq,
    facts.messages,
    facts.descendantCount,
    facts.tokens,
    facts.sourceTokens,
    facts.earliestAt,
    facts.latestAt,
    content,
    hashSummary(facts),
    facts.model,
    facts.level,
    facts.isStale ? 1 : 0,
    facts.isRoot ? 1 : 0,
    facts.madeAtSeq,
    facts.createdAt,
    facts.publishedSeq,
    facts.previousId,
  );
  for (const [ordinal, source] of sources.entries()) {
    if (typeof source === "string") connection.run(INSERT_SOURCE_LINK, summaryId, ordinal, source);
    else connection.run(INSERT_MESSAGE_LINK, summaryId, ordinal, source);
  }
  index.addSummary({ summaryId, conversationId, content });
}
