/** How many tokens a summary has after the assembler has rendered it. */
import { estimateTextTokens, MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import type { RunItem } from "../store/folding.ts";
import { renderSummary } from "./render.ts";

export function measureSummary(
  { content, depth, run }: { content: string; depth: number; run: readonly RunItem[] },
  timeZone: string,
): number {
  const sources = run.flatMap((item) => (item.summary === null ? [] : [item.summary]));
  const text = renderSummary(
    {
      summaryId: "sum_0000000000000000",
      kind: sources.length > 0 ? "condensed" : "leaf",
      depth,
      descendantCount: sources.reduce((sum, source) => sum + source.descendantCount + 1, 0),
      earliestAt: run[0]?.createdAt ?? 0,
      latestAt: run.at(-1)?.createdAt ?? 0,
      sourceIds: sources.map((source) => source.summaryId),
      content,
    },
    timeZone,
  );
  return estimateTextTokens(text) + MESSAGE_OVERHEAD_TOKENS;
}
