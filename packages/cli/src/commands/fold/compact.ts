/**
 * `lcm compact`: folds one conversation now, or all of them one after the other. The engine decides what and how far; this command shows each
 * pass, its savings and its cost. Ctrl-C ends it between two steps, and finished folds stay.
 */
import { Option } from "commander";
import type { Command } from "commander";
import { EngineError } from "@lossless/core";
import type { CompactResult, ConversationRow, Engine, SpendGroup } from "@lossless/core";
import { runCancellable, toAction } from "../../invocation.ts";
import type { Invocation, Model } from "../../invocation.ts";
import {
  countOf,
  describeFailure,
  EXIT_CANCELLED,
  formatCount,
  formatShare,
  renderBar,
} from "@lossless/core/doors";
import type { Failure } from "@lossless/core/doors";
import { printNote, terminalColumns } from "../../output.ts";
import { countNote, startProgress } from "../../progress.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import {
  addConversationOptions,
  addExamples,
  chooseConversation,
  parseTokens,
  requireConversation,
} from "../shared.ts";
import type { ConversationChoice } from "../shared.ts";

interface CompactOptions extends ConversationChoice {
  readonly all?: boolean;
  readonly budget: number;
  readonly force?: boolean;
  readonly target?: number;
  readonly instructions?: string;
  /** False with `--no-model`. */
  readonly model: boolean;
  /** False with `--no-reserve`. */
  readonly reserve: boolean;
}

/** The result for one conversation. The tokens after are those in the archive once the reserve summaries are made too. */
interface ConversationResult {
  readonly answer: CompactResult;
  readonly cost: Cost;
  readonly standIns: number;
  /** How many summaries were written at which level. */
  readonly levels: ReadonlyMap<string, number>;
  readonly isCancelled: boolean;
}

/** The sums over all of them. */
interface Totals {
  readonly conversations: number;
  readonly outcomes: readonly ConversationResult[];
  readonly failures: readonly { readonly conversationId: number; readonly failure: Failure }[];
  readonly cost: Cost;
  readonly isCancelled: boolean;
}

type Cost = Omit<SpendGroup, "key">;

type FoldOptions = CompactOptions & { readonly signal: AbortSignal };

const BAR_COLUMNS = 30;
const PAGE = 200;
/** The context is larger than its target. */
const EXIT_TARGET_NOT_REACHED = 1;

export function defineCompact(program: Command): void {
  const command = addConversationOptions(program.command("compact"))
    .description("Fold the older part of a conversation into summaries")
    .addOption(
      new Option("--all", "fold every conversation, one after the other").conflicts([
        "conversation",
        "session",
      ]),
    )
    .addOption(
      new Option("--budget <tokens>", "token budget of the model's context, such as 200k")
        .argParser(parseTokens)
        .makeOptionMandatory(),
    )
    .option("--force", "fold everything outside the fresh tail even below the threshold")
    .option("--target <tokens>", "fold until the context has at most this many tokens", parseTokens)
    .option("--instructions <text>", "extra instructions for the summaries of this run")
    .option("--no-model", "write extractive summaries, without a model")
    .option("--no-reserve", "do not prepare summaries for smaller budgets")
    .action(toAction(runCompact));
  addExamples(command, [
    ["lcm compact --conversation 1 --budget 200k", "fold if it is due"],
    ["lcm compact --session agent:main:main --budget 32k --target 12k", "until it is small enough"],
    ["lcm compact --conversation 1 --budget 200k --force --no-model", "now, without any model"],
    ["lcm compact --all --budget 200k", "every conversation that is due"],
  ]);
  command.addHelpText(
    "after",
    `
Folds when the context has reached its threshold (setting contextThreshold, a share of the budget), until it is below it
or has at most --target tokens. Nothing is lost: every summary leads back to its messages. Ctrl-C keeps what was folded.

The model of the setting summaryModel writes the summaries; without one, or when it fails, the engine writes them itself.
lcm spend shows the cost.

Exits with status 1 and "target not reached" when the context is still too large: nothing more can be folded, or the time
was up (setting sweepDeadlineMs; with --force or --target compactUntilUnderDeadlineMs).`,
  );
}

async function runCompact(invocation: Invocation, options: CompactOptions): Promise<void> {
  const model = options.model ? await findModel(invocation) : null;
  const run = <T>(work: (engine: Engine, options: FoldOptions) => Promise<T>): Promise<T> =>
    runCancellable(
      (signal) =>
        invocation.withArchive("change", (engine) => work(engine, { ...options, signal }), {
          thread: true,
          model,
        }),
      { isPatient: true, what: "the fold" },
    );
  if (options.all === true) {
    const totals = await run((engine, folding) => foldAll(engine, invocation, folding));
    process.exitCode = chooseExit(totals);
    await invocation.print({
      data: toTotalsJson(totals),
      text: () => renderTotals(totals, options, model),
    });
    return;
  }
  const outcome = await run(async (engine, folding) =>
    fold(engine, invocation, await chooseConversation(engine, invocation, folding), folding),
  );
  process.exitCode = chooseExit({ outcomes: [outcome], failures: [], isCancelled: outcome.isCancelled });
  await invocation.print({
    data: toOutcomeJson(outcome),
    text: () => renderOutcome(outcome, options, model),
  });
}

function chooseExit({ outcomes, failures, isCancelled }: Omit<Totals, "conversations" | "cost">): number {
  if (isCancelled) return EXIT_CANCELLED;
  const [failed] = failures;
  if (failed !== undefined) return failed.failure.exit;
  return outcomes.every(({ answer }) => answer.targetReached) ? 0 : EXIT_TARGET_NOT_REACHED;
}

const toOutcomeJson = ({ answer, standIns, cost }: ConversationResult): object => ({
  ...answer,
  standIns,
  cost,
});

function toTotalsJson({ conversations, outcomes, failures, cost }: Totals): object {
  return {
    conversations,
    folded: outcomes.filter(({ answer }) => answer.compacted).length,
    targetNotReached: outcomes.filter(({ answer }) => !answer.targetReached).length,
    cost,
    items: outcomes.map(toOutcomeJson),
    failures: failures.map(({ conversationId, failure: { code, message } }) => ({
      conversationId,
      code,
      message,
    })),
  };
}

/** The model that the settings name, or null. */
async function findModel(invocation: Invocation): Promise<Model | null> {
  const { settings, locations } = await invocation.settings();
  const { openComplete } = await import("@lossless/models");
  const { listCandidates } = await import("@lossless/core");
  const complete = openComplete({ settings, env: process.env, stateDir: locations.stateDir });
  // Also passed as the host's model, so that the first candidate is not called a second time as "whatever the host uses".
  return complete && { complete, ref: listCandidates(settings)[0] ?? null };
}

/** Folds every conversation in turn. Failures of single ones are reported at the end; the others are folded anyway. */
async function foldAll(engine: Engine, invocation: Invocation, options: FoldOptions): Promise<Totals> {
  const startedAt = Date.now();
  const conversations = await listAll(engine, invocation);
  const outcomes: ConversationResult[] = [];
  const failures: Totals["failures"][number][] = [];
  for (const [index, conversation] of conversations.entries()) {
    if (options.signal.aborted) break;
    const { conversationId } = conversation;
    const label = `${countNote(index + 1, conversations.length, "conversations")}, number ${conversationId}`;
    try {
      outcomes.push(await fold(engine, invocation, conversation, options, label));
    } catch (error) {
      if (!(error instanceof EngineError) || options.signal.aborted) throw error;
      failures.push({ conversationId, failure: describeFailure(error) });
    }
  }
  return {
    conversations: conversations.length,
    outcomes,
    failures,
    cost: await readCost(engine, startedAt, null),
    isCancelled: options.signal.aborted,
  };
}

async function listAll(engine: Engine, { scope }: Invocation): Promise<ConversationRow[]> {
  const all: ConversationRow[] = [];
  for (let after: string | null = null; ;) {
    const { items, next } = await engine.listConversations({ ...scope, after, limit: PAGE });
    all.push(...items);
    if (next === null) return all;
    after = next;
  }
}

async function fold(
  engine: Engine,
  invocation: Invocation,
  conversation: ConversationRow,
  options: FoldOptions,
  label = "",
): Promise<ConversationResult> {
  const { budget: budgetTokens, target, instructions, force = false, signal } = options;
  const { conversationId } = conversation;
  const startedAt = Date.now();
  const passes = watchPasses(engine, invocation, conversation, target ?? 0, label);
  const answer = await engine
    .compact({
      conversationId,
      budgetTokens,
      force,
      signal,
      onProgress: passes.note,
      targetTokens: target,
      customInstructions: instructions,
    })
    .finally(passes.finish);
  const wantsStandIns = options.reserve && (answer.compacted || force) && !signal.aborted;
  const before = await countStandIns(engine, conversationId);
  if (wantsStandIns) {
    if (!invocation.isJson && label === "") printNote("making stand-ins for tighter budgets");
    await engine.maintain({ conversationId, budgetTokens, signal });
  }
  const { shownTokens: tokensAfter } = await requireConversation(engine, invocation, conversationId);
  return {
    answer: { ...answer, tokensAfter, targetReached: tokensAfter <= answer.targetTokens },
    cost: await readCost(engine, startedAt, conversationId),
    standIns: Math.max(0, (await countStandIns(engine, conversationId)) - before),
    levels: await countLevels(engine, answer.summaryIds),
    isCancelled: signal.aborted,
  };
}

/** Prints the progress of the fold to stderr: a bar on a terminal, a line for each pass in a pipe. */
function watchPasses(
  engine: Engine,
  { isJson, scope }: Invocation,
  { conversationId, sessionKey, shownTokens: tokensBefore }: ConversationRow,
  targetTokens: number,
  label: string,
): { note: (passes: number) => void; finish: () => Promise<void> } {
  const progress = startProgress("Folding", { isWanted: !isJson });
  let told: Promise<void> = Promise.resolve();
  const tell = async (passes: number): Promise<void> => {
    // Uses the reading thread: the writing one is busy folding.
    const { items } = await engine.listConversations({ ...scope, sessionKey, limit: PAGE });
    const tokens = items.find((row) => row.conversationId === conversationId)?.shownTokens;
    if (tokens === undefined) return;
    const note = `${label === "" ? "" : `${label}, `}pass ${passes}: ${formatCount(tokens)} tokens`;
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

/** The cost of models since a time: for one conversation, or for all. */
async function readCost(engine: Engine, since: number, conversationId: number | null): Promise<Cost> {
  const groups = await engine.spend({ since, by: "conversation" });
  const cost = { calls: 0, inputTokens: 0, outputTokens: 0 };
  for (const { key, calls, inputTokens, outputTokens } of groups) {
    if (conversationId !== null && key !== String(conversationId)) continue;
    cost.calls += calls;
    cost.inputTokens += inputTokens;
    cost.outputTokens += outputTokens;
  }
  return cost;
}

async function countLevels(engine: Engine, summaryIds: readonly string[]): Promise<Map<string, number>> {
  const levels = new Map<string, number>();
  for (const summaryId of summaryIds) {
    const level = (await engine.readSummary({ summaryId }))?.level ?? "unknown";
    levels.set(level, (levels.get(level) ?? 0) + 1);
  }
  return levels;
}

function renderOutcome(outcome: ConversationResult, { budget }: CompactOptions, model: Model | null): string {
  const { answer, standIns, levels, isCancelled } = outcome;
  const { conversationId, compacted, reason, tokensBefore, tokensAfter, passes } = answer;
  const mark = renderMark(outcome);
  if (!compacted) {
    const size = `${formatCount(tokensAfter)} of ${formatCount(budget)} tokens`;
    return `${mark}  nothing was folded in conversation ${conversationId}: ${reason} (${size})${describeTarget(answer)}`;
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
  return `${mark}  conversation ${conversationId} is ${how}${describeTarget(answer)}\n\n${renderPairs(pairs, style.faint)}`;
}

function renderMark({ answer, isCancelled }: Pick<ConversationResult, "answer" | "isCancelled">): string {
  if (isCancelled) return style.warning("cancelled");
  return answer.targetReached ? style.good("ok") : style.warning("target not reached");
}

const describeTarget = ({ targetReached, targetTokens }: CompactResult): string =>
  targetReached ? "" : `; it was to have at most ${formatCount(targetTokens)} tokens`;

function renderTotals(totals: Totals, { budget }: CompactOptions, model: Model | null): string {
  const { conversations, outcomes, failures, cost, isCancelled } = totals;
  const notable = outcomes.filter(({ answer }) => answer.compacted || !answer.targetReached);
  const missed = outcomes.filter(({ answer }) => !answer.targetReached).length;
  const folded = outcomes.filter(({ answer }) => answer.compacted).length;
  const mark = isCancelled
    ? style.warning("cancelled")
    : failures.length > 0
      ? style.bad("failed")
      : missed > 0
        ? style.warning("target not reached")
        : style.good("ok");
  const counts = [
    `${formatCount(folded)} of ${countOf(conversations, "conversation")} folded`,
    ...(missed > 0 ? [`${formatCount(missed)} still over the target`] : []),
    ...(failures.length > 0 ? [`${formatCount(failures.length)} failed`] : []),
    ...(isCancelled ? ["run it again to go on"] : []),
  ];
  const rows = notable.map(({ answer }) => [
    String(answer.conversationId),
    formatCount(answer.tokensBefore),
    formatCount(answer.tokensAfter),
    formatShare(answer.tokensAfter, budget),
    formatCount(answer.passes),
    answer.targetReached ? answer.reason : `target not reached: ${answer.reason}`,
  ]);
  const right = { align: "right" } as const;
  const columns = [
    { title: "CONVERSATION", ...right },
    { title: "BEFORE", ...right },
    { title: "AFTER", ...right },
    { title: "OF BUDGET", ...right },
    { title: "PASSES", ...right },
    { title: "END", flexible: true as const },
  ];
  const table =
    rows.length === 0
      ? []
      : ["", renderTable(columns, rows, { maxWidth: terminalColumns(), styleTitle: style.faint })];
  const failed = failures.map(
    ({ conversationId, failure }) => `conversation ${conversationId}: ${failure.message}`,
  );
  const costs = folded > 0 || cost.calls > 0 ? [`Cost: ${describeCost(cost, model)}`] : [];
  const end = [...failed, ...costs];
  return [`${mark}  ${counts.join(", ")}`, ...table, ...(end.length > 0 ? ["", ...end] : [])].join("\n");
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
