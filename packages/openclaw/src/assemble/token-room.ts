/**
 * The room for a session's messages, refined beyond the host's budget: learned from prompts that providers counted and from prompts that were
 * too large. Pure functions; only the last three write, and only to the session's memory.
 */

import { nameModel } from "@lossless/core";
import { estimateTokens } from "./context-view.ts";
import type { CommitTurnParams, RuntimeContext, SessionParams } from "../host/host.ts";
import type { Learned, SessionMemory } from "../host/process-memory.ts";
import type { TurnSituation } from "../capture/store-rows.ts";

/** After an overflow the next context is at most this share of the one that was too large. */
export const OVERFLOW_SHARE = 0.7;
/** The part of a window that the host reserves for the answer. */
const HOST_RESERVE_TOKENS = 20_000;
const HOST_RESERVE_SHARE = 0.25;
/** The host's own part of a prompt always leaves at least this share to the messages. */
const MIN_SHARE = 0.15;
/** A smaller context is not the reason that a prompt overflowed. */
const MIN_CAP_TOKENS = 500;
/** A turn that fills this share of the cap raises it by `RAISE_SHARE`. */
const FULL_SHARE = 0.9;
const RAISE_SHARE = 0.1;
/** The cap is at most this share of a size that overflowed twice: just below would overflow again. */
const SAFE_SHARE = 0.9;

export const NOTHING_LEARNED: Learned = { overflows: [] };

/** What was learned holds for one window; it is discarded when the window of the model changes. */
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

/** The room that the host's own part of a prompt leaves for messages before the host asks for compaction. */
export function learnRoom(learned: Learned, prompt: { ownTokens: number; windowTokens: number }): Learned {
  const limit = findHostLimit(prompt.windowTokens);
  const roomTokens = Math.max(Math.floor(limit - prompt.ownTokens), Math.floor(MIN_SHARE * limit));
  return { ...learned, roomTokens };
}

/** A context of this size was too large: the next one is smaller. A tiny one was not the reason, so nothing is learned from it. */
export function learnOverflow(learned: Learned, sentTokens: number): Learned {
  const cap = Math.round(OVERFLOW_SHARE * sentTokens);
  if (cap < MIN_CAP_TOKENS) return learned;
  return {
    ...learned,
    capTokens: Math.min(cap, learned.capTokens ?? Infinity),
    overflows: [...learned.overflows, sentTokens].toSorted((a, b) => a - b).slice(0, 2),
  };
}

/** After a successful turn: if it filled the cap, raises it, but never to a size that overflowed twice. */
export function raiseCap(learned: Learned, usedTokens: number): Learned {
  const { capTokens, overflows } = learned;
  if (capTokens === undefined || usedTokens < FULL_SHARE * capTokens) return learned;
  // A context larger than one that overflowed also overflows: the second smallest size is the smallest that did so twice.
  const ceiling = SAFE_SHARE * (overflows[1] ?? Infinity);
  const raised = Math.round(Math.min((1 + RAISE_SHARE) * capTokens, ceiling));
  return { ...learned, capTokens: Math.max(capTokens, raised) };
}

/** The maximum number of message tokens, whatever the host's budget. */
export function findCap({ capTokens = Infinity, roomTokens = Infinity }: Learned): number {
  return Math.min(capTokens, roomTokens);
}

/**
 * The base of the threshold. One overflow may have been the turn's own size; two are a limit, and folding begins when a context reaches it:
 * folded before, it could never fill the cap and raise it.
 */
export function findBase(learned: Learned, budgetTokens: number, contextThreshold: number): number {
  const { capTokens = Infinity, roomTokens = Infinity, overflows } = learned;
  const limit = overflows.length < 2 ? Infinity : Math.ceil(capTokens / contextThreshold);
  return Math.min(budgetTokens, roomTokens, limit);
}

/** What is known about the model of a turn. Without a room there is no threshold to watch. */
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
 * Learns from an answered turn. The host's budget for messages excludes the schemas of its tools, which may be as large as the rest. The
 * provider's count for the last prompt of a turn, minus what we sent and the turn itself, is the host's own part.
 */
export function learnFromTurn(
  sessionMemory: SessionMemory,
  { messages, runtimeContext }: CommitTurnParams,
): void {
  // The host may be configured to use less than the model's window.
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
  // Whole messages rarely fill a room exactly: a context that had to leave something out used all of it.
  const usedTokens = Math.max(
    sentTokens ?? 0,
    sessionMemory.wasTight === true ? (sessionMemory.heldTokens ?? 0) : 0,
  );
  const raised = raiseCap(learned, usedTokens);
  // The held room differs little from the raised one, and would be kept.
  if (raised.capTokens !== learned.capTokens) delete sessionMemory.heldTokens;
  writeLearned(sessionMemory, raised);
}

/** The name of the model of the last turn; empty if the host named none. */
const nameLast = ({ model }: SessionMemory): string => nameModel(model) ?? "";
