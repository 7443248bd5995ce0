/**
 * `lcm ask`: a question about the past, answered with passages and their ids. Needs no model; if the settings name one, it writes an answer from
 * those passages. If the model fails, the passages are the answer.
 */
import type { Command } from "commander";
import type { AskResult, Passage } from "@lossless/core";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation, Model } from "../../invocation.ts";
import { countOf, EXIT_CANCELLED, formatCount, makePrintable, wrapToWidth } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { addReachOptions, chooseReach, renderSaid, withIsoTimes } from "./recall-shared.ts";
import type { ReachChoice } from "./recall-shared.ts";
import { findEmbed } from "./embed.ts";
import { addExamples, parseSummaryName, parseTokens } from "../shared.ts";

interface AskOptions extends ReachChoice {
  readonly query?: string;
  readonly below?: readonly string[];
  readonly maxTokens?: number;
  readonly includeRecall?: boolean;
  /** False with `--no-model`. */
  readonly model: boolean;
}

export function defineAsk(program: Command): void {
  const command = program
    .command("ask")
    .description("Answer a question about the past, with citations")
    .argument("<question...>", "what you want to know")
    .option("--query <words>", "what to look for (default: the question)")
    .option("--below <id>", "only below this summary; repeatable", collectSummaries)
    .option("--max-tokens <n>", "length of the answer (default: 2000)", parseTokens)
    .option("--include-recall", "include calls and results of the lcm tools")
    .option("--no-model", "return passages only");
  addReachOptions(command).action(toAction(runAsk));
  addExamples(command, [
    ["lcm ask what did we decide about the retry limit", "passages, or an answer if a model is set"],
    [`lcm ask who broke the printer --query 'label printer error' --no-model`, "without any model"],
    ["lcm ask what was still open --below sum_0123456789abcdef", "in one folded part"],
  ]);
  command.addHelpText(
    "after",
    `
Passages are word for word and carry ids that lcm show opens. When the setting expansionModel or summaryModel names a
model, it writes an answer from them and every claim names the passages it rests on; it may search and open more before
it answers, in at most four calls. lcm spend shows what that cost.
With vectors (lcm embed) passages are found by their meaning too.`,
  );
}

const collectSummaries = (text: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  parseSummaryName(text),
];

async function runAsk(invocation: Invocation, options: AskOptions, words: readonly string[]): Promise<void> {
  const { query, below, maxTokens, includeRecall = false } = options;
  const { settings } = await invocation.settings();
  const model = options.model ? await findModel(invocation) : null;
  const embed = await findEmbed(invocation);
  const ask = (signal: AbortSignal): Promise<AskResult> =>
    invocation.withArchive(
      // Model usage is recorded, which writes.
      model === null && embed === null ? "read" : "change",
      async (engine) =>
        engine.ask({
          ...(await chooseReach(engine, invocation, options)),
          prompt: words.join(" "),
          withoutModel: model === null,
          includeRecall,
          signal,
          query,
          summaryIds: below,
          // A longer answer needs more passages.
          ...(maxTokens === undefined
            ? {}
            : { maxTokens, tokenCap: Math.max(maxTokens, settings.maxExpandTokens) }),
        }),
      { model, embed },
    );
  const answer = await runCancellable(
    async (signal) => {
      const found = await ask(signal);
      if (signal.aborted) process.exitCode = EXIT_CANCELLED;
      return found;
    },
    { isPatient: true, what: "the answer" },
  );
  const timezone = await invocation.timezone();
  await invocation.print({
    data: { ...answer, passages: answer.passages.map(withIsoTimes) },
    text: () => renderAnswer(answer, timezone),
  });
}

/** The model that the settings name for answers or for anything else, or null. */
export async function findModel(invocation: Invocation): Promise<Model | null> {
  const { settings, locations } = await invocation.settings();
  const { openComplete } = await import("@lossless/models");
  const complete = openComplete({ settings, env: process.env, stateDir: locations.stateDir });
  return complete && { complete, ref: null };
}

function renderAnswer(answer: AskResult, timezone: string): string {
  if (answer.answeredBy === "nothing") return "Nothing in the archive speaks of this.";
  const cited = new Set(answer.citedIds);
  const passages = answer.passages.filter(({ id }) => cited.has(id));
  const blocks = passages.map((passage) => renderPassage(passage, timezone));
  if (answer.answeredBy === "model") {
    blocks.unshift(renderText(answer.answer), ...(blocks.length === 0 ? [] : [style.faint("Based on:")]));
  }
  return [...blocks, style.faint(describeAnswer(answer, passages.length).join("\n"))].join("\n\n");
}

function renderText(text: string): string {
  const columns = terminalColumns();
  const lines = makePrintable(text).split("\n");
  return lines.flatMap((line) => (columns === null ? [line] : wrapToWidth(line, columns))).join("\n");
}

function renderPassage(passage: Passage, timezone: string): string {
  return renderSaid(passage, timezone, passage.isWhole ? undefined : "a part of it");
}

function describeAnswer(answer: AskResult, shown: number): string[] {
  const { passages, failure, skippedConversations, conversationBreakdown, totalSourceTokens } = answer;
  const read = `${countOf(passages.length, "passage")} of ${countOf(conversationBreakdown.length, "conversation")} read, ${formatCount(totalSourceTokens)} tokens; ${formatCount(shown)} shown.`;
  return [
    ...(failure === null ? [] : [`No answer was written: ${failure.error}.`]),
    ...answer.notes,
    read,
    ...(answer.truncated
      ? ["There is more than fits; narrow it with --query, or ask for more with --max-tokens."]
      : []),
    ...(skippedConversations > 0
      ? [
          `${countOf(skippedConversations, "more conversation")} with matches ${skippedConversations === 1 ? "was" : "were"} left out.`,
        ]
      : []),
    "lcm show opens any id.",
  ];
}
