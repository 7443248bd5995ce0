/** `lcm dissolve`: undoes a fold. Puts the sources of a summary back into the context in its place. */
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { DissolveResult } from "@lossless/core";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { countOf, formatCount } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import { addExamples, parseSummaryName } from "../shared.ts";

interface DissolveOptions {
  readonly apply?: boolean;
}

export function defineDissolve(program: Command): void {
  const command = program
    .command("dissolve")
    .description("Replace a summary in the context by its sources")
    .argument("<summary>", "a summary that is in the context", parseSummaryName)
    .option("--apply", "apply; without this, dry run")
    .action(toAction(runDissolve));
  addExamples(command, [
    ["lcm dissolve sum_0123456789abcdef", "tokens and places, before and after"],
    ["lcm dissolve sum_0123456789abcdef --apply", "apply"],
  ]);
  command.addHelpText(
    "after",
    `
The summary is kept, retired; its sources are in the context as they were before it was made. The next fold may make a
new one of them.`,
  );
}

async function runDissolve(
  invocation: Invocation,
  { apply }: DissolveOptions,
  summaryId: string,
): Promise<void> {
  const dryRun = apply !== true;
  const report = await invocation.withArchive(dryRun ? "read" : "change", async (engine) => {
    const node = await engine.readSummary({ ...invocation.scope, summaryId });
    if (node === null) throw new EngineError("not_found", `cannot find summary ${summaryId}`);
    return { answer: await engine.dissolveSummary({ summaryId, dryRun }), node };
  });
  const { answer, node } = report;
  if (answer === null) {
    const above = node.derivedIds[0];
    throw new EngineError("usage", `cannot dissolve ${summaryId}: it is not in the context`, {
      hint:
        node.state === "cover" && above !== undefined
          ? `dissolve ${above} first, which was made from it`
          : "lcm summaries list shows which do",
    });
  }
  await invocation.print({ data: { applied: !dryRun, ...answer }, text: () => renderReport(answer, dryRun) });
}

function renderReport(report: DissolveResult, dryRun: boolean): string {
  const { conversationId, ordinal, itemsBehind, sources, tokensBefore, tokensAfter } = report;
  const shift = sources.length - 1;
  const pairs: [string, string][] = [
    ["Conversation", String(conversationId)],
    ["Item", `${formatCount(ordinal)} becomes ${formatCount(ordinal)} to ${formatCount(ordinal + shift)}`],
    ["After it", `${countOf(itemsBehind, "item")} move back by ${formatCount(shift)}`],
    ["Tokens", `${formatCount(tokensBefore)} become ${formatCount(tokensAfter)}`],
  ];
  const table = renderTable(
    [
      { title: "ITEM", align: "right" },
      { title: "SOURCE", style: style.name },
      { title: "TOKENS", align: "right" },
      { title: "" },
    ],
    sources.map(({ id, tokens, isShown }, index) => [
      String(ordinal + index),
      id,
      formatCount(tokens),
      isShown ? "" : "hidden",
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  const end = dryRun ? "Nothing was done. Add --apply to do it." : `${style.good("ok")}  dissolved`;
  return [renderPairs(pairs, style.faint), table, end].join("\n\n");
}
