/**
 * The store port: what the engine needs from a database, in coarse verbs. Each method is one transaction. A rejected promise
 * means that nothing changed; nobody outside an adapter sees BEGIN or a connection. Asynchronous, because PostgreSQL is; the
 * SQLite adapter does its work synchronously inside.
 *
 * Invariants every adapter keeps:
 * - an event (session, event id) is stored once; a repeated one adds nothing, changed bytes add a revision;
 * - `context_items` covers every message of a conversation exactly once, in the order of positions;
 * - every row of `messages` and `ledger` is a link of its conversation's hash chain, whose head stands in `conversations`.
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
  /** The sessions of an owner that have stored this event. */
  findSessions(owner: string, eventId: string): Promise<string[]>;
  /**
   * Makes every event of the session `from` known to a new session of the same owner as well, which goes on in its conversations and from its
   * cursor; `cursor` is left with `from`. False, and nothing happens, if the new session exists or `from` does not.
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
  /** What the user says first in each of these conversations: at most `limit` messages among the first few. */
  listOpenings(conversationIds: readonly number[], limit: number): Promise<Opening[]>;
  /** Changes what a person calls a conversation; null where the caller sees no such conversation. */
  label(request: LabelRequest): Promise<Labels | null>;
  readConversation(conversationId: number, owner?: string): Promise<ConversationRow | null>;
  listMessages(request: ListMessages): Promise<Page<MessageRow>>;
  /** Where and how large the messages of a conversation are, in order, behind a place; for what looks at all of them. */
  readOutline(request: OutlineRequest): Promise<Outline>;
  /** Ids of messages by their numbers in the conversation, which count from 0 in the order of positions. */
  listMessageIds(request: {
    conversationId: number;
    at: number;
    limit: number;
    owner?: string;
  }): Promise<number[]>;
  /** The number of a message; null when there is none. */
  locateMessage(
    messageId: number,
    owner?: string,
  ): Promise<{ conversationId: number; number: number } | null>;
  readMessage(messageId: number, owner?: string): Promise<MessageBody | null>;
  /** The newest versions of messages as a model sees them: a reference stands where a payload was cut out. In the order asked for. */
  readShown(messageIds: readonly number[]): Promise<ShownMessage[]>;
  readRevisions(messageId: number, owner?: string): Promise<MessageRow[]>;
  /** Brings what was stored a moment ago into the index, and the event ids of an import to where they are looked up. Without it that happens by itself, milliseconds later. Never fails. */
  flushIndex(): Promise<void>;
  readFile(fileId: string, owner?: string): Promise<LargeFileRow | null>;
  readFileContent(fileId: string, owner?: string): Promise<Uint8Array | null>;
  status(owner?: string): Promise<ArchiveStatus>;
  /** What conversations hold, and what of it the context leaves out and why. */
  countMessages(conversationIds: readonly number[], owner?: string): Promise<MessageCounts[]>;
  /** What the bytes are used for. Looks at every page. */
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
  /** Runs `work` on one state of the archive. This store goes on meanwhile. */
  withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /**
   * Runs `work`, which stores what makes a whole only together, through the object it is given. Nobody sees any of it before `work` ends; if it
   * fails or the process dies, nothing is kept. Nothing else may use this store meanwhile. Other programs go on, but where a database has one
   * writer at a time, theirs wait. With `isRepeatable`, `work` may be run again from its beginning: then they wait only for its last step, or if
   * they change again and again what it changes.
   */
  bringIn<T>(work: (into: Intake) => Promise<T>, options?: { isRepeatable?: boolean }): Promise<T>;
  close(): Promise<void>;
}

/** One state of the archive, on which reads are made, whatever anybody writes meanwhile. */
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

/** What can be stored and read while it is brought in: what is there so far counts. */
export type Intake = TransferIn &
  Pick<Store, "append" | "readSession" | "listMessages" | "listMoved" | "readMovedRows" | "readMovedFile">;
