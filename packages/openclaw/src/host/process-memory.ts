/**
 * The memory of this process between the host's calls: the room that a session's model left, what was sent, current failures. The host creates a
 * new engine for every turn, so this outlives them; nothing that must not be lost is only here.
 */

import { NO_FOLDING, type FoldEstimate } from "../assemble/fold-estimate.ts";
import type { ModelIdentity } from "@lossless/core";

export interface SessionMemory {
  /** Room for messages at the first call of the last turn: the base of the threshold. */
  baseTokens?: number;
  /** The room that the last context was chosen for. */
  heldTokens?: number;
  /** Tokens of the context that was returned last. */
  sentTokens?: number;
  /** Something was left out of it for lack of room. */
  wasTight?: boolean;
  /** The model of the last turn. */
  model?: ModelIdentity;
  /** What was learned about each model's window, keyed by the model's name. */
  learned?: Readonly<Record<string, Learned>>;
}

/** What a session's prompts showed about one model with one window. */
export interface Learned {
  readonly windowTokens?: number;
  /** The model's whole window, as the host stated it: overrides of the threshold may depend on it, and not every call repeats it. */
  readonly contextWindow?: number;
  /** The room that the host's own part of the prompt leaves for messages. */
  readonly roomTokens?: number;
  /** After an overflow: the last context was too large, so this is the maximum. Every turn that fills it raises it. */
  readonly capTokens?: number;
  /** The two smallest contexts that overflowed, smallest first. */
  readonly overflows: readonly number[];
}

/** Progress of reading earlier sessions, and the cost of folding them. */
export interface EarlierSessions {
  readonly sessions: number;
  readonly read: number;
  readonly messages: number;
  readonly folding: FoldEstimate;
}

/** A failing part: since when, how often it failed, the last error. */
export interface Outage {
  readonly part: string;
  readonly message: string;
  readonly since: number;
  readonly times: number;
  /** What to do about it, if that is not the usual advice. */
  readonly remedy?: string;
}

/** Sessions accumulate over months; only the recent ones matter. */
const MAX_SESSIONS = 500;

/** Sets a value as the newest, and forgets the oldest where there are too many. */
function putLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next().value;
  if (map.size > MAX_SESSIONS && oldest !== undefined) map.delete(oldest);
}

export class ProcessMemory {
  #sessions = new Map<string, SessionMemory>();
  #outages = new Map<string, Outage>();
  #told = new Set<string>();
  /** Earlier sessions read since the start of the process. */
  earlier: EarlierSessions = { sessions: 0, read: 0, messages: 0, folding: NO_FOLDING };
  /** Sessions whose older history is being read. */
  readonly importing = new Set<string>();

  /** The memory of a session, to read and to write. */
  session(sessionId: string): SessionMemory {
    const sessionMemory = this.#sessions.get(sessionId) ?? {};
    putLast(this.#sessions, sessionId, sessionMemory);
    return sessionMemory;
  }

  /** Records that a part failed. True when it worked before. */
  fail(part: string, error: unknown, remedy?: string): boolean {
    const before = this.#outages.get(part);
    const message = error instanceof Error ? error.message : String(error);
    const since = before?.since ?? Date.now();
    const times = (before?.times ?? 0) + 1;
    putLast(this.#outages, part, { part, message, since, times, remedy });
    return before === undefined;
  }

  /** Records that a part works. True when it failed before. */
  recover(part: string): boolean {
    return this.#outages.delete(part);
  }

  get outages(): readonly Outage[] {
    return [...this.#outages.values()];
  }

  /** True on the first call for a subject: some things are said once. */
  tellOnce(subject: string): boolean {
    if (this.#told.has(subject)) return false;
    this.#told.add(subject);
    return true;
  }
}
