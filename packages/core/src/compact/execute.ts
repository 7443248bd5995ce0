/**
 * Carrying out folds: read the cover, plan a step, summarise it with no lock held, publish it by comparing the run, plan again. All
 * decisions are `plan.ts`'s; this file reads, waits and writes.
 *
 * Invariants: whatever ends a sweep (deadline, abort, crash) leaves a whole cover behind, because each step is published on its own, and
 * stored leaves all at once; a run that changed meanwhile is planned again, never forced; a summary that exists is published and not
 * paid again.
 */
import { setImmediate } from "node:timers/promises";
import type { CoverItem } from "../model/cover.ts";
import { EngineError, must } from "../model/errors.ts";
import { findFreshTail } from "../model/tail.ts";
import { isUserMessage, MAX_INTERVENING_MESSAGES } from "../model/tool-groups.ts";
import type {
  CoverTail,
  FoldRun,
  PublishOutcome,
  RunItem,
  StoredFold,
  SummaryText,
} from "../store/folding.ts";
import type { Store } from "../store/store.ts";
import { condensedTarget, leafTarget, type CompactionPolicy } from "./policy.ts";
import { planReserve } from "./plan-reserve.ts";
import {
  explainStop,
  MAX_ROUNDS,
  planPrepared,
  planRound,
  planStoredLeaves,
  planSweep,
  recordPass,
  startRounds,
  startSweep,
} from "./plan.ts";
import type { FoldStep, StopReason, SweepState } from "./plan.ts";
import type { PlanScope, PlanWindow } from "./runs.ts";

/** One summary of one run; see `summarize/summarize.ts`. Passed in, because folding knows no models. */
export type SummarizeRun = (request: {
  conversationId: number;
  purpose: "leaf" | "condensed" | "reserve";
  depth: number;
  run: readonly RunItem[];
  previous: string | null;
  targetTokens: number;
  sourceTokens: number;
  customInstructions?: string;
  signal: AbortSignal;
}) => Promise<{
  content: string;
  tokens: number;
  model: string;
  level: "normal" | "aggressive" | "extractive";
}>;

export interface FoldContext {
  readonly store: Store;
  readonly summarize: SummarizeRun;
  readonly policy: CompactionPolicy;
  readonly conversationId: number;
  readonly budgetTokens: number;
  readonly makeSummaryId: () => string;
  /** Tokens of a summary as it is sent, with everything written around its text. */
  readonly measure: (summary: { content: string; depth: number; run: readonly RunItem[] }) => number;
  /** The fold revision a context was last made at, as far as is known. */
  readonly seenRevision: () => number | null;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly customInstructions?: string;
  readonly onPass?: (pass: { passes: number }) => void;
}

export interface FoldReport {
  readonly passes: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly summaryIds: readonly string[];
  readonly stopped: StopReason | "deadline" | "aborted" | "stale";
}

/** A run that changes again and again under a fold is left to the next sweep. */
const MAX_STALE_IN_A_ROW = 5;

interface CoverView {
  readonly items: readonly CoverItem[];
  readonly scope: PlanScope;
  readonly shownTokens: number;
}

/** Beyond the tail's own limits, so that the tool group at its edge is seen whole. */
const TAIL_LOOK_BACK_MESSAGES = 2 * MAX_INTERVENING_MESSAGES;

/** Reads what a plan needs: the oldest part of the cover, and from the newest part where the tail begins. */
async function readView({ store, policy, conversationId }: FoldContext): Promise<CoverView> {
  // Every step passes here. Without a model nothing else waits for the event loop, and a cancellation or a deadline could not come in.
  await setImmediate();
  const head = await store.readCoverHead({ conversationId, maxMessageTokens: 3 * policy.leafChunkTokens });
  const tail = await store.readCoverTail({
    conversationId,
    // A turn is whole in the tail up to this many tokens; read as far, its length is known.
    maxTokens: head.isWhole ? 0 : (policy.turnMaxTokens ?? Number.MAX_SAFE_INTEGER),
    maxMessages: head.isWhole ? 0 : policy.freshTailCount + TAIL_LOOK_BACK_MESSAGES,
  });
  if (!tail)
    throw new EngineError(
      "not_found",
      `cannot fold conversation ${conversationId}: there is no such conversation`,
    );
  const { boundaries, reserve } = tail;
  const { shownTokens } = tail.counters;
  if (head.isWhole) return { items: head.items, scope: { boundaries, reserve }, shownTokens };
  const window = { ...findTailWindow(tail, policy), shownTokens, prefixTokens: head.prefixTokens };
  return { items: head.items, scope: { boundaries, reserve, window }, shownTokens };
}

function findTailWindow(
  tail: CoverTail,
  policy: CompactionPolicy,
): Pick<PlanWindow, "tailStartPosition" | "pinned"> {
  const newest = tail.items.toReversed();
  const fresh = findFreshTail(newest, policy);
  const hasUser = fresh.pinned !== null || newest.slice(fresh.startIndex).some(isUserMessage);
  const pinned = fresh.pinned
    ? newest.slice(fresh.pinned.startIndex, fresh.pinned.endIndex)
    : hasUser
      ? []
      : [tail.newestUser];
  const [first, last] = [pinned[0], pinned.at(-1)];
  return {
    tailStartPosition: newest[fresh.startIndex]?.startPosition ?? Number.MAX_SAFE_INTEGER,
    pinned: first && last ? { startPosition: first.startPosition, endPosition: last.endPosition } : null,
  };
}

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

/** Makes, ahead of need, the next leaf a sweep will want. Stored unpublished: the context does not change. False: nothing to prepare. */
export async function prepareNext(context: FoldContext, when: "ahead" | "due" = "ahead"): Promise<boolean> {
  const view = await readView(context);
  const step = planPrepared(view.items, context.policy, view.scope, when);
  if (step === null) return false;
  const outcome = await summarizeStep(context, view, step, "prepared");
  return outcome.kind === "published";
}

/** Makes the next reserve summary, up to the root. False: nothing to make. */
export async function reserveNext(context: FoldContext): Promise<boolean> {
  const { store, policy, conversationId, budgetTokens } = context;
  const view = await readView(context);
  const step = planReserve(view.items, policy, budgetTokens, view.scope);
  if (step === null) return false;
  const items = view.items.filter(
    (item) => item.startPosition >= step.startPosition && item.endPosition <= step.endPosition,
  );
  const run = await store.readRun(conversationId, items);
  if (countMessages(run) !== step.messages) return false;
  const sources = await replaceByStandIns(context, run, step.sourceIds);
  const text = await context.summarize({
    conversationId,
    purpose: "reserve",
    depth: step.depth,
    run: sources.filter(tellsSomething),
    previous: null,
    targetTokens: step.targetTokens,
    sourceTokens: step.inputTokens,
    signal: context.signal,
  });
  const outcome = await store.storeSummary({
    conversationId,
    run: toKeys(run),
    sourceIds: step.sourceIds,
    summary: toSummary(context, text, step.depth, sources),
    state: "reserve",
    isRoot: step.isRoot,
    seenRevision: context.seenRevision(),
    now: context.now(),
  });
  return outcome.kind === "published";
}

/** The run with earlier stand-ins in the place of what they stand for: a history too long for one call is told in steps. */
async function replaceByStandIns(
  { store }: FoldContext,
  run: readonly RunItem[],
  sourceIds: readonly string[],
): Promise<RunItem[]> {
  let replaced = [...run];
  for (const id of sourceIds) {
    if (run.some((item) => item.summary?.summaryId === id)) continue;
    const summary = await store.readSummary(id);
    if (!summary) continue;
    const lies = (item: RunItem): boolean =>
      item.startPosition >= summary.startPosition && item.endPosition <= summary.endPosition;
    const at = replaced.findIndex(lies);
    const { startPosition, endPosition, tokens, messages, earliestAt: createdAt } = summary;
    const standIn = { startPosition, endPosition, tokens, messages, createdAt, seq: replaced[at]?.seq ?? 0 };
    replaced = replaced.filter((item) => !lies(item));
    replaced.splice(at, 0, { ...standIn, hidden: 0, messageId: null, versionId: null, bytes: null, summary });
  }
  return replaced;
}

/** Nothing is paid for a run that is not what was planned: it could never be published. */
const countMessages = (run: readonly RunItem[]): number =>
  run.reduce((sum, item) => sum + (item.hidden === 0 ? item.messages : 0), 0);

/** A summary of which nothing is shown any more has nothing to say to the one above it. */
const tellsSomething = (item: RunItem): boolean => item.summary === null || item.summary.messages > 0;

/** What stands for a run of which nothing is shown; it lies under another summary, which leaves it out. */
const NOTHING_SHOWN = "[Nothing of this is shown: every message here is hidden.]";

/** Remakes the next summary that tells something old. False: there is none, or it changed meanwhile. */
export async function remakeNext(context: FoldContext): Promise<boolean> {
  const { store, policy, conversationId } = context;
  const stale = await store.readStale(conversationId);
  if (!stale) return false;
  const { summary, run } = stale;
  const shown = run.filter((item) => item.hidden === 0 && tellsSomething(item));
  const sourceTokens = shown.reduce((sum, item) => sum + item.tokens, 0);
  const text =
    shown.length === 0
      ? ({ content: NOTHING_SHOWN, model: "extractive", level: "extractive" } as const)
      : await context.summarize({
          conversationId,
          purpose: summary.kind,
          depth: summary.depth,
          run: shown,
          previous: null,
          targetTokens:
            summary.depth === 0 ? leafTarget(policy, sourceTokens) : condensedTarget(policy, sourceTokens),
          sourceTokens,
          signal: context.signal,
        });
  const outcome = await store.storeRemade({
    conversationId,
    replacesId: summary.summaryId,
    run: toKeys(run),
    summary: toSummary(context, text, summary.depth, run),
    now: context.now(),
  });
  return outcome.kind === "published";
}

async function foldSteps(
  context: FoldContext,
  view: CoverView,
  steps: readonly FoldStep[],
): Promise<PublishOutcome[]> {
  const { store, conversationId } = context;
  const [first] = steps;
  if (first?.publishId === null) return [await summarizeStep(context, view, first, "cover")];
  const folds: StoredFold[] = [];
  for (const { publishId, startIndex, endIndex } of steps) {
    const run = await store.readRun(conversationId, view.items.slice(startIndex, endIndex), false);
    folds.push({ summaryId: must(publishId, "stored summary of a step"), run: toKeys(run) });
  }
  return store.publishStored({ conversationId, folds, now: context.now() });
}

async function summarizeStep(
  context: FoldContext,
  view: CoverView,
  step: FoldStep,
  state: "cover" | "prepared",
): Promise<PublishOutcome> {
  const { store, conversationId } = context;
  const run = await store.readRun(conversationId, view.items.slice(step.startIndex, step.endIndex));
  if (countMessages(run) !== step.messages) return { kind: "stale" };
  const text = await context.summarize({
    conversationId,
    purpose: step.kind,
    depth: step.depth,
    run: run.filter(tellsSomething),
    previous: await readPrevious(context, view, step),
    targetTokens: step.targetTokens,
    sourceTokens: step.inputTokens,
    signal: context.signal,
    ...(context.customInstructions === undefined ? {} : { customInstructions: context.customInstructions }),
  });
  return store.storeSummary({
    conversationId,
    run: toKeys(run),
    summary: toSummary(context, text, step.depth, run),
    state,
    seenRevision: context.seenRevision(),
    now: context.now(),
  });
}

function toSummary(
  context: FoldContext,
  text: Omit<Awaited<ReturnType<SummarizeRun>>, "tokens">,
  depth: number,
  run: readonly RunItem[],
): SummaryText {
  const { content, model, level } = text;
  return {
    summaryId: context.makeSummaryId(),
    content,
    model,
    level,
    tokens: context.measure({ content, depth, run }),
  };
}

/** The summary right before the run, published or prepared: what a reader of the new one has just read. */
async function readPrevious({ store }: FoldContext, view: CoverView, step: FoldStep): Promise<string | null> {
  const before = view.items.slice(0, step.startIndex).findLast((item) => item.hidden === 0);
  if (before === undefined) return null;
  const prepared = view.scope.reserve?.find(
    ({ depth, endPosition }) => depth === 0 && endPosition === before.endPosition,
  );
  const summaryId = before.summaryId ?? prepared?.summaryId;
  return summaryId === undefined ? null : ((await store.readSummary(summaryId))?.content ?? null);
}

function toKeys(run: readonly RunItem[]): FoldRun {
  return run.map(({ startPosition, seq, hidden, versionId, summary }) => ({
    startPosition,
    seq,
    hidden,
    versionId,
    summaryId: summary?.summaryId ?? null,
  }));
}
