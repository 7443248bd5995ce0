/**
 * Which threshold applies to a turn: the general settings, or the most specific rule of `contextThresholdOverrides` whose matchers all
 * match. A rule's tail and chunk size apply wherever the general ones would, so callers use what this returns and never read those three
 * settings directly. Pure.
 */
import { matchesSessionPattern } from "./session-patterns.ts";
import type { ThresholdMatch } from "./setting-types.ts";
import type { Settings } from "./settings.ts";

export interface ThresholdSituation {
  /** `provider/model`, or the model alone if the provider is unknown. */
  readonly model?: string | null | undefined;
  readonly sessionKey?: string | null | undefined;
  /** The model's window as the host states it. A token budget is not a substitute. */
  readonly contextWindow?: number | null | undefined;
}

export interface Threshold {
  readonly contextThreshold: number;
  readonly freshTailCount: number;
  readonly leafChunkTokens: number;
  /** Index of the rule that decided; null for the general settings. */
  readonly rule: number | null;
}

type ThresholdSettings = Pick<
  Settings,
  "contextThreshold" | "contextThresholdOverrides" | "freshTailCount" | "leafChunkTokens"
>;

export function resolveThreshold(settings: ThresholdSettings, situation: ThresholdSituation): Threshold {
  let best: number | null = null;
  let bestWeight = -1;
  for (const [index, rule] of settings.contextThresholdOverrides.entries()) {
    const weight = weigh(rule.match);
    if (weight > bestWeight && matches(rule.match, situation)) {
      best = index;
      bestWeight = weight;
    }
  }
  const rule = best === null ? undefined : settings.contextThresholdOverrides[best];
  return {
    contextThreshold: rule?.contextThreshold ?? settings.contextThreshold,
    freshTailCount: rule?.freshTailCount ?? settings.freshTailCount,
    leafChunkTokens: rule?.leafChunkTokens ?? settings.leafChunkTokens,
    rule: best,
  };
}

/** A named model is more specific than a session pattern, and that more than the bounds of a window. */
function weigh(match: ThresholdMatch): number {
  return (
    (match.model === undefined ? 0 : 100) +
    (match.sessionPattern === undefined ? 0 : 50) +
    (match.modelContextWindowMin === undefined ? 0 : 20) +
    (match.modelContextWindowMax === undefined ? 0 : 20)
  );
}

function matches(match: ThresholdMatch, { model, sessionKey, contextWindow }: ThresholdSituation): boolean {
  const { modelContextWindowMin: min, modelContextWindowMax: max } = match;
  if (match.model !== undefined && !(model && namesModel(match.model, model))) return false;
  if (
    match.sessionPattern !== undefined &&
    !(sessionKey && matchesSessionPattern(match.sessionPattern, sessionKey))
  ) {
    return false;
  }
  if (min === undefined && max === undefined) return true;
  return (
    typeof contextWindow === "number" && contextWindow >= (min ?? 0) && contextWindow <= (max ?? Infinity)
  );
}

/** A rule may omit the provider; it may not name another one. */
function namesModel(wanted: string, actual: string): boolean {
  return wanted === actual || wanted === actual.slice(actual.indexOf("/") + 1);
}
