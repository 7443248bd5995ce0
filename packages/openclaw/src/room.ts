/**
 * How much room a session's messages have, beyond what the host's budget says: what was learned from prompts that providers counted and from
 * prompts that were too large. Pure functions on the session's note.
 */

import type { ModelIdentity } from "@lossless/core/model/message.ts";
import { estimateTokens } from "./context-view.ts";
import type { CommitTurnParams, CompactParams, SessionParams } from "./host.ts";
import type { SessionNote } from "./notes.ts";
import type { TurnSituation } from "./store-rows.ts";

/** After an overflow the next context is at most this share of the one that was too large. */
export const OVERFLOW_SHARE = 0.7;
/** What the host keeps of a window for the answer. */
const HOST_RESERVE_TOKENS = 20_000;
const HOST_RESERVE_SHARE = 0.25;
/** The host asks for compaction when a prompt takes more than about three quarters of the window. */
const WINDOW_SHARE = 0.7;
/** The host's own part of a prompt never takes more than the rest of this from the messages. */
const MIN_SHARE = 0.3;
/** A context below this is not what made a prompt overflow. */
const MIN_CAP_TOKENS = 500;

/** At most this many tokens of messages, whatever the host's budget says. */
export function findCap(note: SessionNote): number {
  return Math.min(note.capTokens ?? Infinity, note.roomTokens ?? Infinity);
}

/** What was learned about one model's window says nothing about another's. */
export function rememberModel(note: SessionNote, model: ModelIdentity | undefined): void {
  if (model === undefined) return;
  if (note.model !== undefined && note.model.model !== model.model) {
    delete note.capTokens;
    delete note.roomTokens;
  }
  note.model = model;
}

/**
 * The host's budget for messages leaves out its tools' schemas, which may be as large as the rest. What a provider counted for the last
 * prompt of a turn, less what we sent and the turn itself, is that part; what it leaves below the point where the host asks for compaction
 * is the room there really is.
 */
export function learnRoom({ messages, runtimeContext }: CommitTurnParams, note: SessionNote): void {
  const window = runtimeContext?.modelContextWindow ?? runtimeContext?.tokenBudget;
  const usage = messages.at(-1)?.usage as
    | Partial<Record<"input" | "cacheRead" | "cacheWrite", number>>
    | undefined;
  const prompt = (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0);
  if (window === undefined || note.sentTokens === undefined || prompt <= 0) return;
  const unseen = Math.max(0, prompt - note.sentTokens - estimateTokens(messages.slice(0, -1)));
  const limit = window - Math.min(HOST_RESERVE_TOKENS, window * HOST_RESERVE_SHARE);
  note.roomTokens = Math.max(Math.floor(limit - unseen), Math.floor(MIN_SHARE * limit));
}

/** What is known of the model a turn was for. Without a room there is no threshold to watch. */
export function readSituation(
  { runtimeContext }: SessionParams,
  note: { baseTokens?: number; model?: ModelIdentity },
): TurnSituation {
  const model = runtimeContext?.modelId ?? runtimeContext?.model ?? note.model?.model;
  const provider = runtimeContext?.provider ?? note.model?.provider;
  const contextWindow = runtimeContext?.modelContextWindow ?? runtimeContext?.tokenBudget;
  return {
    ...(note.baseTokens === undefined ? {} : { budgetTokens: note.baseTokens }),
    ...(model === undefined ? {} : { model: { model, ...(provider === undefined ? {} : { provider }) } }),
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
}

/**
 * The next context must be smaller than the one that was too large. After an overflow that is a share of it; where the host counted the
 * whole prompt, it is what its own part leaves of the window. False when there is nothing to take away.
 */
export function lowerCap(note: SessionNote, params: CompactParams, trigger: string): boolean {
  const sent = note.sentTokens ?? 0;
  const { currentTokenCount: whole, tokenBudget: window } = params;
  const cap =
    trigger === "budget" && whole !== undefined && window !== undefined
      ? Math.max(
          Math.floor(WINDOW_SHARE * window - (whole - sent)),
          Math.floor(MIN_SHARE * (note.baseTokens ?? sent)),
        )
      : Math.floor(OVERFLOW_SHARE * sent);
  if (cap < MIN_CAP_TOKENS || cap >= (note.capTokens ?? Infinity)) return false;
  note.capTokens = cap;
  return cap < sent;
}
