/**
 * The part of the store port for forks: a session that a host began as a copy of another one. The copied events become aliases of the
 * stored messages, so nothing is stored twice; what the fork shows of its parent is chosen once and stored as references.
 *
 * Invariant: the chain of a fork starts from the parent's chain value at the point where it left, and its first record binds the references
 * and the aliases.
 */
import type { SessionRef } from "../model/message.ts";

/** Where a fork left its parent: the last message they share. */
export interface ForkPoint {
  readonly conversationId: number;
  readonly seq: number;
  readonly position: number;
  /** How many of the events, from the first, are in the parent. */
  readonly copied: number;
}

/** What a fork shows of its parent. */
export interface ForkItem {
  readonly kind: "message" | "stub" | "summary" | "range";
  readonly messageId: number | null;
  readonly summaryId: string | null;
  /** Of a range: the messages at which it begins and ends. */
  readonly firstId: number | null;
  readonly lastId: number | null;
  readonly startPosition: number;
  readonly endPosition: number;
  readonly tokens: number;
  readonly messages: number;
  readonly depth: number;
  readonly earliestAt: number | null;
  readonly latestAt: number | null;
}

export interface ForkRequest {
  /** The fork's session, which must be new to the archive. */
  readonly session: SessionRef;
  readonly parentSessionId: string;
  /** The copied events, in order. */
  readonly eventIds: readonly string[];
  readonly point: ForkPoint;
  readonly items: readonly ForkItem[];
  readonly now: number;
}

export interface ForkResult {
  readonly kind: "forked" | "known";
  readonly conversationId: number;
}

export interface ForkStore {
  /** The point where a list of events leaves a session that has the first of them; null if it has none. */
  findForkPoint(request: {
    owner: string;
    parentSessionId: string;
    eventIds: readonly string[];
  }): Promise<ForkPoint | null>;
  fork(request: ForkRequest): Promise<ForkResult>;
  /** What a conversation shows of its parent, without what was forgotten since. Empty if it is not a fork. */
  readForkItems(conversationId: number): Promise<ForkItem[]>;
}
