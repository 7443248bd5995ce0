/**
 * How a conversation is folded and shown for a budget and a model: thresholds, targets and tails from the settings, and the model's
 * calibration factor.
 */
import type { CompactionPolicy } from "../compact/policy.ts";
import { nameModel } from "../model/complete.ts";
import { resolveThreshold } from "../settings/context-threshold.ts";
import type { ModelIdentity } from "../model/message.ts";
import type { ConversationRow } from "../store/store.ts";
import type { EngineState } from "./state.ts";

/** The model that a turn is for. */
export interface ModelSituation {
  readonly model?: ModelIdentity;
  /** The model's window as the host states it. */
  readonly contextWindow?: number;
}

/** A budget and the model it is for. */
export type Situation = { readonly budgetTokens: number } & ModelSituation;

/** Without `freshTailMaxTokens`, folds spare at most this share of the budget: otherwise a small window would fold at every turn. */
const TAIL_SHARE = 0.3;
/** A running turn longer than this share of the budget is folded while it runs; otherwise a small window could never be folded. */
const TURN_SHARE = 0.4;
/** No summary aims at more than this share of the threshold, which limits all summaries together: see `prefixTargetTokens`. */
const SUMMARY_SHARE = 0.5;

export function makePolicy(
  { settings }: EngineState,
  conversation: ConversationRow,
  request: Situation & { readonly targetTokens?: number },
): CompactionPolicy {
  const threshold = resolveThreshold(settings, {
    model: nameModel(request.model),
    sessionKey: conversation.sessionKey,
    contextWindow: request.contextWindow,
  });
  const maxSummaryTokens = Math.floor(SUMMARY_SHARE * threshold.contextThreshold * request.budgetTokens);
  // A fold to a target leaves a tail that fits in the target.
  const wantedTokens = Math.min(request.budgetTokens, request.targetTokens ?? request.budgetTokens);
  return {
    contextThreshold: threshold.contextThreshold,
    freshTailCount: threshold.freshTailCount,
    freshTailMaxTokens: settings.freshTailMaxTokens ?? Math.floor(TAIL_SHARE * wantedTokens),
    turnMaxTokens: Math.min(threshold.leafChunkTokens, Math.floor(TURN_SHARE * wantedTokens)),
    leafMinFanout: settings.leafMinFanout,
    condensedMinFanout: settings.condensedMinFanout,
    condensedMinFanoutHard: settings.condensedMinFanoutHard,
    sweepMaxDepth: settings.sweepMaxDepth,
    leafChunkTokens: threshold.leafChunkTokens,
    leafTargetTokens: Math.min(settings.leafTargetTokens, maxSummaryTokens),
    condensedTargetTokens: Math.min(settings.condensedTargetTokens, maxSummaryTokens),
    summaryPrefixTargetTokens: settings.summaryPrefixTargetTokens ?? undefined,
    maxSweepIterations: settings.maxSweepIterations,
  };
}

/** The model's factor for stored counts, in steps of 5 %. It changes only when the front of the prompt does. */
export async function readFactor(
  { store, folding }: EngineState,
  conversationId: number,
  foldRevision: number,
  model: ModelIdentity | undefined,
): Promise<number> {
  const name = nameModel(model);
  if (name === null) return 1;
  const key = `${conversationId}:${name}`;
  const known = folding.factors.get(key);
  if (known?.foldRevision === foldRevision) return known.factor;
  const calibration = await store.readCalibration(name);
  // Rounded, so that a small change in a report changes nothing.
  const factor = Math.round((calibration?.factor ?? 1) * 20) / 20;
  folding.factors.set(key, { foldRevision, factor });
  return factor;
}
