/**
 * The part of the store port for recall: places, neighbours, texts in bulk, and grants.
 *
 * Invariant: every read takes a {@link RecallScope} and returns nothing outside it, whatever ids it is given.
 */
import type { ConversationFilter, LargeFileRow } from "./rows.ts";
import type { IdRange, InheritedPart, RecallScope } from "./recall-scope.ts";
import type { DocumentKind, RecallParts, TextIndex } from "./text-index.ts";

export type { IdRange, InheritedPart, RecallParts, RecallScope };

/** The parts of our own tools in a message, null for none; absent if the store must be asked separately. */
export interface WithRecall {
  readonly recall?: RecallParts | null;
}

/** A document and its place. */
export interface CandidateDocument extends WithRecall {
  readonly id: number;
  readonly conversationId: number;
  /** Consecutive documents of one group have consecutive numbers. */
  readonly group: number;
  readonly position: number;
  readonly words: number;
  readonly createdAt: number;
  /** Who speaks; null for a summary, and where it was not asked for. */
  readonly role: string | null;
}

/** Documents of equal rank, and how many of them are wanted: those written last, then those placed last. */
export interface TiedDocuments {
  readonly ids: readonly number[];
  readonly count: number;
}

export interface CandidateRequest {
  readonly kind: DocumentKind;
  readonly ids: readonly number[];
  /** Some of these also count as given: only the store can determine which without a second read. */
  readonly tied?: TiedDocuments | undefined;
  readonly reach: number;
  readonly scope: RecallScope;
  /** Whether it matters who speaks; where not, a store may leave it out. */
  readonly withRoles?: boolean;
}

export interface MessageText {
  readonly messageId: number;
  readonly conversationId: number;
  readonly seq: number;
  readonly position: number;
  readonly eventId: string;
  readonly role: string;
  readonly tokens: number;
  readonly createdAt: number;
  /** The arrival bytes, large payloads put back. */
  readonly bytes: Uint8Array;
}

/** What a scan over everything needs of a message. */
export interface ScannedText extends Pick<MessageText, "messageId" | "seq" | "role" | "createdAt"> {
  /** The arrival as text: for a hundred thousand messages that is much cheaper to make and pass on than bytes. */
  readonly arrival: string;
}

/** A document and when it was written. */
export interface DatedId {
  readonly id: number;
  readonly createdAt: number;
}

/** A document, its time and its place. */
export interface PlacedTime extends DatedId {
  readonly conversationId: number;
  /** As in a {@link CandidateDocument}; 0 for a summary. */
  readonly position: number;
}

/** The conversations of a session, newest first, and what the forks among them share with others. */
export interface Family {
  readonly conversationIds: readonly number[];
  readonly inherited: readonly InheritedPart[];
  /** Times of the oldest and newest message of all of them. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
}

export interface FoundSummary {
  readonly ref: number;
  readonly summaryId: string;
  readonly conversationId: number;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly tokens: number;
  readonly earliestAt: number;
  readonly latestAt: number;
  readonly createdAt: number;
  readonly content: string;
}

/** A sub-agent's permission to read part of what its issuer may read, for a limited time and number of tokens. */
export interface Grant {
  readonly grantId: string;
  readonly owner: string;
  readonly issuerKey: string;
  readonly holderKey: string;
  readonly conversationIds: readonly number[];
  /** Empty: all summaries of the conversations. */
  readonly summaryIds: readonly string[];
  readonly maxDepth: number;
  readonly tokenCap: number;
  readonly tokensUsed: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
}

export interface RecallStore extends TextIndex {
  /** Messages written in one of the ranges (`since` ≤ time < `before`), newest first. */
  findWritten(request: {
    scope: RecallScope;
    ranges: readonly { since: number; before: number }[];
    limit: number;
  }): Promise<({ messageId: number; createdAt: number } & WithRecall)[]>;
  /** The places of the given documents and of those up to `reach` beside them; documents outside the scope are omitted. */
  readCandidates(request: CandidateRequest): Promise<CandidateDocument[]>;
  /** The times of the given documents; those outside the scope are omitted. */
  readTimes(request: {
    kind: DocumentKind;
    ids: readonly number[];
    scope: RecallScope;
  }): Promise<PlacedTime[]>;
  /** Those of the given messages with calls or results of our own tools. */
  listRecallParts(messageIds: readonly number[]): Promise<RecallParts[]>;
  readTexts(messageIds: readonly number[], scope: RecallScope): Promise<MessageText[]>;
  /** Documents of the scope, the newest first, without reading the documents: some may be revised or forgotten. */
  listNewest(request: {
    kind: DocumentKind;
    scope: RecallScope;
    /** Only those with ids in the ranges, which do not overlap. */
    within: readonly IdRange[] | null;
    /** Only so many, the newest; not with ranges. */
    limit?: number;
  }): Promise<DatedId[]>;
  /** The current messages of the scope with ids in the ranges. */
  readTextsWithin(ranges: readonly IdRange[], scope: RecallScope): Promise<ScannedText[]>;
  /** Summaries by their rows in the index. */
  readFoundSummaries(refs: readonly number[], scope: RecallScope): Promise<FoundSummary[]>;
  /** Large files of the scope, newest first; null gives all of them. */
  listFiles(scope: RecallScope, fileIds: readonly string[] | null): Promise<LargeFileRow[]>;
  /** The messages of a conversation from one to another in order, hidden ones included, revisions omitted. */
  listRange(firstId: number, lastId: number): Promise<number[]>;
  /** The summaries made directly from a message. */
  listSummariesOf(messageId: number): Promise<string[]>;
  /** The messages a large file was cut out of. */
  readFileMessages(fileId: string): Promise<number[]>;
  /** Conversations of a family, of an owner, of a project or an agent, newest first. */
  listScope(request: ConversationFilter): Promise<number[]>;
  /** The conversations under a key, or only the newest of them. */
  readFamily(request: { owner: string; sessionKey: string; newestOnly: boolean }): Promise<Family>;

  /** Saves a grant unless its issuer has one that is still live; then false. */
  insertGrant(grant: Grant, now: number): Promise<boolean>;
  findGrantOf(holderKey: string, now: number): Promise<Grant | null>;
  /** Adds to a live grant's use, up to its cap; returns the tokens that were left before, or null when the grant is not live. */
  chargeGrant(grantId: string, tokens: number, now: number): Promise<number | null>;
  revokeGrants(
    which: { grantId?: string; issuerKey?: string; holderKey?: string },
    now: number,
  ): Promise<number>;
  /** Removes grants that ended before the given time. */
  sweepGrants(before: number): Promise<number>;
}
