/**
 * What this process remembers between the host's calls: how much room a session's model gave, what was sent, what does not work right
 * now. The host makes a new engine for every turn, so this outlives them; it is never the only place of anything that must not be lost.
 */

import { NO_FOLDING, type FoldEstimate } from "../assemble/fold-estimate.ts";
import type { ModelIdentity } from "@lossless/core";

export interface SessionMemory {
  /** Room for messages at the first call of the last turn: the base of the threshold. */
  baseTokens?: number;
  /** The room that the last context was chosen for. */
  heldTokens?: number;
  /** Tokens of the context that was handed out last. */
  sentTokens?: number;
  /** Something was left out of it for lack of room. */
  wasTight?: boolean;
  /** The model of the last turn. */
  model?: ModelIdentity;
  /** What was learned about each model's window, by the model's name. */
  learned?: Readonly<Record<string, Learned>>;
}

/** What a session's prompts taught about one model with one window. */
export interface Learned {
  readonly windowTokens?: number;
  /** The model's whole window, as the host stated it: overrides of the threshold may depend on it, and not every call repeats it. */
  readonly contextWindow?: number;
  /** What the host's own part of the prompt leaves for messages. */
  readonly roomTokens?: number;
  /** After an overflow: what was sent was too much, so no more than this. It rises again with every turn that fills it. */
  readonly capTokens?: number;
  /** The two smallest contexts that overflowed, smallest first. */
  readonly overflows: readonly number[];
}

/** How far the reading of earlier sessions is, and what folding them would cost. */
export interface EarlierSessions {
  readonly sessions: number;
  readonly read: number;
  readonly messages: number;
  readonly folding: FoldEstimate;
}

/** A part that does not work: since when, how often it failed, what was said last. */
export interface Outage {
  readonly part: string;
  readonly message: string;
  readonly since: number;
  readonly times: number;
  /** What to do about it, where that is not the usual. */
  readonly remedy?: string;
}

/** Sessions are many over months; only the recent ones matter. */
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
  /** What was read of earlier sessions since the start of the process. */
  earlier: EarlierSessions = { sessions: 0, read: 0, messages: 0, folding: NO_FOLDING };
  /** Sessions whose older history is being read. */
  readonly importing = new Set<string>();

  /** The memory of a session, to read and to write. */
  session(sessionId: string): SessionMemory {
    const sessionMemory = this.#sessions.get(sessionId) ?? {};
    putLast(this.#sessions, sessionId, sessionMemory);
    return sessionMemory;
  }

  /** ProcessMemory that a part failed. True when it worked before. */
  fail(part: string, error: unknown, remedy?: string): boolean {
    const before = this.#outages.get(part);
    const message = error instanceof Error ? error.message : String(error);
    const since = before?.since ?? Date.now();
    const times = (before?.times ?? 0) + 1;
    putLast(this.#outages, part, { part, message, since, times, remedy });
    return before === undefined;
  }

  /** ProcessMemory that a part works. True when it did not before. */
  recover(part: string): boolean {
    return this.#outages.delete(part);
  }

  get outages(): readonly Outage[] {
    return [...this.#outages.values()];
  }

  /** True the first time it is asked for a subject: some things are said once. */
  tellOnce(subject: string): boolean {
    if (this.#told.has(subject)) return false;
    this.#told.add(subject);
    return true;
  }
}
