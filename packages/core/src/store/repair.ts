/**
 * The part of the store port for repair: copies of the whole, lists of what needs attention, and the few ways in which stored data may
 * change afterwards: a summary is replaced by a better one, a summary is replaced by its sources, a message is forgotten.
 *
 * Invariant: each of these is one transaction that leaves a complete cover, a correct graph, correct counters and a continuous chain.
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
  /** What replaces it, oldest first. */
  readonly sources: readonly { readonly id: string; readonly tokens: number; readonly isShown: boolean }[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Its index among the items of the context, and how many items follow it: those move back. */
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

/** Everything that forgetting some messages affects. */
export interface ForgetPlan {
  /** All versions of all events, except those already forgotten. */
  readonly messageIds: readonly number[];
  readonly conversationIds: readonly number[];
  readonly arrivalBytes: number;
  /** Large files that no other message uses. */
  readonly files: readonly {
    readonly fileId: string;
    readonly blob: string;
    readonly byteSize: number;
  }[];
  /** Summaries made from them, the finest first. Published ones need a new text, the others are only erased. */
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
  /** Summaries to remake although they were not made from the messages: their text was found to mention them. */
  readonly alsoSummaryIds: readonly string[];
  /** How many summaries each conversation had before those were looked for: a later one may mention the messages, too. */
  readonly summaryCounts?: ReadonlyMap<number, number>;
  readonly replacements: readonly SummaryReplacement[];
  /** The reason, for the record in the chain. */
  readonly reason: string;
  readonly now: number;
}

export type ForgetResult =
  | {
      readonly kind: "forgotten";
      readonly plan: ForgetPlan;
      /** Files that killed imports left beside the archive, with texts that never became part of it. They were also removed. */
      readonly intakeFiles?: readonly string[] | undefined;
    }
  | { readonly kind: "stale" };

/** What one import stored in one conversation. */
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
  /** Conversations in which a session of this one also has messages. */
  readonly sharesSessionWith: readonly number[];
}

export interface RemovedCounts {
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  readonly files: number;
}

export interface RepairStore {
  /** Writes a consistent copy of the database to a new path, while others keep writing. */
  backup(path: string, onProgress: (done: number, total: number) => void): Promise<void>;
  listDebts(): Promise<Debt[]>;
  /** Drops the debt of a conversation that has ended; false if it has not, or has no debt. */
  closeDebt(conversationId: number): Promise<boolean>;
  /**
   * Removes these summaries of a conversation, or all for null, with those above them, and shows what they represented; null when something
   * else uses one of them.
   */
  dropSummaries(conversationId: number, summaryIds: readonly string[] | null): Promise<number | null>;
  /** What imports stored, the newest first. */
  listImports(): Promise<ImportedPart[]>;
  /** Ordered by id; those that do not exist are omitted. */
  readTies(conversationIds: readonly number[]): Promise<ConversationTies[]>;
  /**
   * Removes conversations with everything in them; their ids are not reused, their events can be stored again. Null: they are not as
   * expected.
   */
  removeConversations(expected: readonly ConversationTies[]): Promise<RemovedCounts | null>;
  /** Published summaries, ordered by id. */
  listPublished(request: {
    after: string;
    limit: number;
    conversationId?: number;
  }): Promise<DoubtfulSummary[]>;
  /** Paths of all large files the archive names, below the files folder. */
  listBlobs(): Promise<string[]>;
  /**
   * Removes those of these large files that no row names, unfinished ones included, while nobody can store one of them; returns their paths.
   */
  removeUnnamed(paths: readonly string[]): Promise<string[]>;
  /** Those of the given events whose bytes cannot be read back exactly from the archive. */
  findUnproven(
    owner: string | null,
    sessionId: string,
    events: readonly { eventId: string; bytes: Uint8Array }[],
  ): Promise<string[]>;
  readVersions(): Promise<{ schemaVersion: number; storedSchemaVersion: number }>;
  /** The sources of a summary, oldest first, as a summariser reads them. */
  readSources(summaryId: string): Promise<RunItem[]>;
  /** Replaces a published summary by a new one, wherever it is. The old text is kept, retired. */
  replaceSummary(replacement: SummaryReplacement, now: number): Promise<PublishResult>;
  /** Puts the sources of a summary back into the context; `dryRun` only reports. Null: it is not in the context. */
  dissolveSummary(request: {
    summaryId: string;
    dryRun: boolean;
    now: number;
  }): Promise<DissolveResult | null>;
  /** Copies a conversation, with everything in it, in front of another one of the same owner; refuses duplicates. */
  transplant(request: TransplantRequest, derive: Derive): Promise<TransplantResult>;
  planForget(messageIds: readonly number[], alsoSummaryIds: readonly string[]): Promise<ForgetPlan>;
  /** Erases messages and what was made from them. {@link wipeFreed} wipes the freed pages. */
  forget(request: ForgetRequest): Promise<ForgetResult>;
  /** True from a forget until its freed pages have been wiped. */
  isForgettingOpen(): Promise<boolean>;
  /** Rewrites the file so that it contains nothing deleted; false while another process keeps the old pages in use. */
  wipeFreed(): Promise<boolean>;
}
