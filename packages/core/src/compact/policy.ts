/**
 * The numbers that decide when and how far to fold: the settings a planner needs, after overrides have been applied, and what is
 * derived from them. Pure arithmetic; the planner and the reserve planner read their targets here.
 */
import type { TailPolicy } from "../model/tail.ts";

/** The settings that decide what is folded, after overrides have been applied. */
export interface CompactionPolicy extends TailPolicy {
  readonly contextThreshold: number;
  /** Minimum messages of a leaf pass, and minimum leaves of a condensed summary. */
  readonly leafMinFanout: number;
  readonly condensedMinFanout: number;
  readonly condensedMinFanoutHard: number;
  /** Routine condensing stops at sources of this depth; −1 never stops, 0 never starts. */
  readonly sweepMaxDepth: number;
  readonly leafChunkTokens: number;
  readonly leafTargetTokens: number;
  readonly condensedTargetTokens: number;
  readonly summaryPrefixTargetTokens?: number | undefined;
  readonly maxSweepIterations: number;
}

/** Share of a leaf's sources that its summary aims at, between these bounds. */
const LEAF_SHARE = 0.35;
export const MIN_TARGET_TOKENS = 192;
const CONDENSED_SHARE = 0.6;

/** True at or above the threshold. The tolerance corrects binary fractions such as 0.55 × 100. */
export function shouldCompact(input: { tokens: number; base: number; threshold: number }): boolean {
  return input.tokens + 1e-6 >= input.threshold * input.base;
}

/** The size above which the summaries before the tail are condensed. */
export function prefixTargetTokens(policy: CompactionPolicy, budgetTokens: number): number {
  const half = Math.floor(policy.contextThreshold * budgetTokens * 0.5);
  return (
    policy.summaryPrefixTargetTokens ??
    Math.max(policy.condensedTargetTokens, Math.min(policy.leafChunkTokens, half))
  );
}

/**
 * New messages until the next fold get at least this share of the budget: otherwise a small window with a full tail folds at every turn.
 */
const GROWTH_SHARE = 0.2;

/**
 * The size above which a fold condenses the summaries. In a small window that is less than the target if the target and a full tail would
 * leave too little room up to the threshold. An explicit target is used as it is.
 */
export function prefixLimitTokens(policy: CompactionPolicy, budgetTokens: number): number {
  const target = prefixTargetTokens(policy, budgetTokens);
  if (policy.summaryPrefixTargetTokens !== undefined) return target;
  const besideTail = policy.contextThreshold * budgetTokens - (policy.freshTailMaxTokens ?? 0);
  const room = Math.floor(besideTail - GROWTH_SHARE * budgetTokens);
  return Math.min(target, Math.max(policy.condensedTargetTokens, room));
}

export const minCondensedTokens = (policy: CompactionPolicy): number =>
  Math.max(policy.condensedTargetTokens, Math.floor(policy.leafChunkTokens * 0.1));

export const condensedTarget = (
  policy: Pick<CompactionPolicy, "condensedTargetTokens">,
  inputTokens: number,
): number =>
  Math.min(
    policy.condensedTargetTokens,
    Math.max(MIN_TARGET_TOKENS, Math.floor(inputTokens * CONDENSED_SHARE)),
  );

export const leafTarget = (policy: CompactionPolicy, inputTokens: number): number =>
  Math.min(
    policy.leafTargetTokens,
    Math.max(Math.min(MIN_TARGET_TOKENS, inputTokens - 1), Math.floor(inputTokens * LEAF_SHARE)),
  );
