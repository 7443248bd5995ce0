/**
 * Carrying out folds: read the cover, plan a step, summarise it with no lock held, publish it by comparing the run, plan again. All
 * decisions are `plan.ts`'s; this file reads, waits and writes.
 *
 * Invariants: whatever ends a sweep (deadline, abort, crash) leaves a whole cover behind, because each step is published on its own, and
 * stored leaves all at once; a run that changed meanwhile is planned again, never forced; a summary that exists is published and not
 * paid again.
 */
import type { CoverItem } from "../model/cover.ts";
import type { PublishOutcome } from "../store/folding.ts";
import {
  explainStop,
  MAX_ROUNDS,
  planRound,
  planStoredLeaves,
  planSweep,
  recordPass,
  startRounds,
  startSweep,
} from "./plan.ts";
import type { FoldStep, StopReason, SweepState } from "./plan.ts";
import type { CompactionPolicy } from "./policy.ts";
import type { PlanScope } from "./runs.ts";
import { foldSteps, readView } from "./steps.ts";
import type { FoldContext } from "./steps.ts";
import { prepareNext } from "./upkeep.ts";

export interface FoldReport {
  readonly passes: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly summaryIds: readonly string[];
  readonly stopped: StopReason | "deadline" | "aborted" | "stale";
}

/** A run that changes again and again under a fold is left to the next sweep. */
const MAX_STALE_IN_A_ROW = 5;

/** One sweep: passes until the plan is empty or time is up. With `onlyStored` nothing is made, only published, which takes no time. */
export async function sweep(
  context: FoldContext,
  start: SweepState,
  onlyStored = false,
): Promise<FoldReport> {
  const summaryIds: string[] = [];
  /** Stored summaries that turned out not to fit what lies there: they are not offered again. */
  const refused = new Set<string>();
  let state = start;
  let stale = 0;
  let view = await readView(context);
  const tokensBefore = view.shownTokens;
  const report = (stopped: FoldReport["stopped"]): FoldReport => ({
    passes: state.passes,
    tokensBefore,
    tokensAfter: view.shownTokens,
    summaryIds,
    stopped,
  });
  const note = (step: FoldStep, outcome: PublishOutcome): void => {
    if (outcome.kind === "stale") {
      if (step.publishId === null) stale++;
      else refused.add(step.publishId);
      return;
    }
    stale = 0;
    summaryIds.push(outcome.summaryId);
    state = recordPass(state, step, { before: outcome.tokensBefore, after: outcome.tokensAfter });
    context.onPass?.({ passes: state.passes });
  };
  for (;;) {
    if (context.signal.aborted && !onlyStored) return report(stopReason(context.signal));
    if (stale >= MAX_STALE_IN_A_ROW) return report("stale");
    const scope = withoutRefused(view.scope, refused);
    const steps = planSteps(view.items, context.policy, state, scope);
    if (steps.length === 0)
      return report(explainStop(view.items, context.policy, state, scope) ?? "nothing_to_fold");
    if (onlyStored && steps[0]?.publishId === null) return report(stopReason(context.signal));
    let outcomes: PublishOutcome[];
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

/** What is done in one go: all stored leaves that come next, or one step. */
function planSteps(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  scope: PlanScope,
): FoldStep[] {
  const stored = planStoredLeaves(items, policy, state, scope);
  if (stored.length > 0) return stored;
  const step = planSweep(items, policy, state, scope);
  return step === null ? [] : [step];
}

function withoutRefused(scope: PlanScope, refused: ReadonlySet<string>): PlanScope {
  if (refused.size === 0) return scope;
  return { ...scope, reserve: (scope.reserve ?? []).filter(({ summaryId }) => !refused.has(summaryId)) };
}

const stopReason = (signal: AbortSignal): "deadline" | "aborted" =>
  (signal.reason as { name?: string } | undefined)?.name === "TimeoutError" ? "deadline" : "aborted";

export function sweepOnce(
  context: FoldContext,
  options: { isForced: boolean; stopAtTokens: number | null },
): Promise<FoldReport> {
  return sweep(context, startSweep({ budgetTokens: context.budgetTokens, ...options }));
}

export interface ThresholdFold {
  readonly stopAtTokens: number;
  /**
   * The leaves are made first and published in one go, so that the front of the context changes once and not with every call to a model.
   * For work in the background, between turns; who waits for a fold wants to see it advance.
   */
  readonly preparesFirst: boolean;
}

/** The fold at the threshold: everything outside the tail. Whatever is left above the threshold then is condensed. */
export async function foldAtThreshold(context: FoldContext, fold: ThresholdFold): Promise<FoldReport> {
  let report = await foldRound(context, fold);
  for (let round = 2; round <= MAX_ROUNDS; round++) {
    if (report.stopped !== "pass_limit" || report.tokensAfter <= fold.stopAtTokens) break;
    report = joinReports(report, await foldRound(context, fold));
  }
  if (report.tokensAfter <= fold.stopAtTokens || context.signal.aborted) return report;
  return joinReports(report, await sweepOnce(context, { isForced: false, stopAtTokens: fold.stopAtTokens }));
}

async function foldRound(context: FoldContext, { preparesFirst }: ThresholdFold): Promise<FoldReport> {
  if (preparesFirst) await prepareMany(context, context.policy.maxSweepIterations);
  const isLate = context.signal.aborted && stopReason(context.signal) === "deadline";
  return sweep(context, startSweep({ budgetTokens: context.budgetTokens }), isLate);
}

async function prepareMany(context: FoldContext, count: number): Promise<void> {
  try {
    for (let made = 0; made < count && !context.signal.aborted; made++)
      if (!(await prepareNext(context, "due"))) return;
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
}

const joinReports = (first: FoldReport, second: FoldReport): FoldReport => ({
  ...second,
  passes: first.passes + second.passes,
  tokensBefore: first.tokensBefore,
  summaryIds: [...first.summaryIds, ...second.summaryIds],
});

/** Forced sweeps, up to ten, until the cover is under the target. */
export async function compactUntilUnder(context: FoldContext, targetTokens: number): Promise<FoldReport> {
  let rounds = startRounds(targetTokens, context.budgetTokens);
  let view = await readView(context);
  const tokensBefore = view.shownTokens;
  const summaryIds: string[] = [];
  let passes = 0;
  for (;;) {
    const plan = planRound(rounds, view.shownTokens);
    if (plan.kind === "done") {
      const stopped =
        plan.reason === "under_target"
          ? "target_reached"
          : plan.reason === "round_limit"
            ? "pass_limit"
            : "no_progress";
      return { passes, tokensBefore, tokensAfter: view.shownTokens, summaryIds, stopped };
    }
    const report = await sweep(context, plan.sweep);
    rounds = plan.next;
    passes += report.passes;
    summaryIds.push(...report.summaryIds);
    view = await readView(context);
    if (report.stopped === "deadline" || report.stopped === "aborted" || report.stopped === "stale") {
      return { passes, tokensBefore, tokensAfter: view.shownTokens, summaryIds, stopped: report.stopped };
    }
  }
}
