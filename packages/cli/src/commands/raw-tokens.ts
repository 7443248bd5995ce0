/**
 * How many tokens a conversation would have without folding. Leaves know the tokens of the messages they were made from; whatever no
 * leaf stands for is in the context as it is.
 */
import type { Engine } from "@lossless/core/engine.ts";
import type { SummaryRow } from "@lossless/core/store/folding.ts";

const PAGE = 500;

export async function measureRaw(
  engine: Engine,
  scope: { owner?: string },
  conversationId: number,
  contextTokens: number,
): Promise<number> {
  let rawTokens = contextTokens;
  let coveredUpTo = Number.NEGATIVE_INFINITY;
  for await (const summary of readCover(engine, scope, conversationId)) {
    if (summary.kind === "leaf") rawTokens += summary.sourceTokens;
    // Inside one that lies above it, a summary is not part of the context.
    if (summary.endPosition <= coveredUpTo) continue;
    coveredUpTo = summary.endPosition;
    rawTokens -= summary.tokens;
  }
  return rawTokens;
}

/** The summaries of the fold, each after those that lie above it. */
async function* readCover(
  engine: Engine,
  scope: { owner?: string },
  conversationId: number,
): AsyncGenerator<SummaryRow, void, void> {
  let sameStart: SummaryRow[] = [];
  const deepestFirst = (): SummaryRow[] => sameStart.toReversed();
  for (let after: string | null = null; ;) {
    const page = await engine.listSummaries({ ...scope, conversationId, state: "cover", limit: PAGE, after });
    for (const row of page.items) {
      if (row.startPosition !== sameStart[0]?.startPosition) {
        yield* deepestFirst();
        sameStart = [];
      }
      sameStart.push(row);
    }
    if (page.next === null) break;
    after = page.next;
  }
  yield* deepestFirst();
}
