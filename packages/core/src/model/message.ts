/**
 * A message as the rest of the engine reads it. The source of truth is the arrival bytes; a `MessageView` is derived from them and can be
 * discarded and derived again, as `verify` does.
 */

export type Role = "user" | "assistant" | "system" | "tool" | "other";

/** The type of a message block. `other` is an unknown block: it is kept, shown as JSON, and never interpreted. */
export type PartType = "text" | "reasoning" | "tool_call" | "tool_result" | "image" | "file" | "other";

/** A half-open range of bytes in the arrival bytes of a message. */
export interface ByteRange {
  readonly at: number;
  readonly length: number;
}

/** One block of a message, with its place in the arrival bytes. */
export interface PartView extends ByteRange {
  readonly ordinal: number;
  readonly type: PartType;
  /** Readable text of the block: what search indexes and summaries see. Never base64. */
  readonly text: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  /** The range of a call's part is only its arguments, not the whole call. */
  readonly holdsArguments?: boolean;
  readonly mimeType?: string;
  readonly fileName?: string;
  /** Decoded size in bytes of an inline image or file payload. */
  readonly payloadBytes?: number;
}

/** Which model wrote an assistant message; reasoning blocks go back only to that model. */
export interface ModelIdentity {
  readonly provider?: string;
  readonly api?: string;
  readonly model?: string;
}

/** The cost of a request as the provider reported it. Used to calibrate the token estimate. */
export interface ReportedUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
}

export interface MessageView {
  readonly role: Role;
  /** The role as the host wrote it (`toolResult`, `developer`, …). Empty if the bytes contain no message. */
  readonly rawRole: string;
  readonly parts: readonly PartView[];
  /** The message's own time, ms UTC. */
  readonly createdAt?: number;
  readonly model?: ModelIdentity;
  readonly usage?: ReportedUsage;
  /** The provider's id of the answer; a host that writes an answer in several rows repeats it in each. */
  readonly answerId?: string;
  readonly stopReason?: string;
  /** False for a line that is not a message (a header, a model change, an unreadable line). */
  readonly isMessage: boolean;
  /** The line is only the host's bookkeeping: searches never find it. */
  readonly isBookkeeping?: true;
}

/** Reasons why an item is not in the context. Stored as a bit mask; never a reason to delete. */
export const HIDDEN = {
  heartbeat: 1,
  unplaced: 2,
  branch: 4,
  meta: 8,
  forgotten: 16,
  /** Part of a history that is still being read: shown once it is complete. */
  pending: 32,
} as const;
export type HiddenReason = keyof typeof HIDDEN;

export function hiddenMask(reasons: Iterable<HiddenReason>): number {
  let mask = 0;
  for (const reason of reasons) mask |= HIDDEN[reason];
  return mask;
}

export function hiddenReasons(mask: number): HiddenReason[] {
  return (Object.keys(HIDDEN) as HiddenReason[]).filter((reason) => (mask & HIDDEN[reason]) !== 0);
}

/** Distance between positions if only a message's number in the host's transcript is known; the gaps leave room for late rows. */
export const POSITION_STEP = 2 ** 20;

/**
 * Event ids of attachments: what another event only names, stored beside it as `media:<event id>:<number>` and hidden. An attachment is
 * forgotten with its event.
 */
export const ATTACHMENT_PREFIX = "media:";

/** The caller's session: every conversation belongs to one. */
export interface SessionRef {
  /** Stable name of the conversation's lane, for example `agent:main:telegram:42`. */
  readonly key: string;
  /** The host's id for the current session; event ids are unique within it. */
  readonly id: string;
  /** The agent the rows belong to. Reads are filtered by it. */
  readonly owner: string;
}

/** One event passed to `ingest`. Exactly one of `message` and `bytes` is given. */
export interface Arrival {
  /** The event's own id; a new ULID if absent. */
  readonly eventId?: string;
  /** A provisional id will be replaced by the host's entry id when it becomes known. */
  readonly eventIdKind?: "entry" | "provisional";
  /** A message object, stored as JSON text that parses back deeply equal. */
  readonly message?: unknown;
  /** Bytes to be stored and returned unchanged (a transcript line). */
  readonly bytes?: Uint8Array;
  /** Where the message belongs, usually the host's message number × POSITION_STEP; after everything else if absent. */
  readonly position?: number;
  /** Used when the bytes contain no time. */
  readonly createdAt?: number;
  /** The time is unknown: `createdAt`, or the arrival time, is only a guess that no list shows. A time in the bytes overrides it. */
  readonly isUndated?: boolean;
  readonly hidden?: readonly HiddenReason[];
}

/** Which import stores something, and from where. */
export interface ImportMark {
  /** `imp_` + 16 hex: one for all files that are imported together. */
  readonly importId: string;
  /** The file or folder. */
  readonly source: string;
  /** When the import began, ms UTC. */
  readonly at: number;
}

export type ArrivalKind = "stored" | "known" | "revision" | "forgotten";

export interface IngestedMessage {
  readonly messageId: number;
  readonly eventId: string;
  readonly seq: number;
  readonly outcome: ArrivalKind;
}
