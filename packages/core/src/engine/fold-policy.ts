/** How a conversation is folded and shown for a budget and a model: thresholds, targets and tails from the settings, and the model's factor. */
import type { CompactionPolicy } from "../compact/policy.ts";
import { nameModel } from "../model/complete.ts";
import { resolveThreshold } from "../settings/context-threshold.ts";
import type { ModelIdentity } from "../model/message.ts";
import type { ConversationRow } from "../store/store.ts";
import type { EngineState } from "./state.ts";

/** What a turn says about the model it is for. */
export interface ModelSituation {
  readonly model?: ModelIdentity;
  /** The model's window as the host states it. */
  readonly contextWindow?: number;
}

/** A budget and the model it is for. */
export type Situation = { readonly budgetTokens: number } & ModelSituation;

/** Without `freshTailMaxTokens`, folds leave at most this share of the budget alone: else a small window folds at every turn. */
const TAIL_SHARE = 0.3;
/** A running turn longer than this share of the budget is folded while it runs, else a small window could never be folded. */
const TURN_SHARE = 0.4;
/** No summary aims at more than this share of the threshold, which is what all of them together may have: see `prefixTargetTokens`. */
const SUMMARY_SHARE = 0.5;

export function makePolicy(
  { settings }: EngineState,
  conversation: ConversationRow,
  request: Situation,
): CompactionPolicy {
  const threshold = resolveThreshold(settings, {
    model: nameModel(request.model),
    sessionKey: conversation.sessionKey,
    contextWindow: request.contextWindow,
  });
  const maxSummaryTokens = Math.floor(SUMMARY_SHARE * threshold.contextThreshold * request.budgetTokens);
  return {
    contextThreshold: threshold.contextThreshold,
    freshTailCount: threshold.freshTailCount,
    freshTailMaxTokens: settings.freshTailMaxTokens ?? Math.floor(TAIL_SHARE * request.budgetTokens),
    turnMaxTokens: Math.min(threshold.leafChunkTokens, Math.floor(TURN_SHARE * request.budgetTokens)),
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

/** The model's factor on stored counts, in steps of 5 %; the same while the front of the prompt is. */
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
  // In steps, so that a report that changes little changes nothing.
  const factor = Math.round((calibration?.factor ?? 1) * 20) / 20;
  folding.factors.set(key, { foldRevision, factor });
  return factor;
}
