/**
 * Folding when the host asks for it: because a person does, because a provider refused a prompt, because a prompt grew too large, or in a
 * moment that the host lends. The engine folds; here is decided how far, and what the host is told.
 */

import type { SessionRef } from "@lossless/core";
import type { CompactParams, CompactResult, MaintainParams, MaintainResult } from "./host.ts";
import { lowerCap, OVERFLOW_SHARE, readSituation } from "./room.ts";
import type { EngineLease } from "./shared-engine.ts";
import { describeError, type Troubles } from "./troubles.ts";

export interface FoldingParts {
  readonly lease: Pick<EngineLease, "open" | "notes" | "models">;
  readonly troubles: Troubles;
}

interface Fold {
  readonly compacted: boolean;
  readonly reason: string;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** Without a first call to learn from: the share of a window that is left for messages. */
const SHARE_OF_WINDOW = 0.6;
const DEFAULT_WINDOW_TOKENS = 128_000;
const NOTHING_STORED: Fold = {
  compacted: false,
  reason: "nothing is stored yet",
  tokensBefore: 0,
  tokensAfter: 0,
};

export async function compactSession(
  { lease, troubles }: FoldingParts,
  params: CompactParams,
  session: SessionRef,
): Promise<CompactResult> {
  const note = lease.notes.session(session.id);
  const trigger = params.runtimeContext?.trigger ?? "manual";
  const shrunk = trigger === "manual" ? false : lowerCap(note, params, trigger);
  const tokensBefore = params.currentTokenCount ?? note.sentTokens;
  try {
    const fold = await lease.models.lend(params.runtimeContext?.llm, () =>
      foldSession(lease, params, session, trigger),
    );
    const before = tokensBefore ?? fold.tokensBefore;
    const saved = Math.max(0, fold.tokensBefore - fold.tokensAfter);
    const tokensAfter = Math.max(0, Math.min(before - saved, note.capTokens ?? Infinity));
    const result = { tokensBefore: before, tokensAfter };
    return { ok: true, compacted: fold.compacted || shrunk, reason: fold.reason, result };
  } catch (error) {
    if (params.abortSignal?.aborted === true) throw error;
    troubles.begin("archive", error);
    // Without the archive the host's messages are sent, cut to what is left.
    return {
      ok: shrunk,
      compacted: shrunk,
      reason: describeError(error),
      result: { tokensBefore: tokensBefore ?? 0 },
    };
  }
}

async function foldSession(
  lease: FoldingParts["lease"],
  params: CompactParams,
  session: SessionRef,
  trigger: string,
): Promise<Fold> {
  const engine = await lease.open();
  const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
  const conversationId = known?.conversationId ?? null;
  if (conversationId === null) return NOTHING_STORED;
  const note = lease.notes.session(session.id);
  const base = note.baseTokens ?? Math.floor(SHARE_OF_WINDOW * (params.tokenBudget ?? DEFAULT_WINDOW_TOKENS));
  const goal =
    trigger === "manual"
      ? { force: true }
      : { targetTokens: note.capTokens ?? Math.floor(OVERFLOW_SHARE * base) };
  return await engine.compact({
    conversationId,
    owner: session.owner,
    ...readSituation(params, note),
    budgetTokens: base,
    ...goal,
    ...(params.customInstructions ? { customInstructions: params.customInstructions } : {}),
    ...(params.abortSignal ? { signal: params.abortSignal } : {}),
  });
}

export async function maintainSession(
  { lease, troubles }: FoldingParts,
  params: MaintainParams,
  session: SessionRef,
): Promise<MaintainResult> {
  const note = lease.notes.session(session.id);
  const { baseTokens } = note;
  if (baseTokens === undefined) return describeMaintenance("the room of the model is not known yet");
  try {
    const engine = await lease.open();
    const known = await engine.readSession({ sessionId: session.id, owner: session.owner });
    const conversationId = known?.conversationId ?? null;
    if (conversationId === null) return describeMaintenance("nothing is stored yet");
    const request = {
      conversationId,
      owner: session.owner,
      ...readSituation(params, note),
      budgetTokens: baseTokens,
      ...(params.abortSignal ? { signal: params.abortSignal } : {}),
    };
    const { changed } = await lease.models.lend(params.runtimeContext?.llm, () => engine.maintain(request));
    return describeMaintenance(
      changed ? "folded in the archive; the transcript is as it was" : "nothing to fold",
    );
  } catch (error) {
    if (params.abortSignal?.aborted === true) throw error;
    troubles.begin("folding", error);
    return describeMaintenance(describeError(error));
  }
}

/** The host speaks of its transcript, which this plugin never changes. */
export function describeMaintenance(reason: string): MaintainResult {
  return { changed: false, bytesFreed: 0, rewrittenEntries: 0, reason };
}
