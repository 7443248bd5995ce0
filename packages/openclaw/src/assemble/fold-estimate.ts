/**
 * Estimates the cost of folding before any model is called: calls and tokens for histories of this length, counted as the planner counts. Later
 * messages, reserve summaries and rejected summaries are not included. Pure.
 */

import type { ConversationRow, Settings } from "@lossless/core";

export interface FoldEstimate {
  /** Conversations that are longer than a context. */
  readonly conversations: number;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export const NO_FOLDING: FoldEstimate = { conversations: 0, calls: 0, inputTokens: 0, outputTokens: 0 };

/** The room for messages when the model is not known yet. */
const ROOM_TOKENS = 100_000;
/** Tokens of a prompt beside the text to summarise. */
const PROMPT_TOKENS = 700;

type Lengths = Pick<ConversationRow, "shownTokens">;
type Policy = Pick<
  Settings,
  "contextThreshold" | "leafChunkTokens" | "leafTargetTokens" | "condensedTargetTokens" | "condensedMinFanout"
>;

export function estimateFolding(
  conversations: readonly Lengths[],
  policy: Policy,
  roomTokens = ROOM_TOKENS,
): FoldEstimate {
  const limit = policy.contextThreshold * roomTokens;
  return conversations
    .filter(({ shownTokens }) => shownTokens >= limit)
    .map(({ shownTokens }) => estimateOne(shownTokens, policy))
    .reduce(addEstimates, NO_FOLDING);
}

/** Leaves over everything, then layer by layer until one summary covers all. */
function estimateOne(tokens: number, policy: Policy): FoldEstimate {
  const { leafChunkTokens, leafTargetTokens, condensedTargetTokens, condensedMinFanout: fanout } = policy;
  const leaves = Math.ceil(tokens / leafChunkTokens);
  let calls = leaves;
  let inputTokens = tokens;
  let outputTokens = leaves * leafTargetTokens;
  let size = leafTargetTokens;
  for (let count = leaves; count > fanout; count = Math.floor(count / fanout)) {
    const made = Math.floor(count / fanout);
    calls += made;
    inputTokens += made * fanout * size;
    outputTokens += made * condensedTargetTokens;
    size = condensedTargetTokens;
  }
  return { conversations: 1, calls, inputTokens: inputTokens + calls * PROMPT_TOKENS, outputTokens };
}

export function addEstimates(a: FoldEstimate, b: FoldEstimate): FoldEstimate {
  return {
    conversations: a.conversations + b.conversations,
    calls: a.calls + b.calls,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  };
}

/** One sentence; empty when nothing is long enough to be folded. */
export function describeEstimate({ conversations, calls, inputTokens, outputTokens }: FoldEstimate): string {
  if (conversations === 0) return "";
  const count = (tokens: number): string =>
    tokens >= 1_000_000 ? `${(tokens / 1_000_000).toFixed(1)} million` : `${Math.round(tokens / 1000)},000`;
  const chats = conversations === 1 ? "1 long chat" : `${conversations} long chats`;
  return `Folding the whole history of ${chats} would take about ${calls} model calls with ${count(inputTokens)} tokens in and ${count(outputTokens)} out; it happens only in chats that go on.`;
}
