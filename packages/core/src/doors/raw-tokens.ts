/**
 * How many tokens a conversation would have without folding. Leaves record the tokens of the messages they were made from; messages that no
 * leaf represents are in the context as they are.
 */
import type { Engine } from "../engine/engine.ts";
import type { SummaryGraph } from "../store/folding.ts";

export async function measureRaw(
  engine: Engine,
  scope: { owner?: string },
  conversationId: number,
  contextTokens: number,
): Promise<number> {
  return contextTokens + measureSaved(await engine.readGraph({ ...scope, conversationId }));
}

/** The tokens that folding saves. */
export function measureSaved({ nodes }: Pick<SummaryGraph, "nodes">): number {
  let savedTokens = 0;
  let coveredUpTo = Number.NEGATIVE_INFINITY;
  // Each after those above it.
  const cover = nodes
    .filter(({ state }) => state === "cover")
    .sort((a, b) => a.startPosition - b.startPosition || b.depth - a.depth);
  for (const { kind, sourceTokens, tokens, endPosition } of cover) {
    if (kind === "leaf") savedTokens += sourceTokens;
    // A summary below another one is not part of the context.
    if (endPosition <= coveredUpTo) continue;
    coveredUpTo = endPosition;
    savedTokens -= tokens;
  }
  return savedTokens;
}
