/**
 * The store port: what the engine needs from a database, in coarse verbs. Each method is one transaction. A rejected promise means that nothing
 * changed; only an adapter sees BEGIN or a connection. Asynchronous, because PostgreSQL is; the SQLite adapter works synchronously inside.
 *
 * Invariants every adapter keeps:
 * - an event (session, event id) is stored once; a repeated one adds nothing, changed bytes add a revision;
 * - `context_items` covers every message of a conversation exactly once, in order of position;
 * - every row of `messages` and `ledger` is a link of its conversation's hash chain, whose head is in `conversations`.
 */
import type { Labels } from "../model/labels.ts";
import type { HiddenReason, SessionRef } from "../model/message.ts";
import type { RepairStore } from "./repair.ts";
import type { FoldingStore } from "./folding.ts";
import type { ForkStore } from "./forks.ts";
import type { Page } from "./page.ts";
import type { RecallStore } from "./recall.ts";
import type { ProveArrival, RedactionStore } from "./redaction.ts";
import type { TransferIn, TransferStore } from "./transfer.ts";
import type { VectorStore } from "./vectors.ts";
import type {
  AppendBatch,
  AppendResult,
  ArchiveStatus,
  BoundaryResult,
  BoundaryRequest,
  ConversationRow,
  Derive,
  LargeFileRow,
  LabelRequest,
  ListConversations,
  ListMessages,
  Opening,
  Outline,
  OutlineRequest,
  RelabelSession,
  MessageBody,
  MessageCounts,
  MessageRow,
  SessionState,
  ShownMessage,
  StorageShares,
  VerifyResult,
} from "./rows.ts";

export type * from "./rows.ts";
export type * from "./redaction.ts";
export type { Page } from "./page.ts";

export interface Store
  extends FoldingStore, RecallStore, TransferStore, RepairStore, VectorStore, RedactionStore, ForkStore {
  append(batch: AppendBatch): Promise<AppendResult>;
  readSession(owner: string | null, sessionId: string): Promise<SessionState | null>;
  knownEvents(owner: string | null, sessionId: string, eventIds: readonly string[]): Promise<string[]>;
  relabel(session: SessionRef, labels: readonly { from: string; to: string }[], now: number): Promise<number>;
  /** The sessions of an owner in which this event is stored. */
  findSessions(owner: string, eventId: string): Promise<string[]>;
  /**
   * Adds every event of the session `from` also to a new session of the same owner, which continues in its conversations and from its
   * cursor; `cursor` becomes that of `from`. False, without any change, if the new session exists or `from` does not.
   */
  relabelSession(request: RelabelSession): Promise<boolean>;
  setHidden(
    session: SessionRef,
    reason: HiddenReason,
    eventIds: readonly string[],
    now: number,
    mode: "exactly" | "add",
  ): Promise<number>;
  recordBoundary(request: BoundaryRequest): Promise<BoundaryResult>;
  listConversations(request: ListConversations): Promise<Page<ConversationRow>>;
  /** The first user messages of each of these conversations: at most `limit` among the first few messages. */
  listOpenings(conversationIds: readonly number[], limit: number): Promise<Opening[]>;
  /** Changes the labels of a conversation; null if the caller cannot see such a conversation. */
  label(request: LabelRequest): Promise<Labels | null>;
  readConversation(conversationId: number, owner?: string): Promise<ConversationRow | null>;
  listMessages(request: ListMessages): Promise<Page<MessageRow>>;
  /** Place and size of the messages of a conversation, in order, after a point; for readers of all of them. */
  readOutline(request: OutlineRequest): Promise<Outline>;
  /** Ids of messages by their index in the conversation, from 0 in order of position. */
  listMessageIds(request: {
    conversationId: number;
    at: number;
    limit: number;
    owner?: string;
  }): Promise<number[]>;
  /** The index of a message; null if it has none. */
  locateMessage(
    messageId: number,
    owner?: string,
  ): Promise<{ conversationId: number; number: number } | null>;
  readMessage(messageId: number, owner?: string): Promise<MessageBody | null>;
  /** The newest versions of messages as a model sees them: with a reference in place of each cut payload. In the order requested. */
  readShown(messageIds: readonly number[]): Promise<ShownMessage[]>;
  readRevisions(messageId: number, owner?: string): Promise<MessageRow[]>;
  /**
   * Indexes recently stored messages, and writes the event ids of an import to their table. Without it that happens by itself, milliseconds
   * later. Never fails.
   */
  flushIndex(): Promise<void>;
  readFile(fileId: string, owner?: string): Promise<LargeFileRow | null>;
  readFileContent(fileId: string, owner?: string): Promise<Uint8Array | null>;
  status(owner?: string): Promise<ArchiveStatus>;
  /** Counts what conversations contain, and what the context leaves out and why. */
  countMessages(conversationIds: readonly number[], owner?: string): Promise<MessageCounts[]>;
  /** What the bytes are used for. Reads every page. */
  measureStorage(): Promise<StorageShares>;
  readCalibration(model: string): Promise<{ factor: number; samples: number } | null>;
  /** Proves the archive, or says what is wrong with it. */
  verify(
    derive: Derive,
    onProgress: (done: number, total: number) => void,
    proveArrival?: ProveArrival,
  ): Promise<VerifyResult>;
  /** Rebuilds the full-text index beside the old one, in short transactions with pauses between them, and swaps. */
  reindex(
    derive: Derive,
    onProgress: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<number>;
  /** Runs `work` on one snapshot of the archive. The store stays usable meanwhile. */
  withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /**
   * Runs `work`, which stores rows that belong together, through the object it is given. Nobody sees any of them before `work` ends; if it
   * fails or the process dies, nothing is kept. Nothing else may use this store meanwhile. Other programs can, but if a database has one
   * writer at a time, they wait to write. With `isRepeatable`, `work` may be run again from its beginning: then they wait only for its last
   * step, or if they repeatedly change what it changes.
   */
  bringIn<T>(work: (into: Intake) => Promise<T>, options?: { isRepeatable?: boolean }): Promise<T>;
  close(): Promise<void>;
}

/** A snapshot of the archive for reads, unaffected by concurrent writes. */
export type Snapshot = Pick<
  Store,
  | "listOpenings"
  | "readShown"
  | "listMessages"
  | "readMessage"
  | "readFile"
  | "listMoved"
  | "readMovedCover"
  | "readMovedFile"
  | "readMovedRows"
  | "readMovedSessions"
  | "readMovedSummaries"
>;

/** What can be stored and read during an intake: rows written so far are visible. */
export type Intake = TransferIn &
  Pick<Store, "append" | "readSession" | "listMessages" | "listMoved" | "readMovedRows" | "readMovedFile">;
