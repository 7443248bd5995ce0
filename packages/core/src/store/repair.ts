/**
 * The part of the store port that care needs: copies of the whole, lists of what deserves a look, and the few ways in which something
 * stored may change afterwards: a summary gives way to a better one, a summary gives way to its sources, a message is forgotten.
 *
 * Invariant: each of these is one transaction that leaves a whole cover, a right graph, right counters and a chain that continues.
 */
import type { ImportMark } from "../model/message.ts";
import type { Debt, PublishResult, RunItem, SummaryReplacement } from "./folding.ts";
import type { Derive } from "./rows.ts";

/** A summary that a person should know about. */
export interface DoubtfulSummary {
  readonly summaryId: string;
  readonly conversationId: number;
  readonly depth: number;
  readonly tokens: number;
  readonly sourceTokens: number;
  readonly level: string;
  readonly model: string;
  readonly isStale: boolean;
  readonly content: string;
}

export interface DissolveResult {
  readonly summaryId: string;
  readonly conversationId: number;
  /** What stands in its place, oldest first. */
  readonly sources: readonly { readonly id: string; readonly tokens: number; readonly isShown: boolean }[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Its number among the items of the context, and how many items follow it: those move back. */
  readonly ordinal: number;
  readonly itemsBehind: number;
}

export interface TransplantRequest {
  readonly from: number;
  readonly to: number;
  readonly dryRun: boolean;
  readonly now: number;
}

export interface TransplantResult {
  readonly from: number;
  readonly to: number;
  readonly messages: number;
  readonly summaries: number;
  /** The copies of the summaries; empty when nothing was done. */
  readonly summaryIds: readonly string[];
}

/** Everything that forgetting some messages touches. */
export interface ForgetPlan {
  /** All versions of all events, those forgotten before left out. */
  readonly messageIds: readonly number[];
  readonly conversationIds: readonly number[];
  readonly arrivalBytes: number;
  /** Large files no other message uses. */
  readonly files: readonly {
    readonly fileId: string;
    readonly blob: string;
    readonly byteSize: number;
  }[];
  /** Summaries that rest on them, the finest first. Published ones need a new text, the others are only erased. */
  readonly summaries: readonly {
    readonly summaryId: string;
    readonly conversationId: number;
    readonly depth: number;
    readonly isPublished: boolean;
    readonly tokens: number;
  }[];
}

export interface ForgetRequest {
  readonly messageIds: readonly number[];
  /** Summaries to be remade although they do not rest on the messages: their text was found to tell of them. */
  readonly alsoSummaryIds: readonly string[];
  readonly replacements: readonly SummaryReplacement[];
  /** Why, for the record in the chain. */
  readonly reason: string;
  readonly now: number;
}

export type ForgetResult =
  | {
      readonly kind: "forgotten";
      readonly plan: ForgetPlan;
      /** Files beside the archive that killed imports left, with texts that never became a part of it. They were removed, too. */
      readonly intakeFiles?: readonly string[] | undefined;
    }
  | { readonly kind: "stale" };

/** What one import brought into one conversation. */
export interface ImportedPart extends ImportMark {
  readonly conversationId: number;
  /** Rows of messages it stored there, revisions included. */
  readonly messages: number;
}

/** A conversation, and what else in the archive depends on it. */
export interface ConversationTies {
  readonly conversationId: number;
  readonly owner: string;
  readonly sessionKey: string;
  /** Rows of messages, revisions included. */
  readonly messages: number;
  readonly summaries: number;
  readonly headSeq: number;
  readonly forgotten: number;
  /** Conversations that show messages of this one. */
  readonly forks: readonly number[];
  /** Conversations that a session of this one has messages in, too. */
  readonly sharesSessionWith: readonly number[];
}

export interface RemovedCounts {
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  readonly files: number;
}

export interface RepairStore {
  /** Writes a consistent copy of the database to a path that does not exist yet, while others go on writing. */
  backup(path: string, onProgress: (done: number, total: number) => void): Promise<void>;
  listDebts(): Promise<Debt[]>;
  /** Drops the debt of a conversation that has ended; false when it has not, or owes nothing. */
  closeDebt(conversationId: number): Promise<boolean>;
  /**
   * Removes these summaries of a conversation, all of them for null, with those above them, and shows what they stood for; null when something
   * else uses one of them.
   */
  dropSummaries(conversationId: number, summaryIds: readonly string[] | null): Promise<number | null>;
  /** What imports brought in, the newest first. */
  listImports(): Promise<ImportedPart[]>;
  /** In the order of their ids; those that do not exist are left out. */
  readTies(conversationIds: readonly number[]): Promise<ConversationTies[]>;
  /** Removes conversations with everything in them; their ids are not used again, their events can be stored again. Null: they are not as expected. */
  removeConversations(expected: readonly ConversationTies[]): Promise<RemovedCounts | null>;
  /** Published summaries, in the order of their ids. */
  listPublished(request: {
    after: string;
    limit: number;
    conversationId?: number;
  }): Promise<DoubtfulSummary[]>;
  /** Paths of all large files the archive names, below the files folder. */
  listBlobs(): Promise<string[]>;
  /** Those of the given events whose bytes cannot be read back from the archive exactly as given. */
  findUnproven(
    owner: string | null,
    sessionId: string,
    events: readonly { eventId: string; bytes: Uint8Array }[],
  ): Promise<string[]>;
  readVersions(): Promise<{ schemaVersion: number; storedSchemaVersion: number }>;
  /** What a summary is made from, oldest first, as a summariser reads it. */
  readSources(summaryId: string): Promise<RunItem[]>;
  /** Puts a new summary in the place of a published one, wherever that stands. The old text is kept, retired. */
  replaceSummary(replacement: SummaryReplacement, now: number): Promise<PublishResult>;
  /** Puts the sources of a summary back into the context; `dryRun`: only tells. Null: it is not in the context. */
  dissolveSummary(request: {
    summaryId: string;
    dryRun: boolean;
    now: number;
  }): Promise<DissolveResult | null>;
  /** Copies a conversation, with everything in it, in front of another one of the same owner; refuses what is there already. */
  transplant(request: TransplantRequest, derive: Derive): Promise<TransplantResult>;
  planForget(messageIds: readonly number[], alsoSummaryIds: readonly string[]): Promise<ForgetPlan>;
  /** Erases messages and what rests on them. The freed pages are wiped by {@link wipeFreed}. */
  forget(request: ForgetRequest): Promise<ForgetResult>;
  /** True from a forgetting until its freed pages have been wiped. */
  isForgettingOpen(): Promise<boolean>;
  /** Rewrites the file so that nothing deleted is left in it; false while another process keeps the old pages in use. */
  wipeFreed(): Promise<boolean>;
}
