/**
 * Folding on request of the host: because a person asked, a provider refused a prompt, a prompt grew too large, or the host offers idle time.
 * The engine folds; this file decides how far, and what the host is told.
 */

import type { Engine, SessionRef } from "@lossless/core";
import {
  describeOutcome,
  explainRefusal,
  readTrigger,
  type HostFoldResult,
  type Trigger,
} from "./compact-answer.ts";
import type { CompactParams, CompactResult, MaintainParams, MaintainResult } from "../host/host.ts";
import type { SessionMemory } from "../host/process-memory.ts";
import {
  findCap,
  findHostLimit,
  learnOverflow,
  learnRoom,
  learnWindow,
  OVERFLOW_SHARE,
  readLearned,
  readSituation,
  writeLearned,
} from "./token-room.ts";
import type { EngineLease } from "../host/shared-engine.ts";
import { describeError, type Outages } from "../host/outages.ts";

export interface FoldingParts {
  readonly lease: Pick<EngineLease, "open" | "memory" | "models">;
  readonly outages: Outages;
}

interface Fold {
  readonly outcome: HostFoldResult;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** Used until a first call shows it: the share of a window that is left for messages. */
const SHARE_OF_WINDOW = 0.6;
const DEFAULT_WINDOW_TOKENS = 128_000;
/** The rest of the room is for the user's next message. */
const PROMPT_SHARE = 0.9;
/** The host waits three minutes for a compaction, then refuses the turn. */
const PATIENCE_MS = 150_000;
/** A fold may have to wait for another one, which does not end with this one's timeout: the host gets its answer anyway. */
const ANSWER_WITHIN_MS = 165_000;
const REFUSED_REMEDY =
  "What was said is kept. Say it again, shorter, or choose a model with a larger window; with tool search on, the host's tools take less of it.";

export async function compactSession(
  { lease, outages }: FoldingParts,
  params: CompactParams,
  session: SessionRef,
): Promise<CompactResult> {
  const sessionMemory = lease.memory.session(session.id);
  const trigger = readTrigger(params.runtimeContext?.trigger);
  // Before a turn the host's budget may be the window minus its reserve for the answer.
  let learned = learnWindow(
    readLearned(sessionMemory),
    trigger === "budget" ? undefined : params.tokenBudget,
  );
  if (trigger === "overflow") learned = learnOverflow(learned, sessionMemory.sentTokens ?? 0);
  writeLearned(sessionMemory, learned);
  const fold = await tryToFold({ lease, outages }, params, session, trigger);
  // Without the archive the host's messages are sent, cut to the remaining room.
  const taken = Math.max(0, (sessionMemory.sentTokens ?? 0) - findCap(readLearned(sessionMemory)));
  const { kind } = fold.outcome;
  const isShrunk = trigger !== "manual" && taken > 0 && kind !== "folded" && kind !== "cancelled";
  const outcome: HostFoldResult = isShrunk ? { kind: "shrunk" } : fold.outcome;
  const refusal = explainRefusal(outcome, trigger);
  if (refusal !== null)
    outages.begin(nameTurns(session), new Error(`the host refused a turn: ${refusal}`), REFUSED_REMEDY);
  // A person is told the size in the archive; the host compares with the prompt it counted.
  const counted = trigger === "manual" ? undefined : (params.currentTokenCount ?? sessionMemory.sentTokens);
  const tokensBefore = counted ?? fold.tokensBefore;
  const saved = Math.max(0, fold.tokensBefore - fold.tokensAfter, isShrunk ? taken : 0);
  return {
    ...describeOutcome(outcome, trigger),
    result: { tokensBefore, tokensAfter: Math.max(0, tokensBefore - saved) },
  };
}

/** Records that a turn of the session was answered. */
export function noteAnswered(outages: Outages, session: SessionRef): void {
  outages.end(nameTurns(session));
}

function nameTurns({ key }: SessionRef): string {
  return `turns of ${key}`;
}

async function tryToFold(
  { lease, outages }: FoldingParts,
  params: CompactParams,
  session: SessionRef,
  trigger: Trigger,
): Promise<Fold> {
  const none = { tokensBefore: 0, tokensAfter: 0 };
  const late = Promise.withResolvers<Fold>();
  const timer = setTimeout(() => {
    outages.begin("archive", new Error(`a compaction did not end within ${ANSWER_WITHIN_MS / 1000} s`));
    late.resolve({ ...none, outcome: { kind: "no-more" } });
  }, ANSWER_WITHIN_MS);
  try {
    const folding = lease.models.lend(params, () => foldSession(lease, params, session, trigger));
    const fold = await Promise.race([folding, late.promise]);
    if (params.abortSignal?.aborted !== true) return fold;
    return { ...fold, outcome: { kind: "cancelled" } };
  } catch (error) {
    if (params.abortSignal?.aborted === true) return { ...none, outcome: { kind: "cancelled" } };
    outages.begin("archive", error);
    return { ...none, outcome: { kind: "failed", message: describeError(error) } };
  } finally {
    clearTimeout(timer);
  }
}

async function foldSession(
  lease: FoldingParts["lease"],
  params: CompactParams,
  session: SessionRef,
  trigger: Trigger,
): Promise<Fold> {
  const engine = await lease.open();
  const { owner } = session;
  const known = await engine.readSession({ sessionId: session.id, owner });
  const conversationId = known?.conversationId ?? null;
  if (conversationId === null)
    return { outcome: { kind: "nothing-stored" }, tokensBefore: 0, tokensAfter: 0 };
  const sessionMemory = lease.memory.session(session.id);
  const shownTokens = await countShown(engine, conversationId, owner);
  if (trigger === "budget") learnFromCount(sessionMemory, params, shownTokens);
  const base =
    sessionMemory.baseTokens ??
    known?.baseTokens ??
    Math.floor(SHARE_OF_WINDOW * (params.tokenBudget ?? DEFAULT_WINDOW_TOKENS));
  const room = Math.min(base, findCap(readLearned(sessionMemory)));
  if (trigger === "budget" && shownTokens <= PROMPT_SHARE * room)
    return { outcome: { kind: "under-target" }, tokensBefore: shownTokens, tokensAfter: shownTokens };
  // Just under the limit, the host would ask again at the next turn.
  const targetTokens = trigger === "overflow" ? room : Math.floor(OVERFLOW_SHARE * room);
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const fold = await engine.compact({
    conversationId,
    owner,
    ...readSituation(params, sessionMemory),
    ...(trigger === "manual" ? { budgetTokens: base, force: true } : { budgetTokens: room, targetTokens }),
    customInstructions: params.customInstructions,
    signal: params.abortSignal ? AbortSignal.any([params.abortSignal, patience]) : patience,
  });
  const { compacted, targetReached, tokensBefore, tokensAfter } = fold;
  const outcome: HostFoldResult = compacted
    ? { kind: "folded", targetReached }
    : { kind: targetReached ? "under-target" : "no-more" };
  return { outcome, tokensBefore, tokensAfter };
}

async function countShown(engine: Engine, conversationId: number, owner: string): Promise<number> {
  return (await engine.readConversation({ conversationId, owner }))?.shownTokens ?? 0;
}

/** The host counted a whole prompt. If no provider has done so before, this shows how much of it is not ours. */
function learnFromCount(sessionMemory: SessionMemory, params: CompactParams, shownTokens: number): void {
  const learned = readLearned(sessionMemory);
  const { currentTokenCount: whole } = params;
  const windowTokens = learned.windowTokens ?? params.tokenBudget;
  if (learned.roomTokens !== undefined || whole === undefined || windowTokens === undefined) return;
  if (whole < findHostLimit(windowTokens)) return;
  const ownTokens = Math.max(0, whole - (sessionMemory.sentTokens ?? shownTokens));
  writeLearned(sessionMemory, learnRoom(learned, { ownTokens, windowTokens }));
}

export async function maintainSession(
  { lease, outages }: FoldingParts,
  params: MaintainParams,
  session: SessionRef,
): Promise<MaintainResult> {
  const sessionMemory = lease.memory.session(session.id);
  const { baseTokens } = sessionMemory;
  if (baseTokens === undefined) return describeMaintenance("the room of the model is not known yet");
  try {
    const engine = await lease.open();
    const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
    const conversationId = known?.conversationId ?? null;
    if (conversationId === null) return describeMaintenance("nothing is stored yet");
    const request = {
      conversationId,
      owner: session.owner,
      ...readSituation(params, sessionMemory),
      budgetTokens: baseTokens,
      signal: params.abortSignal,
    };
    const { changed } = await lease.models.lend(params, () => engine.maintain(request));
    return describeMaintenance(
      changed ? "folded in the archive; the transcript is as it was" : "nothing to fold",
    );
  } catch (error) {
    if (params.abortSignal?.aborted === true) throw error;
    outages.begin("folding", error);
    return describeMaintenance(describeError(error));
  }
}

/** The host asks about its transcript, which this plugin never changes. */
export function describeMaintenance(reason: string): MaintainResult {
  return { changed: false, bytesFreed: 0, rewrittenEntries: 0, reason };
}
