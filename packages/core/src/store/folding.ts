/**
 * The part of the store port for folding and assembling: reading the cover, publishing summaries, walking the graph, and the records of
 * debt, spend and guards.
 *
 * Invariant of publishing: it checks only the run it replaces. Same items, same order, same versions: published; otherwise: stale, and the
 * caller plans again. Turns appended elsewhere never make a running fold stale.
 */
import type { Boundary } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import type { ReserveSummary } from "../model/reserve.ts";
import type { Page } from "./page.ts";

export interface CoverCounters {
  readonly shownMessages: number;
  readonly shownTokens: number;
  readonly firstAt: number | null;
}

/** The newest part of a cover, as far as a budget can use it. */
export interface CoverTail {
  readonly conversationId: number;
  readonly foldRevision: number;
  /** Shown items, newest first. */
  readonly items: CoverItem[];
  readonly counters: CoverCounters;
  readonly boundaries: Boundary[];
  /** Stored stand-ins, including stale ones. */
  readonly reserve: ReserveSummary[];
  /** Shown summaries older than `items`, newest first; empty unless requested. */
  readonly summariesBefore: CoverItem[];
  /** The newest user message older than `items`. */
  readonly newestUser: CoverItem | null;
}

/** The oldest part of a cover, as far as a fold can use it; includes hidden items, except those hidden by a boundary. */
export interface CoverHead {
  readonly items: CoverItem[];
  /** Whether `items` is the whole cover. */
  readonly isWhole: boolean;
  /** Tokens of the shown summaries of the whole cover. */
  readonly prefixTokens: number;
}

/** One item of a run to fold, with what a summariser reads. */
export interface RunItem {
  readonly startPosition: number;
  readonly endPosition: number;
  readonly seq: number;
  readonly hidden: number;
  readonly tokens: number;
  readonly messages: number;
  readonly createdAt: number;
  /** False for a message whose time is a guess. */
  readonly isDated: boolean;
  /** The message of the item and the version that was read. */
  readonly messageId: number | null;
  readonly versionId: number | null;
  readonly bytes: Uint8Array | null;
  readonly summary: SummaryRow | null;
}

export type SummaryState = "cover" | "reserve" | "prepared" | "retired";

export interface SummaryRow {
  readonly summaryId: string;
  readonly conversationId: number;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly state: SummaryState;
  readonly startPosition: number;
  readonly endPosition: number;
  readonly messages: number;
  readonly descendantCount: number;
  readonly tokens: number;
  readonly sourceTokens: number;
  readonly earliestAt: number;
  readonly latestAt: number;
  readonly content: string;
  readonly model: string;
  readonly level: string;
  readonly isStale: boolean;
  readonly isRoot: boolean;
  readonly createdAt: number;
  /** The summary given to its writer as previous context; null: none, or not recorded. */
  readonly previousId: string | null;
}

/** A summary without its text. */
export interface SummaryOutline extends Omit<SummaryRow, "content" | "previousId"> {
  /** The conversation's newest seq when it was published; null if it was not, or if that was not recorded. */
  readonly publishedSeq: number | null;
}

/** All summaries of a conversation, and what each was made from. */
export interface SummaryGraph {
  /** By start, the finest first. */
  readonly nodes: SummaryOutline[];
  /** From a summary to each of its source summaries, in order. */
  readonly edges: (readonly [summaryId: string, sourceId: string])[];
}

/** A summary with everything that a context shows of it. */
export interface ShownSummary extends SummaryRow {
  /** Summaries it was made from, oldest first. */
  readonly sourceIds: string[];
}

/** A summary and its neighbours in the graph. */
export interface SummaryNode extends ShownSummary {
  /** Messages a leaf was made from, oldest first. */
  readonly messageIds: number[];
  /** Summaries made from it. */
  readonly derivedIds: string[];
  readonly fileIds: string[];
}

/** The text of a summary and its origin; everything else follows from the run. */
export interface SummaryText {
  readonly summaryId: string;
  readonly content: string;
  readonly tokens: number;
  readonly model: string;
  readonly level: "normal" | "aggressive" | "extractive";
  /** The summary that was given to the writer of the text as previous context. */
  readonly previousId?: string | null;
  /** What the model's answer cost: recorded in the transaction that stores the text, also where that has become stale. */
  readonly spent?: SpendRecord | null;
}

export interface StoreSummary {
  readonly conversationId: number;
  readonly run: FoldRun;
  readonly summary: SummaryText;
  readonly state: "cover" | "reserve" | "prepared";
  readonly isRoot?: boolean;
  /**
   * The fold revision at which a context was last made. If it is not the current one, no context can change, and a stand-in may be used at
   * once.
   */
  readonly seenRevision?: number | null;
  /** Stand-ins that are its sources instead of the items they represent. */
  readonly sourceIds?: readonly string[];
  readonly now: number;
}

/** A stale summary, with its current sources. */
export interface StaleSummary {
  readonly summary: SummaryRow;
  readonly run: RunItem[];
}

/** A new text for a published summary, made from its current sources, which determine its counts. */
export interface SummaryReplacement {
  readonly oldId: string;
  readonly summary: SummaryText;
  /** What it was made from, as {@link nameSource} names it; if that has changed, the request is stale. */
  readonly sourceKeys: readonly string[];
}

/** Names a source, its version, and why it is not shown. */
export function nameSource(
  item: Pick<RunItem, "messageId" | "versionId" | "hidden"> & {
    readonly summary: Pick<SummaryRow, "summaryId"> | null;
  },
): string {
  const name = item.summary === null ? `m${item.versionId ?? item.messageId}` : item.summary.summaryId;
  return item.hidden === 0 ? name : `${name} hidden ${item.hidden}`;
}

/** Vectors are made by the thousand: the cap on calls is for texts. */
export const UNCAPPED_PURPOSE = "embed";

/** The items a summary is made from, as they were read. */
export type FoldRun = readonly RunKey[];

export interface RunKey {
  readonly startPosition: number;
  readonly seq: number;
  readonly hidden: number;
  readonly versionId: number | null;
  readonly summaryId: string | null;
}

export type PublishResult =
  | {
      readonly kind: "published";
      readonly summaryId: string;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: "stale" };

/** A stored summary and the run it will replace. */
export interface StoredFold {
  readonly summaryId: string;
  readonly run: FoldRun;
}

export interface Debt {
  readonly conversationId: number;
  readonly reason: string;
  readonly budgetTokens: number;
  readonly requestedAt: number;
  readonly attempts: number;
  readonly nextAttemptAt: number;
  readonly leaseHolder: string | null;
  readonly leaseUntil: number | null;
  readonly lastFailure: string | null;
}

export interface SpendRecord {
  readonly at: number;
  readonly conversationId: number | null;
  readonly purpose: string;
  readonly provider: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly durationMs: number;
  readonly outcome: string;
}

export interface SpendGroup {
  readonly key: string;
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export interface Guard {
  readonly name: string;
  readonly failures: number;
  readonly openUntil: number;
  readonly reason: string;
}

/** Positions between two ends, both included. */
export interface Stretch {
  readonly startPosition: number;
  readonly endPosition: number;
}

export interface FoldingStore {
  readCoverTail(request: {
    conversationId: number;
    maxTokens: number;
    maxMessages: number;
    /** Reads `summariesBefore`, which only a choice needs. */
    withSummaries?: boolean;
  }): Promise<CoverTail | null>;
  /** Reads until it has met `maxMessageTokens` of messages that no stored leaf represents. */
  readCoverHead(request: { conversationId: number; maxMessageTokens: number }): Promise<CoverHead>;
  /** First and last message, without hidden ones, in some stretches of a conversation, which are in order. */
  findEnds(request: {
    conversationId: number;
    stretches: readonly Stretch[];
  }): Promise<{ first: number | null; last: number | null }>;
  /** The sources of summaries, as items of a cover, oldest first, hidden ones included; empty for those no longer in force. */
  readSourceItems(summaryIds: readonly string[]): Promise<Map<string, CoverItem[]>>;
  /** The items from the first key to the last. Without texts, for comparing instead of summarising, `bytes` are null. */
  readRun(
    conversationId: number,
    keys: readonly { startPosition: number; seq: number }[],
    withTexts?: boolean,
  ): Promise<RunItem[]>;
  /** Stores a summary of a run and, for state `cover`, replaces the run by it. */
  storeSummary(request: StoreSummary): Promise<PublishResult>;
  /**
   * Replaces runs by the stored summaries made from them, all in one transaction and one epoch. Each run is compared separately: one that
   * changed is left as it is and reported as `stale`, and the others are published. Results are in the order of the request.
   */
  publishStored(request: {
    conversationId: number;
    folds: readonly StoredFold[];
    now: number;
  }): Promise<PublishResult[]>;
  /** Whether a published summary is stale, whether or not its replacement has been made. */
  hasStale(conversationId: number): Promise<boolean>;
  /** The next stale published summary to remake; the deepest come first. */
  readStale(conversationId: number): Promise<StaleSummary | null>;
  /** Stores the replacement of a stale summary; it waits for `swapRemade`. */
  storeRemade(replacement: SummaryReplacement, now: number): Promise<PublishResult>;
  /** Begins an epoch with the waiting remade summaries. Returns how many there were. */
  swapRemade(request: { conversationId: number; now: number }): Promise<number>;
  readSummary(summaryId: string, owner?: string): Promise<SummaryNode | null>;
  /** Several summaries as a context shows them; unknown ids are omitted. */
  readShownSummaries(summaryIds: readonly string[]): Promise<ShownSummary[]>;
  listSummaries(request: {
    conversationId: number;
    after: string | null;
    limit: number;
    owner?: string;
    state?: SummaryState;
  }): Promise<Page<SummaryRow>>;
  /** The whole graph without its texts, for drawing it. */
  readGraph(request: { conversationId: number; owner?: string }): Promise<SummaryGraph>;
  countSummaries(
    conversationId: number,
  ): Promise<{ cover: number; reserve: number; prepared: number; stale: number; extractive: number }>;

  addDebt(debt: { conversationId: number; budgetTokens: number; now: number }): Promise<void>;
  readDebt(conversationId: number): Promise<Debt | null>;
  /** Takes the lease of a debt that is due; null when there is none, it is not due, or another process holds it. */
  claimDebt(request: {
    conversationId: number | null;
    holder: string;
    now: number;
    leaseMs: number;
    force?: boolean;
  }): Promise<Debt | null>;
  renewDebt(request: { conversationId: number; holder: string; until: number }): Promise<boolean>;
  /** Takes the same lease for upkeep where nothing is owed; false when another process holds it. */
  claimUpkeep(request: {
    conversationId: number;
    holder: string;
    now: number;
    leaseMs: number;
  }): Promise<boolean>;
  releaseUpkeep(request: { conversationId: number; holder: string }): Promise<void>;
  settleDebt(request: {
    conversationId: number;
    holder: string;
    now: number;
    failure: string | null;
    retryAt: number | null;
  }): Promise<void>;

  recordSpend(record: SpendRecord): Promise<void>;
  sumSpend(request: {
    since: number;
    by: "day" | "conversation" | "model" | "purpose" | "all";
    timeZoneOffsetMs?: number;
  }): Promise<SpendGroup[]>;
  /** Calls since then, except those for {@link UNCAPPED_PURPOSE}. */
  countSpendCalls(since: number): Promise<number>;
  readGuards(): Promise<Guard[]>;
  saveGuard(guard: Guard): Promise<void>;
  /** What hosts reported with their messages about the provider's prompt cache; null: nothing. */
  readCacheUsage(
    conversationId: number,
  ): Promise<{ requests: number; promptTokens: number; cachedTokens: number } | null>;
}
