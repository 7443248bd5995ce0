/**
 * Executes folds: read the cover, plan a step, summarise it with no lock held, publish it by comparing the run, plan again. `plan.ts` makes
 * all decisions; this file reads, waits and writes.
 *
 * Invariants: whatever ends a sweep (deadline, abort, crash) leaves a complete cover, because each step is published separately, and stored
 * leaves all at once; a run that changed meanwhile is planned again, never forced; an existing summary is published and not paid for again.
 */
import type { CoverItem } from "../model/cover.ts";
import type { PublishResult } from "../store/folding.ts";
import { explainStop, planRound, planStoredLeaves, planSweep, recordPass, recordSweep } from "./plan.ts";
import type { FoldStep, RoundsState, StopReason, SweepState } from "./plan.ts";
import type { CompactionPolicy } from "./policy.ts";
import type { PlanFacts } from "./runs.ts";
import { foldSteps, readView } from "./steps.ts";
import type { FoldContext } from "./steps.ts";
import { prepareNext } from "./upkeep.ts";

export interface FoldResult {
  readonly passes: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Tokens saved by the passes. Messages that arrived meanwhile do not count. */
  readonly savedTokens: number;
  readonly summaryIds: readonly string[];
  readonly stopped: StopReason | "deadline" | "aborted" | "stale";
}

/** A run that keeps changing during a fold is left to the next sweep. */
const MAX_STALE_IN_A_ROW = 5;

/** One sweep: passes until the plan is empty or time is up. With `onlyStored` it only publishes existing summaries, which takes no time. */
async function sweep(context: FoldContext, start: SweepState, onlyStored = false): Promise<FoldResult> {
  const summaryIds: string[] = [];
  /** Stored summaries that turned out not to match the cover: they are not offered again. */
  const refused = new Set<string>();
  let state = start;
  let stale = 0;
  let savedTokens = 0;
  let view = await readView(context);
  const tokensBefore = view.shownTokens;
  const report = (stopped: FoldResult["stopped"]): FoldResult => ({
    passes: state.passes,
    tokensBefore,
    tokensAfter: view.shownTokens,
    savedTokens,
    summaryIds,
    stopped,
  });
  const note = (step: FoldStep, outcome: PublishResult): void => {
    if (outcome.kind === "stale") {
      if (step.publishId === null) stale++;
      else refused.add(step.publishId);
      return;
    }
    stale = 0;
    summaryIds.push(outcome.summaryId);
    savedTokens += outcome.tokensBefore - outcome.tokensAfter;
    state = recordPass(state, step, { before: outcome.tokensBefore, after: outcome.tokensAfter });
    context.onPass?.(state.passes);
  };
  for (;;) {
    if (context.signal.aborted && !onlyStored) return report(stopReason(context.signal));
    if (stale >= MAX_STALE_IN_A_ROW) return report("stale");
    const facts = withoutRefused(view.facts, refused);
    const steps = planSteps(view.items, context.policy, state, facts);
    if (steps.length === 0)
      return report(explainStop(view.items, context.policy, state, facts) ?? "nothing_to_fold");
    if (onlyStored && steps[0]?.publishId === null) return report(stopReason(context.signal));
    let outcomes: PublishResult[];
    try {
      outcomes = await foldSteps(context, view, steps);
    } catch (error) {
      if (context.signal.aborted) return report(stopReason(context.signal));
      throw error;
    }
    view = await readView(context);
    for (const [index, step] of steps.entries()) note(step, outcomes[index] ?? { kind: "stale" });
  }
}

/** What is done at once: all stored leaves that come next, or one step. */
function planSteps(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  facts: PlanFacts,
): FoldStep[] {
  const stored = planStoredLeaves(items, policy, state, facts);
  if (stored.length > 0) return stored;
  const step = planSweep(items, policy, state, facts);
  return step === null ? [] : [step];
}

function withoutRefused(facts: PlanFacts, refused: ReadonlySet<string>): PlanFacts {
  if (refused.size === 0) return facts;
  return { ...facts, reserve: (facts.reserve ?? []).filter(({ summaryId }) => !refused.has(summaryId)) };
}

const stopReason = (signal: AbortSignal): "deadline" | "aborted" =>
  (signal.reason as { name?: string } | undefined)?.name === "TimeoutError" ? "deadline" : "aborted";

/** How far to fold. */
export interface FoldGoal {
  /** Sweeps continue until the cover has at most this many tokens. */
  readonly targetTokens: number;
  /** Fold everything outside the tail first; without it, sweeps stop at the target, and not far below it. */
  readonly foldsAll: boolean;
  /** Leaf passes run on whatever there is, however little. */
  readonly isForced: boolean;
  /**
   * The leaves are made first and published together, so that the front of the context changes once and not with every model call. For
   * background work between turns; a caller that waits for a fold wants to see its progress.
   */
  readonly preparesFirst?: boolean;
}

/** Sweeps over a cover of this many tokens until it is under its target, until a sweep saves nothing, or until time is up. */
export async function foldUntilUnder(
  context: FoldContext,
  goal: FoldGoal,
  tokens: number,
): Promise<FoldResult> {
  const { targetTokens, foldsAll, isForced } = goal;
  let state: RoundsState = {
    targetTokens,
    budgetTokens: context.budgetTokens,
    isForced,
    foldsAll,
    landsNear: !foldsAll,
    last: null,
  };
  let report: FoldResult = {
    passes: 0,
    tokensBefore: tokens,
    tokensAfter: tokens,
    savedTokens: 0,
    summaryIds: [],
    stopped: "target_reached",
  };
  for (;;) {
    const plan = planRound(state, report.tokensAfter);
    if (plan.kind === "done") return { ...report, stopped: plan.stopped };
    const before = report;
    const isLate = state.foldsAll && goal.preparesFirst === true && (await prepareMany(context));
    const onPass = (passes: number): void => context.onPass?.(before.passes + passes);
    const round = await sweep({ ...context, onPass }, plan.sweep, isLate);
    report = joinReports(before, round);
    const { stopped, savedTokens } = round;
    if (stopped === "deadline" || stopped === "aborted" || stopped === "stale") return report;
    state = recordSweep(state, { stopped, savedTokens });
  }
}

/** Makes the leaves of one sweep ahead. True when the deadline ended it: finished leaves can still be published. */
async function prepareMany(context: FoldContext): Promise<boolean> {
  try {
    for (let made = 0; made < context.policy.maxSweepIterations && !context.signal.aborted; made++)
      if (!(await prepareNext(context, "due"))) break;
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
  return context.signal.aborted && stopReason(context.signal) === "deadline";
}

const joinReports = (first: FoldResult, second: FoldResult): FoldResult => ({
  ...second,
  passes: first.passes + second.passes,
  tokensBefore: first.tokensBefore,
  savedTokens: first.savedTokens + second.savedTokens,
  summaryIds: [...first.summaryIds, ...second.summaryIds],
});
