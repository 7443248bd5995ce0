/**
 * `lcm compact`: folds a conversation now. The engine decides what and how far; this command shows each pass, what was saved and what it
 * cost. Ctrl-C ends it between two steps, and what was folded until then stays.
 */
import { Option } from "commander";
import type { Command } from "commander";
import type { CompactAnswer } from "@lossless/core/engine-folding.ts";
import type { Engine } from "@lossless/core/engine.ts";
import type { SpendGroup } from "@lossless/core/store/folding.ts";
import type { ConversationRow } from "@lossless/core/store/store.ts";
import { runCancellable, toAction } from "../context.ts";
import type { Invocation, Model } from "../context.ts";
import { EXIT_CANCELLED } from "../exit.ts";
import { countOf, formatCount, formatShare } from "../format.ts";
import { printNote } from "../output.ts";
import { renderBar, startProgress } from "../progress.ts";
import { style } from "../style.ts";
import { renderPairs } from "../table.ts";
import { addConversationOptions, addExamples, chooseConversation, parseTokens } from "./shared.ts";
import type { ConversationChoice } from "./shared.ts";

interface CompactOptions extends ConversationChoice {
  readonly budget: number;
  readonly force?: boolean;
  readonly target?: number;
  readonly instructions?: string;
  /** False with `--no-model`. */
  readonly model: boolean;
  /** False with `--no-reserve`. */
  readonly reserve: boolean;
}

/** What a run of the command did. */
interface Outcome {
  readonly answer: CompactAnswer;
  readonly cost: Cost;
  readonly standIns: number;
  /** How many summaries were written in which way. */
  readonly levels: ReadonlyMap<string, number>;
  readonly isCancelled: boolean;
}

type Cost = Omit<SpendGroup, "key">;

const BAR_COLUMNS = 30;

export function defineCompact(program: Command): void {
  const command = addConversationOptions(program.command("compact"))
    .description("fold the older part of a conversation into summaries")
    .addOption(
      new Option("--budget <tokens>", "room of the model's context, such as 200k")
        .argParser(parseTokens)
        .makeOptionMandatory(),
    )
    .option("--force", "fold although the threshold is not reached")
    .option("--target <tokens>", "fold until the context has at most this many tokens", parseTokens)
    .option("--instructions <text>", "wishes for the summaries of this run")
    .option("--no-model", "let the engine write the summaries itself")
    .option("--no-reserve", "make no stand-ins for tighter budgets afterwards")
    .action(toAction(runCompact));
  command.addHelpText(
    "after",
    `
Folds when the context has reached its threshold (the setting contextThreshold, a share of the budget) and stops below
it. Nothing is lost: every summary leads back to its messages. Summaries are written by the model that the setting
summaryModel names; without one, and when it fails, the engine writes them itself. lcm spend shows what models cost.`,
  );
  addExamples(command, [
    ["lcm compact --conversation 1 --budget 200k", "fold if it is due"],
    ["lcm compact --session agent:main:main --budget 32k --target 12k", "until it is small enough"],
    ["lcm compact --conversation 1 --budget 200k --force --no-model", "now, without any model"],
  ]);
}

async function runCompact(invocation: Invocation, options: CompactOptions): Promise<void> {
  const model = options.model ? await findModel(invocation) : null;
  const outcome = await runCancellable(
    (signal) =>
      invocation.withArchive("change", (engine) => fold(engine, invocation, { ...options, signal }), {
        thread: true,
        model,
      }),
    { isPatient: true, what: "the fold" },
  );
  if (outcome.isCancelled) process.exitCode = EXIT_CANCELLED;
  const { conversationId, compacted, reason, tokensBefore, tokensAfter, passes, summaryIds } = outcome.answer;
  await invocation.print({
    data: {
      conversationId,
      compacted,
      reason,
      tokensBefore,
      tokensAfter,
      passes,
      summaryIds,
      standIns: outcome.standIns,
      cost: outcome.cost,
    },
    text: () => renderOutcome(outcome, options, model),
  });
}

/** The model that the settings name, or null. */
async function findModel(invocation: Invocation): Promise<Model | null> {
  const { settings, places } = await invocation.settings();
  const { openComplete } = await import("../models/open-complete.ts");
  const { listCandidates } = await import("@lossless/core/summarize/candidates.ts");
  const complete = openComplete({ settings, env: process.env, stateDir: places.stateDir });
  // Named as the host's model too, the first candidate is not asked a second time by the name of "whatever the host uses".
  return complete && { complete, ref: listCandidates(settings)[0] ?? null };
}

async function fold(
  engine: Engine,
  invocation: Invocation,
  options: CompactOptions & { readonly signal: AbortSignal },
): Promise<Outcome> {
  const { budget: budgetTokens, target, instructions, force = false, signal } = options;
  const conversation = await chooseConversation(engine, invocation, options);
  const { conversationId } = conversation;
  const startedAt = Date.now();
  const passes = watchPasses(engine, invocation, conversation, target ?? 0);
  const answer = await engine
    .compact({
      conversationId,
      budgetTokens,
      force,
      signal,
      onProgress: passes.note,
      ...(target === undefined ? {} : { targetTokens: target }),
      ...(instructions === undefined ? {} : { customInstructions: instructions }),
    })
    .finally(passes.finish);
  const wantsStandIns = options.reserve && (answer.compacted || force) && !signal.aborted;
  const before = await countStandIns(engine, conversationId);
  if (wantsStandIns) {
    if (!invocation.isJson) printNote("making stand-ins for tighter budgets");
    await engine.maintain({ conversationId, budgetTokens, signal });
  }
  return {
    answer,
    cost: await readCost(engine, conversationId, startedAt),
    standIns: Math.max(0, (await countStandIns(engine, conversationId)) - before),
    levels: await countLevels(engine, answer.summaryIds),
    isCancelled: signal.aborted,
  };
}

/** Says on stderr how far the fold is: a bar on a terminal, a line for each pass in a pipe. */
function watchPasses(
  engine: Engine,
  { isJson, scope }: Invocation,
  { conversationId, sessionKey, shownTokens: tokensBefore }: ConversationRow,
  targetTokens: number,
): { note: (passes: number) => void; finish: () => Promise<void> } {
  const progress = startProgress("Folding", { isWanted: !isJson });
  let told: Promise<void> = Promise.resolve();
  const tell = async (passes: number): Promise<void> => {
    // Asked of the thread that only reads: the one that folds is at work.
    const { items } = await engine.listConversations({ ...scope, sessionKey, limit: 200 });
    const tokens = items.find((row) => row.conversationId === conversationId)?.shownTokens;
    if (tokens === undefined) return;
    const note = `pass ${passes}: ${formatCount(tokens)} tokens`;
    progress.update(tokensBefore - tokens, tokensBefore - targetTokens, note);
    if (!isJson && !process.stderr.isTTY) printNote(note);
  };
  return {
    note: (passes) => {
      told = told.then(() => tell(passes));
    },
    finish: async () => {
      await told;
      progress.finish();
    },
  };
}

async function countStandIns(engine: Engine, conversationId: number): Promise<number> {
  return (await engine.listSummaries({ conversationId, state: "reserve", limit: 10_000 })).items.length;
}

async function readCost(engine: Engine, conversationId: number, since: number): Promise<Cost> {
  const groups = await engine.spend({ since, by: "conversation" });
  const own = groups.find(({ key }) => key === String(conversationId));
  const { calls = 0, inputTokens = 0, outputTokens = 0 } = own ?? {};
  return { calls, inputTokens, outputTokens };
}

async function countLevels(engine: Engine, summaryIds: readonly string[]): Promise<Map<string, number>> {
  const levels = new Map<string, number>();
  for (const summaryId of summaryIds) {
    const level = (await engine.readSummary({ summaryId }))?.level ?? "unknown";
    levels.set(level, (levels.get(level) ?? 0) + 1);
  }
  return levels;
}

function renderOutcome(outcome: Outcome, { budget }: CompactOptions, model: Model | null): string {
  const { answer, standIns, levels, isCancelled } = outcome;
  const { conversationId, compacted, reason, tokensBefore, tokensAfter, passes } = answer;
  const mark = isCancelled ? style.warning("cancelled") : style.good("ok");
  if (!compacted) {
    const size = `${formatCount(tokensAfter)} of ${formatCount(budget)} tokens`;
    return `${mark}  nothing was folded in conversation ${conversationId}: ${reason} (${size})`;
  }
  const scale = Math.max(tokensBefore, budget);
  const bar = (tokens: number): string => renderBar(tokens / scale, BAR_COLUMNS);
  const width = formatCount(tokensBefore).length;
  const pairs: [string, string][] = [
    ["Before", `${style.warning(bar(tokensBefore))}  ${formatCount(tokensBefore)} tokens`],
    [
      "After",
      `${style.good(bar(tokensAfter))}  ${formatCount(tokensAfter).padStart(width)} tokens, ${formatShare(tokensAfter, budget)} of the budget`,
    ],
    ["Passes", `${formatCount(passes)}: ${reason}`],
    ["Summaries", describeLevels(levels)],
  ];
  if (standIns > 0) pairs.push(["Stand-ins", `${formatCount(standIns)} for tighter budgets`]);
  pairs.push(["Cost", describeCost(outcome.cost, model)]);
  const how = isCancelled ? "partly folded; run it again to go on" : "folded";
  return `${mark}  conversation ${conversationId} is ${how}\n\n${renderPairs(pairs, style.faint)}`;
}

function describeLevels(levels: ReadonlyMap<string, number>): string {
  const total = [...levels.values()].reduce((sum, count) => sum + count, 0);
  const kinds = [...levels].map(([level, count]) => `${formatCount(count)} ${level}`).join(", ");
  return `${formatCount(total)} (${kinds})`;
}

function describeCost({ calls, inputTokens, outputTokens }: Cost, model: Model | null): string {
  if (model === null) return "nothing: no model was used, the engine wrote the summaries itself";
  return `${countOf(calls, "call")}, ${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`;
}
