/**
 * `lcm repair` and `lcm rewrite`: regenerate damaged or named summaries. Without `--apply` they are dry runs that list them and the cost of a
 * model; with `--diff` the new texts are made and shown. The old texts stay in the archive, retired.
 */
import { Option } from "commander";
import type { Command } from "commander";
import { ERROR_CODES } from "@lossless/core";
import type { Engine, RewriteResult } from "@lossless/core";
import type { RewriteSelection, RewriteTarget } from "@lossless/core/repair";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation, Model } from "../../invocation.ts";
import { countOf, diffLines, formatCount, makePrintable, renderDiff, usageError } from "@lossless/core/doors";
import { addModelOptions, chooseModel } from "../../choose-model.ts";
import type { ModelOptions } from "../../choose-model.ts";
import { printNote, terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderTable } from "../../table.ts";
import { requirePromptFolder } from "./prompts.ts";
import {
  addConversationOptions,
  addExamples,
  chooseConversation,
  parseOffset,
  parseSummaryName,
} from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

interface RewriteOptions extends ConversationChoice, ModelOptions {
  readonly summary?: string;
  readonly subtree?: boolean;
  readonly depth?: number;
  readonly all?: boolean;
  readonly extractive?: boolean;
  readonly instructions?: string;
  readonly promptDir?: string;
  readonly diff?: boolean;
  readonly apply?: boolean;
}

export function defineRepair(program: Command): void {
  const command = defineShared(program.command("repair"))
    .description("Regenerate damaged summaries: stand-ins, cut-off, empty and stale ones")
    .addOption(new Option("--all", "in every conversation").conflicts(["conversation", "session", "summary"]))
    .action(toAction((invocation, options: RewriteOptions) => run(invocation, options, true)));
  addExamples(command, [
    ["lcm repair --conversation 1", "which summaries are damaged, and what a model would cost"],
    ["lcm repair --all --apply", "regenerate all of them"],
    ["lcm repair --conversation 1 --no-model --apply", "without any model"],
  ]);
  command.addHelpText("after", HELP);
}

export function defineRewrite(program: Command): void {
  const command = defineShared(program.command("rewrite"))
    .description("Regenerate summaries with the current model and prompts")
    .option("--depth <n>", "all of this depth (0: made from messages)", parseOffset)
    .option("--all", "all of the conversation")
    .option("--extractive", "only extractive ones (no model)")
    .action(toAction((invocation, options: RewriteOptions) => run(invocation, options, false)));
  addExamples(command, [
    ["lcm rewrite --conversation 1 --depth 0", "which they are, and what a model would cost"],
    ["lcm rewrite --summary sum_0123456789abcdef --subtree --diff", "what would change, from the finest up"],
    ["lcm rewrite --conversation 1 --all --prompt-dir prompts --apply", "with your own prompts"],
  ]);
  command.addHelpText("after", HELP);
}

const HELP = `
Summaries are written from their sources, the finest first, so that a better text below feeds the one above it. A new
text gets a new id and replaces the old one, which is kept as retired. Without --apply nothing changes;
--diff asks the model all the same, to show the new texts. Where no model writes an acceptable text, the old one stays,
and the command ends with status 1.`;

function defineShared(command: Command): Command {
  return addModelOptions(addConversationOptions(command))
    .option("--summary <id>", "this summary", parseSummaryName)
    .option("--subtree", "and everything below it")
    .option("--instructions <text>", "extra instructions for this run")
    .option("--prompt-dir <path>", "a folder of your own prompts; see lcm prompts")
    .option("--diff", "generate the new texts and show the difference")
    .option("--apply", "apply the new texts");
}

interface RewriteOutput {
  readonly targets: readonly RewriteTarget[];
  readonly answers: readonly RewriteResult[];
}

async function run(invocation: Invocation, options: RewriteOptions, isRepair: boolean): Promise<void> {
  checkChoice(options, isRepair);
  if (options.promptDir !== undefined) requirePromptFolder(options.promptDir);
  const model = await chooseModel(invocation, options);
  const apply = options.apply === true;
  const wantsTexts = apply || options.diff === true;
  const outcome = await runCancellable(
    (signal) =>
      invocation.withArchive(
        // Generating texts with a model writes to the spend ledger.
        wantsTexts ? "change" : "read",
        async (engine) => {
          const targets = await findTargets(engine, invocation, options, isRepair);
          const answers = wantsTexts ? await writeAll(engine, targets, options, { signal, invocation }) : [];
          return { targets, answers };
        },
        { thread: true, model },
      ),
    { isPatient: true, what: "the summaries" },
  );
  if (outcome.answers.some((answer) => answer.isStandIn)) process.exitCode = ERROR_CODES.model_failed.exit;
  await invocation.print({
    data: {
      applied: apply,
      items: outcome.targets,
      rewritten: outcome.answers.map((answer) => toAnswerJson(answer, options.diff === true)),
    },
    text: () => renderOutcome(outcome, options, model),
  });
}

function checkChoice(options: RewriteOptions, isRepair: boolean): void {
  const { summary, subtree, depth, all, extractive } = options;
  if (subtree === true && summary === undefined) throw usageError("cannot use --subtree: it needs --summary");
  if (isRepair || summary !== undefined || depth !== undefined || all === true || extractive === true) return;
  throw usageError(
    "cannot rewrite: nothing was chosen",
    "Choose with --summary, --depth, --extractive or --all",
  );
}

async function findTargets(
  engine: Engine,
  invocation: Invocation,
  options: RewriteOptions,
  isRepair: boolean,
): Promise<RewriteTarget[]> {
  const { planRewrite } = await import("@lossless/core/repair");
  const { summary, subtree, depth, extractive } = options;
  const narrow: Omit<RewriteSelection, "conversationId"> = {
    summaryId: summary,
    isSubtree: subtree,
    depth,
    isExtractive: extractive,
    isDamaged: isRepair,
  };
  const targets: RewriteTarget[] = [];
  for (const conversationId of await chooseConversations(engine, invocation, options, isRepair)) {
    targets.push(...(await planRewrite(engine, { conversationId, ...narrow })));
  }
  return targets;
}

async function chooseConversations(
  engine: Engine,
  invocation: Invocation,
  options: RewriteOptions,
  isRepair: boolean,
): Promise<number[]> {
  if (options.summary !== undefined && options.conversation === undefined && options.session === undefined) {
    const node = await engine.readSummary({ ...invocation.scope, summaryId: options.summary });
    if (node !== null) return [node.conversationId];
  }
  if (!isRepair || options.all !== true)
    return [(await chooseConversation(engine, invocation, options)).conversationId];
  const ids: number[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listConversations({ ...invocation.scope, after, limit: 1000 });
    ids.push(...page.items.map((row) => row.conversationId));
    if (page.next === null) return ids;
    after = page.next;
  }
}

async function writeAll(
  engine: Engine,
  targets: readonly RewriteTarget[],
  options: RewriteOptions,
  { signal, invocation }: { signal: AbortSignal; invocation: Invocation },
): Promise<RewriteResult[]> {
  const { rewriteAll } = await import("@lossless/core/repair");
  const { readPrompts } = await import("@lossless/core/repair");
  const answers: RewriteResult[] = [];
  const { instructions, promptDir } = options;
  for await (const answer of rewriteAll({
    engine,
    targets,
    dryRun: options.apply !== true,
    mustHeal: true,
    isExtractive: options.model === false,
    signal,
    customInstructions: instructions,
    briefs: promptDir === undefined ? undefined : readPrompts(promptDir),
  })) {
    answers.push(answer);
    if (!invocation.isJson) printNote(`${answers.length} of ${targets.length}: ${describeAnswer(answer)}`);
  }
  return answers;
}

const NO_TEXT = "no model wrote an acceptable text";

function describeAnswer(answer: RewriteResult): string {
  const { oldId, newId, before, after } = answer;
  if (answer.isStandIn) return `${oldId} stays: ${NO_TEXT}`;
  const change = `${formatCount(before.tokens)} → ${formatCount(after.tokens)} tokens`;
  return newId === null ? `${oldId} (${change}) not replaced` : `${oldId} → ${newId} (${change})`;
}

function toAnswerJson(answer: RewriteResult, hasTexts: boolean): object {
  const { oldId, newId, before, after } = answer;
  return {
    oldId,
    newId,
    tokensBefore: before.tokens,
    tokensAfter: after.tokens,
    model: after.model,
    level: after.level,
    isStandIn: answer.isStandIn,
    ...(hasTexts ? { before: before.content, after: after.content } : {}),
  };
}

function renderOutcome(
  { targets, answers }: RewriteOutput,
  options: RewriteOptions,
  model: Model | null,
): string {
  if (targets.length === 0) return `${style.good("ok")}  nothing to regenerate`;
  const blocks = options.diff === true ? answers.map(renderAnswer) : [renderTargets(targets)];
  const replaced = answers.filter((answer) => answer.newId !== null).length;
  const failed = answers.filter((answer) => answer.isStandIn).length;
  if (failed > 0) {
    blocks.push(
      style.warning(
        `${countOf(failed, "summary", "summaries")} stay as they are: ${NO_TEXT}. lcm status says which model is paused, and why.`,
      ),
    );
  }
  if (options.apply === true) {
    const mark = failed > 0 ? style.warning("partly") : style.good("ok");
    blocks.push(
      `${mark}  ${countOf(replaced, "summary", "summaries")} of ${formatCount(targets.length)} regenerated`,
    );
  } else {
    const tokens = formatCount(targets.reduce((sum, target) => sum + target.sourceTokens, 0));
    const cost = model === null ? "no model is used" : `a model reads about ${tokens} tokens`;
    blocks.push(`Nothing was changed. --apply puts new texts in place (${cost}).`);
  }
  return blocks.join("\n\n");
}

function renderAnswer(answer: RewriteResult): string {
  if (answer.isStandIn) return `${style.name(answer.oldId)}  ${NO_TEXT}`;
  const lines = diffLines(makePrintable(answer.before.content), makePrintable(answer.after.content));
  const title = `${style.name(answer.oldId)}  ${answer.before.model} → ${answer.after.model}`;
  return `${title}\n${renderDiff(lines, { gone: style.bad, new: style.good })}`;
}

function renderTargets(targets: readonly RewriteTarget[]): string {
  return renderTable(
    [
      { title: "SUMMARY", style: style.name },
      { title: "DEPTH", align: "right" },
      { title: "TOKENS", align: "right" },
      { title: "SOURCES", align: "right" },
      { title: "DAMAGE", style: style.warning },
    ],
    targets.map(({ summaryId, depth, tokens, sourceTokens, damage }) => [
      summaryId,
      String(depth),
      formatCount(tokens),
      formatCount(sourceTokens),
      damage?.replaceAll("_", " ") ?? "",
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}
