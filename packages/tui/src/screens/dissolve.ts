/** Dissolve: puts the sources of a summary back into the context. The preview shows how items and tokens would change. */
import { EngineError } from "@lossless/core";
import type { HeadedConversation, DissolveResult } from "@lossless/core";
import { countOf, formatCount } from "@lossless/core/doors";
import type { Paint } from "../paint.ts";
import type { Desk, Screen } from "../screen.ts";
import type { TextLine } from "../wrapped-text.ts";
import { makeConfirmScreen } from "./confirm.ts";

export function makeDissolveScreen(desk: Desk, conversation: HeadedConversation, summaryId: string): Screen {
  const { engine, scope } = desk.archive;
  return makeConfirmScreen(desk, {
    name: "dissolve",
    conversation,
    preview: async () => {
      const report = await engine.dissolveSummary({ summaryId, dryRun: true });
      if (report === null) {
        const above = (await engine.readSummary({ ...scope, summaryId }))?.derivedIds[0];
        throw new EngineError("usage", `cannot dissolve ${summaryId}: it is not in the context`, {
          hint:
            above === undefined
              ? "only summaries in the context can be dissolved"
              : `${above} stands above it`,
        });
      }
      return {
        title: `What dissolving ${summaryId} would do. Nothing has been changed yet.`,
        lines: (paint) => renderDissolve(report, paint),
      };
    },
    apply: async () => {
      const report = await desk.archive.change((writer) =>
        writer.dissolveSummary({ summaryId, dryRun: false }),
      );
      if (report === null)
        throw new EngineError("usage", `cannot dissolve ${summaryId}: it is no longer in the context`);
      return `dissolved ${summaryId}: ${countOf(report.sources.length, "item")} in its place`;
    },
  });
}

function renderDissolve(report: DissolveResult, paint: Paint): TextLine[] {
  const { ordinal, itemsBehind, sources, tokensBefore, tokensAfter } = report;
  const shift = sources.length - 1;
  return [
    { text: "" },
    {
      text: `Item      ${formatCount(ordinal)} becomes ${formatCount(ordinal)} to ${formatCount(ordinal + shift)}`,
    },
    { text: `After it  ${countOf(itemsBehind, "item")} move back by ${formatCount(shift)}` },
    { text: `Tokens    ${formatCount(tokensBefore)} become ${formatCount(tokensAfter)}` },
    { text: "" },
    { text: `${"ITEM".padStart(7)}  ${"SOURCE".padEnd(22)}${"TOKENS".padStart(8)}`, style: paint.faint },
    ...sources.map(({ id, tokens, isShown }, at) => ({
      text: `${formatCount(ordinal + at).padStart(7)}  ${id.padEnd(22)}${formatCount(tokens).padStart(8)}${isShown ? "" : "  hidden"}`,
    })),
    { text: "" },
    { text: "The summary is kept, replaced; the next fold may make a new one.", style: paint.faint },
    { text: "y does it, n leaves it.", style: paint.title },
  ];
}
