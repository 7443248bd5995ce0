/** Writing a summary that comes from elsewhere: moved in, or transplanted. What is made here comes from plans. */
import { addSummary, Changes, hashSummary } from "@lossless/core/adapter";
import type { MovedSummary } from "@lossless/core/ports";
import type { StoreContext } from "./context.ts";
import { applyChanges } from "./plans.ts";

/** Everything the row of a summary says, but for its sources. */
interface SummaryFacts extends Omit<MovedSummary, "sources"> {
  readonly conversationId: number;
}

/** Inside the caller's transaction. Sources in order: messages by their number in this database, summaries by their id. */
export function writeSummary(
  context: StoreContext,
  facts: SummaryFacts,
  sources: readonly (number | string)[],
): void {
  const bound = {
    summary_id: facts.summaryId,
    conversation_id: facts.conversationId,
    kind: facts.kind,
    depth: facts.depth,
    content: facts.content,
    tokens: facts.tokens,
    model: facts.model,
    level: facts.level,
    created_at: facts.createdAt,
    previous_id: facts.previousId,
  };
  const row = {
    ...bound,
    state: facts.state,
    start_pos: facts.startPosition,
    start_seq: facts.startSeq,
    end_pos: facts.endPosition,
    end_seq: facts.endSeq,
    messages: facts.messages,
    descendant_count: facts.descendantCount,
    source_tokens: facts.sourceTokens,
    earliest_at: facts.earliestAt,
    latest_at: facts.latestAt,
    hash: hashSummary(bound),
    stale: facts.isStale ? 1 : 0,
    is_root: facts.isRoot ? 1 : 0,
    made_at_seq: facts.madeAtSeq,
    published_seq: facts.publishedSeq,
  };
  const changes = new Changes();
  addSummary(changes, row, sources);
  applyChanges(context, changes);
}
