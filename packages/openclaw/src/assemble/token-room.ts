/**
 * How much room a session's messages have, beyond what the host's budget says: what was learned from prompts that providers counted and from
 * prompts that were too large. Pure functions; only the last three write, and only to the session's memory.
 */

import { nameModel } from "@lossless/core";
import { estimateTokens } from "./context-view.ts";
import type { CommitTurnParams, RuntimeContext, SessionParams } from "../host/host.ts";
import type { Learned, SessionMemory } from "../host/process-memory.ts";
import type { TurnSituation } from "../capture/store-rows.ts";

/** After an overflow the next context is at most this share of the one that was too large. */
export const OVERFLOW_SHARE = 0.7;
/** What the host keeps of a window for the answer. */
const HOST_RESERVE_TOKENS = 20_000;
const HOST_RESERVE_SHARE = 0.25;
/** The host's own part of a prompt never takes more than the rest of this from the messages. */
const MIN_SHARE = 0.15;
/** A context below this is not what made a prompt overflow. */
const MIN_CAP_TOKENS = 500;
/** A turn that fills this share of the cap raises it by `RAISE_SHARE`. */
const FULL_SHARE = 0.9;
const RAISE_SHARE = 0.1;
/** The cap stays at most at this share of a size that overflowed twice: just below would overflow again. */
const SAFE_SHARE = 0.9;

export const NOTHING_LEARNED: Learned = { overflows: [] };

/** What is known holds for one window: with another one of the same model nothing is known. */
export function learnWindow(learned: Learned, windowTokens: number | undefined): Learned {
  if (windowTokens === undefined || windowTokens === learned.windowTokens) return learned;
  return learned.windowTokens === undefined
    ? { ...learned, windowTokens }
    : { ...NOTHING_LEARNED, windowTokens };
}

/** The host asks for compaction when a prompt has this many tokens. */
export function findHostLimit(windowTokens: number): number {
  return windowTokens - Math.min(HOST_RESERVE_TOKENS, Math.floor(windowTokens * HOST_RESERVE_SHARE));
}

/** What the host's own part of a prompt leaves for messages below the point where it asks for compaction. */
export function learnRoom(learned: Learned, prompt: { ownTokens: number; windowTokens: number }): Learned {
  const limit = findHostLimit(prompt.windowTokens);
  const roomTokens = Math.max(Math.floor(limit - prompt.ownTokens), Math.floor(MIN_SHARE * limit));
  return { ...learned, roomTokens };
}

/** A context of this size was too large: the next one is smaller. A tiny one was not the reason, and teaches nothing. */
export function learnOverflow(learned: Learned, sentTokens: number): Learned {
  const cap = Math.round(OVERFLOW_SHARE * sentTokens);
  if (cap < MIN_CAP_TOKENS) return learned;
  return {
    ...learned,
    capTokens: Math.min(cap, learned.capTokens ?? Infinity),
    overflows: [...learned.overflows, sentTokens].toSorted((a, b) => a - b).slice(0, 2),
  };
}

/** A turn went well: if it filled the cap, the next may have more, but never what overflowed twice. */
export function raiseCap(learned: Learned, usedTokens: number): Learned {
  const { capTokens, overflows } = learned;
  if (capTokens === undefined || usedTokens < FULL_SHARE * capTokens) return learned;
  // Whatever holds a smaller overflow overflows too: the second smallest size is the smallest that did so twice.
  const ceiling = SAFE_SHARE * (overflows[1] ?? Infinity);
  const raised = Math.round(Math.min((1 + RAISE_SHARE) * capTokens, ceiling));
  return { ...learned, capTokens: Math.max(capTokens, raised) };
}

/** At most this many tokens of messages, whatever the host's budget says. */
export function findCap({ capTokens = Infinity, roomTokens = Infinity }: Learned): number {
  return Math.min(capTokens, roomTokens);
}

/**
 * What the threshold is a share of. One overflow may have been the turn's own size; two are a limit, and folding begins when a context
 * reaches it: folded before, it could never fill the cap and raise it.
 */
export function findBase(learned: Learned, budgetTokens: number, contextThreshold: number): number {
  const { capTokens = Infinity, roomTokens = Infinity, overflows } = learned;
  const limit = overflows.length < 2 ? Infinity : Math.ceil(capTokens / contextThreshold);
  return Math.min(budgetTokens, roomTokens, limit);
}

/** What is known of the model a turn was for. Without a room there is no threshold to watch. */
export function readSituation(
  { runtimeContext }: SessionParams,
  sessionMemory: SessionMemory,
): TurnSituation {
  const model = runtimeContext?.modelId ?? runtimeContext?.model ?? sessionMemory.model?.model;
  const provider = runtimeContext?.provider ?? sessionMemory.model?.provider;
  return {
    budgetTokens: sessionMemory.baseTokens,
    model: model === undefined ? undefined : { model, provider },
    contextWindow: readWindow(runtimeContext) ?? readLearned(sessionMemory).contextWindow,
  };
}

function readWindow(runtimeContext: RuntimeContext | undefined): number | undefined {
  return runtimeContext?.modelContextWindow ?? runtimeContext?.tokenBudget;
}

export function readLearned(sessionMemory: SessionMemory): Learned {
  return sessionMemory.learned?.[nameLast(sessionMemory)] ?? NOTHING_LEARNED;
}

export function writeLearned(sessionMemory: SessionMemory, learned: Learned): void {
  sessionMemory.learned = { ...sessionMemory.learned, [nameLast(sessionMemory)]: learned };
}

/**
 * What a turn that was answered teaches. The host's budget for messages leaves out its tools' schemas, which may be as large as the rest.
 * What a provider counted for the last prompt of a turn, less what we sent and the turn itself, is the host's own part.
 */
export function learnFromTurn(
  sessionMemory: SessionMemory,
  { messages, runtimeContext }: CommitTurnParams,
): void {
  // The host's settings may use less of a model's window than there is.
  const windowTokens = runtimeContext?.tokenBudget ?? runtimeContext?.modelContextWindow;
  const usage = messages.at(-1)?.usage as
    | Partial<Record<"input" | "cacheRead" | "cacheWrite", number>>
    | undefined;
  const prompt = (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0);
  const { sentTokens } = sessionMemory;
  let learned = learnWindow(readLearned(sessionMemory), windowTokens);
  learned = { ...learned, contextWindow: readWindow(runtimeContext) ?? learned.contextWindow };
  if (windowTokens !== undefined && sentTokens !== undefined && prompt > 0) {
    const ownTokens = Math.max(0, prompt - sentTokens - estimateTokens(messages.slice(0, -1)));
    learned = learnRoom(learned, { ownTokens, windowTokens });
  }
  // Whole messages rarely fill a room to the brim: one that had to leave something out used all of it.
  const usedTokens = Math.max(
    sentTokens ?? 0,
    sessionMemory.wasTight === true ? (sessionMemory.heldTokens ?? 0) : 0,
  );
  const raised = raiseCap(learned, usedTokens);
  // The held room differs little from the raised one, and would be held on.
  if (raised.capTokens !== learned.capTokens) delete sessionMemory.heldTokens;
  writeLearned(sessionMemory, raised);
}

/** The name of the model of the last turn; empty where the host named none. */
const nameLast = ({ model }: SessionMemory): string => nameModel(model) ?? "";
