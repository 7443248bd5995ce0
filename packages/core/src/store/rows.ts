/** The nouns of the store port: its parameters and results. The verbs are in `store.ts`. */
import type { HiddenReason, ImportMark, IngestedMessage, PartType, SessionRef } from "../model/message.ts";
import type { Labels, LabelUpdate } from "../model/labels.ts";
import type { Origin, OriginFilter, OriginUpdate } from "../model/origin.ts";
import type { ReadTerms } from "../text/index.ts";
import type { PreparedRedaction } from "./redaction.ts";

/** How a cut-out payload is turned back into the bytes that were cut. */
export type PayloadEncoding = "json" | "json-ascii" | "base64" | "raw";

export interface PreparedPart {
  readonly type: PartType | "payload";
  readonly at: number;
  readonly length: number;
  readonly toolCallId?: string;
  readonly toolName?: string;
}

/** A payload that is moved out of the message: bytes for a file, and the place and encoding to put it back. */
export interface PreparedPayload {
  readonly at: number;
  readonly length: number;
  readonly encoding: PayloadEncoding;
  readonly content: Uint8Array;
  readonly sha256: string;
  readonly fileName: string | null;
  readonly mimeType: string;
  readonly extension: string;
  readonly lineCount: number | null;
  readonly explorationSummary: string;
}

/** Everything about a message that can be computed before taking a lock. */
export interface PreparedMessage extends DerivedMessage {
  /** ms UTC: the message's own time, else the caller's, else its arrival. */
  readonly createdAt: number;
  /** Bit mask of `HIDDEN`. */
  readonly hidden: number;
  readonly body: Uint8Array;
  /** A code of `body.ts`. */
  readonly encoding: number;
  readonly arrivalBytes: number;
  readonly salt: Uint8Array;
  readonly commitment: Uint8Array;
  /** Set for a message that was redacted while there was a key. */
  readonly redaction: PreparedRedaction | null;
  readonly payloads: readonly PreparedPayload[];
  /** The model that wrote it, with estimated and reported output tokens, if the host says so. */
  readonly calibration: { model: string; estimated: number; reported: number } | null;
  /** Use of the provider's prompt cache for the request that it answers, if the host says so. */
  readonly cacheUsage: CacheResult | null;
  /** Called when the terms will not be read again. Absent if nobody needs to know. */
  readonly release?: () => void;
}

export interface CacheResult {
  /** The id of the answer: hosts that write one in several rows repeat its report in each. */
  readonly answer: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** One event of a batch. `prepare` runs at most once, and only if the event turns out to be new. */
export interface AppendEvent {
  readonly eventId: string;
  readonly kind: "entry" | "provisional";
  /** SHA-256 input: the arrival bytes, to compare with what is stored under a known id. */
  readonly arrival: Uint8Array;
  /** The bytes before redaction, if that removed something: a copy stored before the pattern was set is still the same event. */
  readonly original?: Uint8Array;
  /** With a redaction key: the keyed hash of what arrived, to compare with what was stored under the same key. */
  readonly keyed?: { readonly keyId: string; readonly commit: (salt: Uint8Array) => Uint8Array };
  readonly position: number | null;
  readonly prepare: () => PreparedMessage;
  /** Already prepared; `prepare` costs nothing. */
  readonly isPrepared?: boolean;
}

export interface AppendBatch {
  readonly session: SessionRef;
  readonly events: readonly AppendEvent[];
  readonly turn?: { readonly advancementKey: string };
  readonly cursor?: { readonly value: string | null };
  /** Room for messages in the model's context at this turn, if known. */
  readonly baseTokens?: number;
  readonly now: number;
  /** Set when an import stores the batch: what it stored is recorded. */
  readonly import?: ImportMark | undefined;
  /** Where the conversation comes from, according to this batch. */
  readonly origin?: OriginUpdate | undefined;
}

export interface AppendResult {
  readonly conversationId: number;
  readonly results: IngestedMessage[];
  readonly duplicateTurn: boolean;
  /** Set when the rows are stored but could not be added to the full-text index. */
  readonly indexProblem: string | null;
}

export interface SessionState {
  readonly cursor: string | null;
  readonly conversationId: number | null;
  readonly lastEventId: string | null;
  /** Room for messages in the model's context at the last turn that named one. */
  readonly baseTokens: number | null;
}

/** Selects conversations. Absent fields do not narrow. */
export interface ConversationFilter extends OriginFilter {
  readonly owner?: string | undefined;
  readonly sessionKey?: string | undefined;
}

/**
 * How a list is sorted. `id`: by number, newest first; pages stay consistent whatever is stored meanwhile. The others are for people:
 * pinned ones come first, and ties are sorted by time.
 */
export type ConversationOrder = "id" | "newest" | "oldest" | "project" | "agent" | "model";

export interface ListConversations extends ConversationFilter {
  readonly after: string | null;
  readonly limit: number;
  readonly order?: ConversationOrder | undefined;
  readonly model?: string | undefined;
  readonly tag?: string | undefined;
  /** Those with a last message at or after this time, and before that one. */
  readonly since?: number | undefined;
  readonly before?: number | undefined;
  /** Unlisted conversations: excluded (false) or included (true). */
  readonly unlisted?: boolean | undefined;
}

export interface LabelRequest {
  readonly conversationId: number;
  readonly owner?: string | undefined;
  readonly update: LabelUpdate;
  readonly now: number;
}

/** The first shown user messages of a conversation, oldest first; for a title if there is none. */
export interface Opening {
  readonly conversationId: number;
  readonly messageId: number;
}

export interface ConversationRow extends Origin, Labels {
  readonly conversationId: number;
  readonly owner: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly createdAt: number;
  readonly archivedAt: number | null;
  readonly archiveCause: string | null;
  readonly messages: number;
  readonly shownMessages: number;
  readonly shownTokens: number;
  readonly summaries: number;
  /** Counts changes of the folded prefix. */
  readonly foldRevision: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly arrivalBytes: number;
}

export interface MessageRow {
  readonly messageId: number;
  readonly conversationId: number;
  readonly sessionId: string;
  readonly eventId: string;
  readonly seq: number;
  readonly position: number;
  readonly role: string;
  readonly tokens: number;
  readonly createdAt: number;
  readonly arrivalBytes: number;
  readonly hidden: HiddenReason[];
  /** The message this one revises, and the newest revision of this one. */
  readonly revises: number | null;
  readonly newest: number | null;
  readonly forgottenAt: number | null;
  /** False for a line without its own time: `createdAt` is then that of the next line that has one. */
  readonly isDated: boolean;
}

export interface StoredPart {
  readonly ordinal: number;
  readonly type: PartType | "payload";
  readonly at: number;
  readonly length: number;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  readonly fileId: string | null;
  readonly encoding: PayloadEncoding | null;
}

export interface LargeFileRow {
  readonly fileId: string;
  readonly conversationId: number;
  readonly fileName: string | null;
  readonly mimeType: string;
  readonly byteSize: number;
  readonly lineCount: number | null;
  readonly sha256: string;
  /** Name of its content among the blobs. */
  readonly blob: string;
  readonly explorationSummary: string;
  readonly createdAt: number;
}

export interface MessageBody {
  readonly row: MessageRow;
  readonly parts: StoredPart[];
  /** The arrival bytes, payloads spliced back in. */
  readonly bytes: Uint8Array;
}

export interface ShownMessage {
  /** The first message of the event, which is in the cover. */
  readonly messageId: number;
  readonly seq: number;
  readonly createdAt: number;
  readonly bytes: Uint8Array;
  /** Its stored count; null if references replace payloads, which then have to be counted. */
  readonly tokens: number | null;
}

export interface ListMessages {
  readonly conversationId: number;
  readonly after: string | null;
  readonly limit: number;
  /** Order of positions, or order of arrival. */
  readonly order: "position" | "arrival";
  readonly direction: "oldest" | "newest";
  readonly owner?: string;
}

export interface OutlineRequest {
  readonly conversationId: number;
  readonly owner?: string;
  /** Position and seq of the last known message. */
  readonly after: readonly [position: number, seq: number] | null;
  readonly limit: number;
}

/** In columns, because a hundred thousand rows are passed between threads ten times faster this way. All have the same length. */
export interface Outline {
  readonly messageIds: Float64Array;
  readonly seqs: Float64Array;
  readonly positions: Float64Array;
  /** What a message adds to the conversation: nothing if it is hidden or revises an earlier one. */
  readonly tokens: Float64Array;
  readonly createdAts: Float64Array;
  /** Indexes into `roleNames`. */
  readonly roles: Uint16Array;
  readonly roleNames: readonly string[];
}

export type IndexState =
  /** `pending` messages were stored a moment ago, or by a process that was killed, and are not in the index yet. */
  | { readonly kind: "ready"; readonly messages: number; readonly pending: number }
  | { readonly kind: "degraded"; readonly reason: string };

export interface ArchiveStatus {
  readonly databasePath: string;
  readonly databaseBytes: number;
  readonly filesBytes: number;
  readonly arrivalBytes: number;
  readonly schemaVersion: number;
  readonly conversations: number;
  readonly activeConversations: number;
  readonly messages: number;
  readonly hidden: Record<HiddenReason, number>;
  readonly revisions: number;
  readonly summaries: number;
  readonly largeFiles: number;
  readonly tokens: number;
  readonly lastStoredAt: number | null;
  readonly lastMessageAt: number | null;
  readonly index: IndexState;
}

export interface RelabelSession {
  readonly from: string;
  readonly session: SessionRef;
  readonly cursor: string;
  readonly now: number;
}

/** What a conversation contains. messages = shownMessages + hiddenMessages + beforeBoundary; revisions are extra. */
export interface MessageCounts {
  readonly conversationId: number;
  readonly messages: number;
  /** Other versions of these messages. */
  readonly revisions: number;
  /** Those the context represents. */
  readonly shownMessages: number;
  readonly hiddenMessages: number;
  /** By reason; a message may be hidden for several. */
  readonly hidden: Record<HiddenReason, number>;
  /** Omitted because they are before an active boundary. */
  readonly beforeBoundary: number;
}

export interface StorageShare {
  readonly bytes: number;
  /** Share of the arrival bytes; null when there were none. */
  readonly share: number | null;
}

/** What the archive's bytes are used for. */
export interface StorageShares {
  readonly handedInBytes: number;
  readonly messages: StorageShare;
  readonly leaves: StorageShare;
  readonly condensed: StorageShare;
  readonly indexes: StorageShare;
  /** Order, cover, ids, ledger, accounts. */
  readonly other: StorageShare;
  readonly largeFiles: StorageShare;
  readonly all: StorageShare;
}

export interface BoundaryRequest {
  readonly session: SessionRef;
  readonly eventId: string;
  readonly reason: "new" | "reset" | "idle" | "daily" | "deleted";
  readonly position: number | null;
  readonly retainDepth: number;
  readonly at: number;
}

export interface BoundaryResult {
  readonly kind: "recorded" | "known";
  /** The conversation in which the session continues. */
  readonly conversationId: number;
}

export interface Problem {
  readonly code: string;
  readonly id: string;
  readonly message: string;
}

export interface VerifyCounts {
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  readonly files: number;
}

export interface VerifyResult extends VerifyCounts {
  readonly ok: boolean;
  /** Messages redacted under a key, and how many of them were proven with that key to be what arrived. */
  readonly redacted?: { readonly messages: number; readonly proven: number };
  readonly problems: Problem[];
}

/** A payload that was cut out: its place in the arrival bytes, and the text of its reference. */
export interface CutPayload {
  readonly at: number;
  readonly length: number;
  readonly fileName: string | null;
  readonly mimeType: string;
  readonly byteSize: number;
  readonly explorationSummary: string;
}

/** What depends only on the bytes of a message and its cut payloads. */
export interface DerivedMessage {
  readonly role: string;
  /** Its bytes contain a time. For a prepared message: its time is known, from its bytes, its caller or its arrival. */
  readonly isDated: boolean;
  /** Estimate of the message as sent, uncalibrated: payloads count as their references. */
  readonly tokens: number;
  readonly parts: readonly PreparedPart[];
  /** The terms for the index. Finding them is most of the work, so it is deferred until they are needed. */
  readonly readTerms: ReadTerms;
}

/** Recomputes the contents of `messages`; passed to `verify` and `reindex`, so that the store need not know about messages. */
export type Derive = (bytes: Uint8Array, cuts: readonly CutPayload[]) => DerivedMessage;
