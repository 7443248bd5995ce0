/**
 * What to fold next. Pure: from the items of a cover and a policy to one step, which names a run of neighbours and the depth it makes; the
 * executor reads the run, has it summarised, publishes it, and asks again with the resulting cover.
 *
 * Invariants: a run is before the fresh tail, is cut only between tool groups, spans no boundary, never omits or duplicates an item, and
 * never cuts across a stored stand-in. A sweep has three phases (leaf, routine, pressure) and ends when a pass saves nothing, when nothing
 * is left to do, or after `maxSweepIterations` passes.
 */
import type { CoverItem } from "../model/cover.ts";
import { must } from "../model/errors.ts";
import { isMessageItem, isSummaryItem } from "../model/tool-groups.ts";
import {
  condensedTarget,
  leafTarget,
  MIN_TARGET_TOKENS,
  minCondensedTokens,
  prefixLimitTokens,
  prefixTargetTokens,
  type CompactionPolicy,
} from "./policy.ts";
import {
  countSummaries,
  cutCondensedChunk,
  cutLeafChunks,
  findRuns,
  findSummaryRuns,
  isWorthFolding,
  readField,
  shortenChunk,
  widenOverHidden,
  type Bundle,
  type Chunk,
  type Field,
  type PlanFacts,
} from "./runs.ts";

export type SweepPhase = "leaf" | "routine" | "pressure";

/** The progress of a sweep. Plain data: a sweep can be stopped, stored and resumed. */
export interface SweepState {
  readonly phase: SweepPhase;
  readonly passes: number;
  /** Leaf passes run on whatever there is, however little. */
  readonly isForced: boolean;
  /** The window the derived prefix target refers to. */
  readonly budgetTokens: number;
  /** The sweep may stop once the cover is at or below this. Null: only the prefix target counts. */
  readonly stopAtTokens: number | null;
  /** The number was requested: the last chunk is shortened, so that not much more is folded than requested. */
  readonly landsNear: boolean;
  /** A pass saved nothing. */
  readonly isStalled: boolean;
}

export type StopReason = "no_progress" | "pass_limit" | "target_reached" | "nothing_to_fold";

/** A run of neighbouring items and the summary to make of it. */
export interface FoldStep {
  readonly kind: "leaf" | "condensed";
  readonly phase: SweepPhase;
  /** Half-open range of the list that was planned over; hidden rows in it go under the summary, unread. */
  readonly startIndex: number;
  readonly endIndex: number;
  readonly startPosition: number;
  readonly endPosition: number;
  readonly depth: number;
  /** Shown messages the summary will represent. */
  readonly messages: number;
  readonly inputTokens: number;
  readonly targetTokens: number;
  /** A stored summary of exactly this run: it is published, and nothing is paid for again. */
  readonly publishId: string | null;
}

export function startSweep(options: {
  budgetTokens: number;
  isForced?: boolean;
  stopAtTokens?: number | null;
  landsNear?: boolean;
}): SweepState {
  return {
    phase: "leaf",
    passes: 0,
    isForced: options.isForced ?? false,
    budgetTokens: options.budgetTokens,
    stopAtTokens: options.stopAtTokens ?? null,
    landsNear: options.landsNear ?? false,
    isStalled: false,
  };
}

/** The state after a pass: each must save tokens, or the sweep ends. */
export function recordPass(
  state: SweepState,
  step: FoldStep,
  tokens: { before: number; after: number },
): SweepState {
  return {
    ...state,
    phase: step.phase,
    passes: state.passes + 1,
    isStalled: state.isStalled || tokens.after >= tokens.before,
  };
}

/** The next step of a sweep over a cover given oldest first, or null when the sweep is over. */
export function planSweep(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  facts: PlanFacts = {},
): FoldStep | null {
  const result = planNext(items, policy, state, facts);
  return typeof result === "string" ? null : result;
}

/**
 * The stored leaves that `planSweep` would return one after the other from here. They are published together, so that the front of the
 * context changes once; the rest is planned as usual.
 */
export function planStoredLeaves(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  facts: PlanFacts = {},
): FoldStep[] {
  const steps: FoldStep[] = [];
  if (state.phase !== "leaf" || state.isStalled) return steps;
  const field = readField(items, policy, facts);
  let { shownTokens } = field;
  for (const chunk of cutAllLeaves(field, policy)) {
    if (!isWorthFolding(chunk, policy, state.isForced)) continue;
    const isReached = state.stopAtTokens !== null && shownTokens <= state.stopAtTokens;
    const isLast = state.passes + steps.length >= policy.maxSweepIterations;
    if (chunk.stored === null || isReached || isLast) break;
    steps.push(makeLeafStep(field, chunk, policy));
    if (chunk.stored.tokens >= chunk.tokens) break;
    shownTokens += chunk.stored.tokens - chunk.tokens;
  }
  return steps;
}

/** Why `planSweep` has no step. */
export function explainStop(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  facts: PlanFacts = {},
): StopReason | null {
  const result = planNext(items, policy, state, facts);
  return typeof result === "string" ? result : null;
}

/**
 * Leaf summaries worth making before they are published: the runs a sweep will fold, not stored yet. Ahead of the threshold only full ones:
 * the last run is still growing, and a leaf of a few messages is one more call to pay for and one more summary to condense. No more are
 * made than one sweep publishes.
 */
export function planPrepared(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  facts: PlanFacts = {},
  when: "ahead" | "due" = "ahead",
): FoldStep | null {
  const field = readField(items, policy, facts);
  let stored = 0;
  for (const chunk of cutAllLeaves(field, policy)) {
    if (chunk.stored !== null && ++stored >= policy.maxSweepIterations) return null;
    const isWanted = when === "ahead" ? chunk.isFull : isWorthFolding(chunk, policy, false);
    if (chunk.stored === null && isWanted) return makeLeafStep(field, chunk, policy);
  }
  return null;
}

// Sweeps until a context is under its target.

/** The progress of a fold of several sweeps. Plain data, like `SweepState`. */
export interface RoundsState {
  readonly targetTokens: number;
  readonly budgetTokens: number;
  /** Leaf passes run on whatever there is, however little. */
  readonly isForced: boolean;
  /** The next sweep folds everything outside the tail; the ones after it stop at the target. */
  readonly foldsAll: boolean;
  /** The target was requested; see `SweepState`. */
  readonly landsNear: boolean;
  /** How the previous sweep ended; null before the first. */
  readonly last: (SweepResult & { readonly hadTarget: boolean }) | null;
}

export interface SweepResult {
  /** Tokens saved by its passes. Messages that arrived meanwhile do not count. */
  readonly savedTokens: number;
  readonly stopped: StopReason;
}

export type RoundPlan =
  | { readonly kind: "sweep"; readonly sweep: SweepState }
  | { readonly kind: "done"; readonly stopped: StopReason };

/**
 * The next sweep, or why there is none: sweeps run until the cover is under its target, or until one saves nothing. Their number is not
 * limited; the caller's deadline and signal stop them.
 */
export function planRound(state: RoundsState, tokens: number): RoundPlan {
  const { last, foldsAll, targetTokens, budgetTokens, isForced, landsNear } = state;
  const isUnder = last === null ? !foldsAll && tokens < targetTokens : tokens <= targetTokens;
  const hasFoldedAll = last?.stopped === "nothing_to_fold";
  if (isUnder) return { kind: "done", stopped: hasFoldedAll ? "nothing_to_fold" : "target_reached" };
  if (last?.hadTarget === true && last.savedTokens <= 0)
    return { kind: "done", stopped: hasFoldedAll ? "nothing_to_fold" : "no_progress" };
  const stopAtTokens = foldsAll ? null : targetTokens;
  return { kind: "sweep", sweep: startSweep({ budgetTokens, isForced, stopAtTokens, landsNear }) };
}

/** The state after a sweep. Once everything outside the tail is folded, further sweeps condense down to the target. */
export function recordSweep(state: RoundsState, result: SweepResult): RoundsState {
  const foldsAll = state.foldsAll && result.stopped === "pass_limit";
  return { ...state, foldsAll, last: { ...result, hadTarget: !state.foldsAll } };
}

// Phases.

function planNext(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  state: SweepState,
  facts: PlanFacts,
): FoldStep | StopReason {
  if (state.isStalled) return "no_progress";
  if (state.passes >= policy.maxSweepIterations) return "pass_limit";
  const field = readField(items, policy, facts);
  const isOver = state.stopAtTokens !== null && field.shownTokens > state.stopAtTokens;
  if (state.stopAtTokens !== null && !isOver) return "target_reached";
  const leaf = state.phase === "leaf" ? planLeaf(field, policy, state) : null;
  if (leaf !== null) return leaf;
  if (!isOver && field.prefixTokens <= prefixLimitTokens(policy, state.budgetTokens))
    return "nothing_to_fold";
  const excess = isOver ? null : findExcess(field, policy, state);
  const routine = state.phase === "pressure" ? null : planCondensed(field, policy, state, "routine", excess);
  const pressed = routine ?? planCondensed(field, policy, state, "pressure", excess);
  if (pressed !== null) return pressed;
  if (!isOver) return (excess === null ? null : planMixed(field, policy, state, excess)) ?? "nothing_to_fold";
  return (state.landsNear ? planLastResort(field, policy, state) : null) ?? "nothing_to_fold";
}

function planLeaf(field: Field, policy: CompactionPolicy, state: SweepState): FoldStep | null {
  for (const chunk of cutAllLeaves(field, policy))
    if (isWorthFolding(chunk, policy, state.isForced))
      return makeLeafStep(field, shortenLeaf(field, chunk, policy, state), policy);
  return null;
}

/** A fold leaves at least this share of a requested target, as far as its chunks can be cut. */
const LANDS_ABOVE = 0.8;
/** A shortened chunk aims a little below the target: a summary may come out longer than intended. */
const LANDS_AT = 0.95;

/** The excess over a target, if folding this much would leave too little of it; null: it would not. */
function findGap(field: Field, state: SweepState, savedTokens: number): number | null {
  const { stopAtTokens, landsNear } = state;
  if (stopAtTokens === null || !landsNear) return null;
  if (field.shownTokens - savedTokens >= LANDS_ABOVE * stopAtTokens) return null;
  return field.shownTokens - LANDS_AT * stopAtTokens;
}

/** A summary that has to fill a gap is requested shorter by this: the frame it is shown in takes 60 to 200 tokens. */
const FRAME_TOKENS = 128;
/** Such a summary takes at most this share of its sources, and is at most this many times as long as usual. */
const MOST_OF_SOURCES = 0.75;
const MOST_OF_TARGET = 2;

/** How much longer a summary may be if even the shortest run would leave too little of the target. */
function findSpare(field: Field, state: SweepState, inputTokens: number, targetTokens: number): number {
  const gap = findGap(field, state, inputTokens - targetTokens);
  if (gap === null) return 0;
  const longest = Math.min(
    Math.floor(inputTokens - gap) - FRAME_TOKENS,
    Math.floor(MOST_OF_SOURCES * inputTokens),
    MOST_OF_TARGET * targetTokens,
  );
  return Math.max(0, longest - targetTokens);
}

const savedByLeaf = (policy: CompactionPolicy, tokens: number): number => tokens - leafTarget(policy, tokens);

/** The shortest beginning of a chunk that saves enough, with at least `leafMinFanout` messages. */
function shortenLeaf(field: Field, chunk: Chunk, policy: CompactionPolicy, state: SweepState): Chunk {
  const gap = findGap(field, state, savedByLeaf(policy, chunk.tokens));
  if (gap === null || chunk.stored !== null) return chunk;
  return shortenChunk(
    field,
    chunk,
    ({ tokens, messages }) => messages >= policy.leafMinFanout && savedByLeaf(policy, tokens) >= gap,
  );
}

function* cutAllLeaves(field: Field, policy: CompactionPolicy): Generator<Chunk, void> {
  for (const run of findRuns(field, isMessageItem)) yield* cutLeafChunks(field, run, policy);
}

/**
 * The excess tokens of the summaries, in a window so small that a whole run would be most of what is left to show: there a run is condensed
 * only as far as necessary. Null in larger windows, which take runs whole.
 */
function findExcess(field: Field, policy: CompactionPolicy, state: SweepState): number | null {
  const { budgetTokens } = state;
  if (prefixTargetTokens(policy, budgetTokens) >= policy.leafChunkTokens) return null;
  return field.prefixTokens - prefixLimitTokens(policy, budgetTokens);
}

/** Shallowest depth first, and there the oldest run that is long enough. */
function planCondensed(
  field: Field,
  policy: CompactionPolicy,
  state: SweepState,
  phase: "routine" | "pressure",
  excessTokens: number | null,
): FoldStep | null {
  for (const depth of field.depths) {
    if (phase === "routine" && policy.sweepMaxDepth >= 0 && depth >= policy.sweepMaxDepth) break;
    const fanout = chooseFanout(policy, depth, phase);
    const step = planRuns(field, policy, state, {
      phase,
      fanout,
      excessTokens,
      isPart: (item) => item.depth === depth,
    });
    if (step !== null) return step;
  }
  return null;
}

/** Summaries of different depths become one only where the limit of the summaries leaves room for this many. */
const MIXED_FROM_SUMMARIES = 4;

/**
 * For a small window, if no two neighbours have the same depth and the summaries are still above their limit: neighbours of different
 * depths become one, as in a stand-in. A long conversation has a summary of almost every depth. Together they would leave so little room
 * that every few messages end in a fold, and each fold changes the front of the context. This one also makes room for the next leaf, so
 * that the next fold can leave the summaries as they are. It takes as few as possible, then those nearest in depth, because detail is lost
 * each time. Where fewer than four fit, or even all of them would not save enough, they stay: one would replace most of what is shown.
 */
function planMixed(
  field: Field,
  policy: CompactionPolicy,
  state: SweepState,
  excessTokens: number,
): FoldStep | null {
  const limit = prefixLimitTokens(policy, state.budgetTokens);
  if (limit < MIXED_FROM_SUMMARIES * policy.condensedTargetTokens) return null;
  const runs = findSummaryRuns(field, policy, isSummaryItem);
  const depthsOf = (run: readonly Bundle[]): number[] => run.map((bundle) => deepestOf(field, bundle));
  // Neighbours of one depth that a stand-in keeps apart wait until it is remade.
  if (runs.some((run) => depthsOf(run).some((depth, at, all) => depth === all[at - 1]))) return null;
  const longest = Math.max(0, ...runs.map((run) => run.length));
  for (let count = policy.condensedMinFanoutHard; count <= longest; count++) {
    let best: { readonly chunk: Chunk; readonly spread: number } | null = null;
    for (const part of runs.flatMap((run) => listParts(run, count))) {
      const depths = depthsOf(part);
      const deepest = Math.max(...depths);
      const chunk = cutCondensedChunk(field, part, policy, deepest, count);
      const saved = chunk.tokens - condensedTarget(policy, chunk.tokens);
      const spread = deepest - Math.min(...depths);
      if (countSummaries(field, chunk) < count || saved < excessTokens + policy.leafTargetTokens) continue;
      if (best === null || spread < best.spread) best = { chunk, spread };
    }
    if (best !== null) return makeCondensedStep(field, best.chunk, policy);
  }
  return null;
}

/** All parts of a run with this many summaries, oldest first. */
const listParts = (run: readonly Bundle[], count: number): (readonly Bundle[])[] =>
  run.slice(count - 1).map((_, from) => run.slice(from, from + count));

const makeCondensedStep = (field: Field, chunk: Chunk, policy: CompactionPolicy): FoldStep =>
  makeStep(field, chunk, {
    kind: "condensed",
    phase: "pressure",
    depth: deepestOf(field, chunk.members) + 1,
    targetTokens: condensedTarget(policy, chunk.tokens),
  });

/**
 * If no depth has neighbours left and the cover is still above its target: neighbours of different depths become one, as in a stand-in, and
 * finally a single summary gets a shorter one above it. Otherwise one summary of each depth, or one on either side of the newest user
 * message, could never reach a requested target. A fold that was only due never shortens a single summary: it would give up its content for
 * room that nobody requested.
 */
function planLastResort(field: Field, policy: CompactionPolicy, state: SweepState): FoldStep | null {
  const excessTokens = field.shownTokens - LANDS_AT * (state.stopAtTokens ?? field.shownTokens);
  const need = { phase: "pressure", excessTokens, isPart: () => true } as const;
  return (
    planRuns(field, policy, state, { ...need, fanout: policy.condensedMinFanoutHard }) ??
    planRuns(field, policy, state, { ...need, fanout: 1 })
  );
}

interface RunNeed {
  readonly phase: "routine" | "pressure";
  readonly fanout: number;
  readonly excessTokens: number | null;
  /** Which summaries may be in one run. */
  readonly isPart: (item: CoverItem) => boolean;
}

function planRuns(
  field: Field,
  policy: CompactionPolicy,
  state: SweepState,
  { phase, fanout, excessTokens, isPart }: RunNeed,
): FoldStep | null {
  // Under pressure two summaries that are too long for a chunk are still condensed: nothing else would shorten them.
  const minSummaries = phase === "pressure" ? fanout : 1;
  for (const run of findSummaryRuns(field, policy, (item) => isSummaryItem(item) && isPart(item))) {
    const depth = deepestOf(field, run.flat());
    const whole = cutCondensedChunk(field, run, policy, depth, minSummaries);
    const saved = whole.tokens - condensedTarget(policy, whole.tokens);
    const needed = excessTokens ?? findGap(field, state, saved);
    const chunk =
      needed === null
        ? whole
        : cutAsNeeded(field, run, policy, { depth, fanout, minSummaries, excessTokens: needed });
    const enough = phase === "pressure" || chunk.tokens >= minCondensedTokens(policy);
    if (countSummaries(field, chunk) < fanout || !enough) continue;
    const targetTokens =
      fanout === 1 ? shortTarget(policy, chunk, needed ?? 0) : condensedTarget(policy, chunk.tokens);
    if (targetTokens >= chunk.tokens) continue;
    // Pressure may take fewer summaries, and so ends nearer to the target.
    if (phase === "routine" && findGap(field, state, chunk.tokens - targetTokens) !== null) continue;
    const room = findSpare(field, state, chunk.tokens, targetTokens);
    return makeStep(field, chunk, {
      kind: "condensed",
      phase,
      depth: deepestOf(field, chunk.members) + 1,
      targetTokens: targetTokens + room,
    });
  }
  return null;
}

/** The target for shortening a single summary: reduced by what must be saved, but not below the minimum worth a summary. */
const shortTarget = (policy: CompactionPolicy, { tokens }: Chunk, neededTokens: number): number =>
  Math.min(
    condensedTarget(policy, tokens),
    Math.max(MIN_TARGET_TOKENS, Math.floor(tokens - neededTokens) - FRAME_TOKENS),
  );

const deepestOf = (field: Field, members: readonly number[]): number =>
  Math.max(...members.map((index) => must(field.items[index], "member of a run").depth));

/** The shortest beginning of a run that saves enough; all of it when that is too little, or already stored. */
function cutAsNeeded(
  field: Field,
  run: readonly Bundle[],
  policy: CompactionPolicy,
  need: {
    readonly depth: number;
    readonly fanout: number;
    readonly minSummaries: number;
    readonly excessTokens: number;
  },
): Chunk {
  const { depth, minSummaries } = need;
  const whole = cutCondensedChunk(field, run, policy, depth, minSummaries);
  if (whole.stored !== null) return whole;
  for (let count = need.fanout; count < run.length; count++) {
    const chunk = cutCondensedChunk(field, run.slice(0, count), policy, depth, minSummaries);
    const saved = chunk.tokens - condensedTarget(policy, chunk.tokens);
    if (countSummaries(field, chunk) >= need.fanout && saved >= need.excessTokens) return chunk;
  }
  return whole;
}

function chooseFanout(policy: CompactionPolicy, depth: number, phase: "routine" | "pressure"): number {
  if (phase === "pressure") return policy.condensedMinFanoutHard;
  return depth === 0 ? policy.leafMinFanout : policy.condensedMinFanout;
}

function makeLeafStep(field: Field, chunk: Chunk, policy: CompactionPolicy): FoldStep {
  return makeStep(field, chunk, {
    kind: "leaf",
    phase: "leaf",
    depth: 0,
    targetTokens: leafTarget(policy, chunk.tokens),
  });
}

function makeStep(
  field: Field,
  chunk: Chunk,
  goal: Pick<FoldStep, "kind" | "phase" | "depth" | "targetTokens">,
): FoldStep {
  const [startIndex, endIndex] = widenOverHidden(field, chunk, goal.kind);
  return {
    ...goal,
    startIndex,
    endIndex,
    startPosition: must(field.items[startIndex], "first item of a step").startPosition,
    endPosition: must(field.items[endIndex - 1], "last item of a step").endPosition,
    messages: chunk.messages,
    inputTokens: chunk.tokens,
    publishId: chunk.stored?.summaryId ?? null,
  };
}
