/**
 * The part of the store port that moves whole conversations between archives: rows as they are, in a canonical order, with numbers that
 * mean nothing outside the file. What a database adds itself (row ids, chain links, file ids) is omitted and recomputed.
 *
 * Nobody sees moved rows until they are complete and proven: they are consistent only together. Moving a conversation in again continues
 * after its last row, once every earlier row has been compared.
 */
import type { HiddenReason, ImportMark } from "../model/message.ts";
import type { Labels } from "../model/labels.ts";
import type { Origin } from "../model/origin.ts";
import type { SummaryOutline } from "./folding.ts";
import type { PreparedRedaction } from "./redaction.ts";
import type { Derive, PayloadEncoding, Problem } from "./rows.ts";

export interface MovedSession {
  readonly owner: string;
  readonly sessionId: string;
  readonly cursor: string | null;
  readonly lastEventId: string | null;
  readonly baseTokens: number | null;
}

/** The position from which a session's events belong to the conversation. */
export interface MovedPlacement {
  readonly sessionId: string;
  readonly start: number;
  readonly base: number;
}

export interface MovedConversation extends Origin, Labels {
  readonly owner: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  readonly createdAt: number;
  readonly archivedAt: number | null;
  readonly archiveCause: string | null;
  readonly rows: number;
  readonly foldRevision: number;
  readonly epochSeq: number;
  readonly placements: readonly MovedPlacement[];
}

export interface MovedFile {
  readonly sha256: string;
  readonly fileName: string | null;
  readonly mimeType: string;
  readonly byteSize: number;
  readonly lineCount: number | null;
  readonly extension: string;
  readonly explorationSummary: string;
  readonly createdAt: number;
}

/** Where a payload was cut out of a message, and the file that contains it. */
export interface MovedCut {
  readonly at: number;
  readonly length: number;
  readonly encoding: PayloadEncoding;
  readonly sha256: string;
}

export interface MovedMessage {
  readonly kind: "message";
  readonly seq: number;
  readonly sessionId: string;
  readonly eventId: string;
  readonly eventKind: "entry" | "provisional";
  readonly position: number;
  readonly createdAt: number;
  /** False if its time is unknown. Absent in older archives, which did not record it. */
  readonly isDated?: boolean | undefined;
  readonly role: string;
  readonly tokens: number;
  /** Why it was hidden on arrival; later changes are rows of the ledger. */
  readonly hidden: readonly HiddenReason[];
  /** seq of the first message of the event. */
  readonly revises: number | null;
  /** The arrival bytes with large payloads cut out; empty when forgotten. */
  readonly body: Uint8Array;
  readonly cuts: readonly MovedCut[];
  readonly salt: Uint8Array;
  readonly commitment: Uint8Array;
  /** Still sealed: moving never opens it. */
  readonly redaction: PreparedRedaction | null;
  readonly forgottenAt: number | null;
}

/** A change that is not a message. For kind `file`, the body names the file by its content. */
export interface MovedLedger {
  readonly kind: "ledger";
  readonly seq: number;
  readonly change: string;
  readonly body: string;
  readonly at: number;
}

export type MovedRow = MovedMessage | MovedLedger;

export interface MovedSummary extends Omit<SummaryOutline, "conversationId"> {
  readonly startSeq: number;
  readonly endSeq: number;
  readonly content: string;
  readonly madeAtSeq: number;
  readonly previousId: string | null;
  /** In order: seqs of messages, ids of summaries. */
  readonly sources: readonly (number | string)[];
}

export interface MovedTurn {
  readonly sessionId: string;
  readonly owner: string;
  readonly key: string;
  readonly at: number;
}

/** A conversation of this archive, to be read by its id. */
export interface ListedConversation extends MovedConversation {
  readonly conversationId: number;
  readonly summaries: number;
  readonly lastAt: number | null;
}

export interface MoveChoice {
  readonly owner?: string | undefined;
  readonly conversationIds?: readonly number[] | undefined;
}

/** A conversation found in, or made for, an import. */
export interface OpenedConversation {
  readonly conversationId: number;
  /** Rows that already exist. */
  readonly rows: number;
  /** Set when it had to be stored as archived, because its family has an active conversation. */
  readonly archivedInstead: boolean;
}

export type OpenMovedResult =
  | ({ readonly kind: "opened" } & OpenedConversation)
  /** Its events are already in this archive, somewhere else. */
  | { readonly kind: "conflict"; readonly reason: string };

export interface TransferStore {
  /** By owner, session key and age: an order that is the same in another archive. */
  listMoved(choice: MoveChoice): Promise<ListedConversation[]>;
  readMovedSessions(
    conversationIds: readonly number[],
  ): Promise<{ sessions: MovedSession[]; turns: MovedTurn[] }>;
  readMovedRows(conversationId: number, afterSeq: number, limit: number): Promise<MovedRow[]>;
  readMovedFile(
    conversationId: number,
    sha256: string,
  ): Promise<{ file: MovedFile; content: Uint8Array | null } | null>;
  readMovedSummaries(conversationId: number, offset: number, limit: number): Promise<MovedSummary[]>;
  /** The summaries in the cover, oldest first. */
  readMovedCover(conversationId: number): Promise<string[]>;
}

/** Moving in: verbs that exist only inside `bringIn`. */
export interface TransferIn {
  /** What `verify` would report about these conversations as written so far. */
  proveMoved(conversationIds: readonly number[], derive: Derive): Promise<Problem[]>;
  moveSessions(
    sessions: readonly MovedSession[],
    turns: readonly MovedTurn[],
    follows?: boolean,
  ): Promise<void>;
  /** Finds or creates the `nth` conversation of the same owner, key and age; with null it is always created. */
  openMoved(
    conversation: MovedConversation,
    nth: number | null,
    now: number,
    follows?: boolean,
  ): Promise<OpenMovedResult>;
  moveRows(
    conversationId: number,
    rows: readonly MovedRow[],
    files: ReadonlyMap<string, { file: MovedFile; content: Uint8Array }>,
    derive: Derive,
    now: number,
  ): Promise<void>;
  /** Records what an import stored in a conversation. */
  noteImported(mark: ImportMark, conversationId: number, messages: number): Promise<void>;
  moveSummaries(
    conversationId: number,
    summaries: readonly MovedSummary[],
  ): Promise<{ stored: number; known: number }>;
  /** Puts exactly these summaries into the cover, replacing what is under them. */
  moveCover(
    conversationId: number,
    cover: readonly string[],
    folds: { foldRevision: number; epochSeq: number },
  ): Promise<void>;
  /** Retires summaries that are neither in the cover nor below it: for a conversation that keeps its own cover. */
  retireBeside(conversationId: number): Promise<void>;
}
