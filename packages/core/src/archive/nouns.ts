/**
 * Converts rows of the declared tables to the nouns of the store port, for any database. There are no rules here, only names: which column
 * is which field. An adapter passes the columns that a function needs.
 */
import { basename } from "node:path";
import { renderReference } from "../model/large-file.ts";
import { HIDDEN, hiddenReasons } from "../model/message.ts";
import type { HiddenReason } from "../model/message.ts";
import type { Labels } from "../model/labels.ts";
import { pickOrigin } from "../model/origin.ts";
import type { Origin } from "../model/origin.ts";
import { decodeBody } from "../store/body.ts";
import type { Debt, RunItem, SummaryOutline, SummaryRow } from "../store/folding.ts";
import type { ForkItem } from "../store/forks.ts";
import type { CandidateDocument, FoundSummary, MessageText } from "../store/recall.ts";
import type { DoubtfulSummary, ImportedPart } from "../store/repair.ts";
import type { ConversationRow, LargeFileRow, MessageRow, Outline, StoredPart } from "../store/rows.ts";
import type { Splice } from "../store/splice.ts";
import type {
  ListedConversation,
  MovedFile,
  MovedMessage,
  MovedSession,
  MovedSummary,
} from "../store/transfer.ts";
import type { VectorSpace } from "../store/vectors.ts";
import { EVENT_KIND } from "./identity.ts";
import { toLabels } from "./labels.ts";
import type { LabelColumns } from "./labels.ts";
import type { RunRow } from "./reads.ts";
import type { Row } from "./tables.ts";

type IdentityColumns = Pick<
  Row<"conversations">,
  | "conversation_id"
  | "owner"
  | "session_key"
  | "session_id"
  | "created_at"
  | "archived_at"
  | "archive_cause"
  | keyof Origin
  | keyof LabelColumns
>;
export type ConversationColumns = IdentityColumns &
  Pick<
    Row<"conversations">,
    | "message_count"
    | "shown_messages"
    | "shown_tokens"
    | "summary_count"
    | "fold_revision"
    | "first_at"
    | "last_at"
    | "arrival_bytes"
  >;

/** The identity of a conversation, and whether it has ended. Archives are written in this order. */
function toIdentity(
  row: IdentityColumns,
): Pick<
  ConversationRow,
  | "conversationId"
  | "owner"
  | "sessionKey"
  | "sessionId"
  | "createdAt"
  | "archivedAt"
  | "archiveCause"
  | keyof Origin
  | keyof Labels
> {
  return {
    conversationId: row.conversation_id,
    owner: row.owner,
    sessionKey: row.session_key,
    sessionId: row.session_id,
    createdAt: row.created_at,
    archivedAt: row.archived_at,
    archiveCause: row.archive_cause,
    ...pickOrigin(row),
    ...toLabels(row),
  };
}

export function toConversation(row: ConversationColumns): ConversationRow {
  return {
    ...toIdentity(row),
    messages: row.message_count,
    shownMessages: row.shown_messages,
    shownTokens: row.shown_tokens,
    summaries: row.summary_count,
    foldRevision: row.fold_revision,
    firstAt: row.first_at,
    lastAt: row.last_at,
    arrivalBytes: row.arrival_bytes,
  };
}

/** A conversation to be moved, with the placements of its sessions. */
export function toListed(
  row: Row<"conversations">,
  placements: readonly (Pick<Row<"placements">, "start_position" | "base_position"> & {
    readonly session_id: string;
  })[],
): ListedConversation {
  return {
    ...toIdentity(row),
    rows: row.head_seq,
    summaries: row.summary_count,
    foldRevision: row.fold_revision,
    epochSeq: row.epoch_seq,
    lastAt: row.last_at,
    placements: placements.map((placement) => ({
      sessionId: placement.session_id,
      start: placement.start_position,
      base: placement.base_position,
    })),
  };
}

export interface MessageColumns extends Pick<
  Row<"messages">,
  | "message_id"
  | "conversation_id"
  | "event_id"
  | "seq"
  | "position"
  | "role"
  | "tokens"
  | "created_at"
  | "arrival_bytes"
  | "hidden_now"
  | "revises"
  | "newest"
  | "forgotten_at"
  | "dated"
> {
  readonly session_id: string;
}

export function toMessage(row: MessageColumns): MessageRow {
  return {
    messageId: row.message_id,
    conversationId: row.conversation_id,
    sessionId: row.session_id,
    eventId: row.event_id,
    seq: row.seq,
    position: row.position,
    role: row.role,
    tokens: row.tokens,
    createdAt: row.created_at,
    arrivalBytes: row.arrival_bytes,
    hidden: hiddenReasons(row.hidden_now),
    revises: row.revises,
    newest: row.newest,
    forgottenAt: row.forgotten_at,
    isDated: row.dated === 1,
  };
}

export type TextColumns = Pick<
  Row<"messages">,
  "message_id" | "conversation_id" | "seq" | "position" | "event_id" | "role" | "tokens" | "created_at"
>;

export const toText = (row: TextColumns, bytes: Uint8Array): MessageText => ({
  messageId: row.message_id,
  conversationId: row.conversation_id,
  seq: row.seq,
  position: row.position,
  eventId: row.event_id,
  role: row.role,
  tokens: row.tokens,
  createdAt: row.created_at,
  bytes,
});

export type OutlineColumns = readonly [
  messageId: number,
  seq: number,
  position: number,
  tokens: number,
  createdAt: number,
  role: string,
  dated: number,
];

export function toMessageOutline(rows: readonly OutlineColumns[]): Outline {
  const roleNames: string[] = [];
  const numbers = new Map<string, number>();
  const outline: Outline = {
    messageIds: new Float64Array(rows.length),
    seqs: new Float64Array(rows.length),
    positions: new Float64Array(rows.length),
    tokens: new Float64Array(rows.length),
    createdAts: new Float64Array(rows.length),
    roles: new Uint16Array(rows.length),
    roleNames,
  };
  for (const [index, [messageId, seq, position, tokens, createdAt, role]] of rows.entries()) {
    let number = numbers.get(role);
    if (number === undefined) {
      numbers.set(role, (number = numbers.size));
      roleNames.push(role);
    }
    outline.messageIds[index] = messageId;
    outline.seqs[index] = seq;
    outline.positions[index] = position;
    outline.tokens[index] = tokens;
    outline.createdAts[index] = createdAt;
    outline.roles[index] = number;
  }
  fillTimes(outline.createdAts, rows);
  return outline;
}

/** A line without its own time gets that of the next line that has one, at the end that of the last. */
function fillTimes(times: Float64Array, rows: readonly OutlineColumns[]): void {
  const isDated = (at: number): boolean => rows[at]?.[6] === 1;
  let known = times[rows.findLastIndex((_row, at) => isDated(at))];
  if (known === undefined) return;
  for (let at = rows.length - 1; at >= 0; at--) {
    if (isDated(at)) known = times[at] as number;
    else times[at] = known;
  }
}

/** How many messages are hidden for each reason, from the counts for each set of reasons. */
export function countReasons(
  groups: Iterable<{ readonly hidden: number; readonly n: number }>,
): Record<HiddenReason, number> {
  const counts = Object.fromEntries(Object.keys(HIDDEN).map((reason) => [reason, 0])) as Record<
    HiddenReason,
    number
  >;
  for (const { hidden, n } of groups) for (const reason of hiddenReasons(hidden)) counts[reason] += n;
  return counts;
}

export function toPart(row: Omit<Row<"message_parts">, "message_id">): StoredPart {
  return {
    ordinal: row.ordinal,
    type: row.type,
    at: row.at,
    length: row.length,
    toolCallId: row.tool_call_id,
    toolName: row.tool_name,
    fileId: row.file_id,
    encoding: row.encoding,
  };
}

export type ReferenceColumns = Pick<Row<"message_parts">, "at" | "length"> &
  Pick<Row<"large_files">, "file_id" | "file_name" | "mime_type" | "byte_size" | "exploration_summary">;

/** The text that replaces a payload in a shown message. */
export function toReference(part: ReferenceColumns): Splice {
  return {
    at: part.at,
    length: part.length,
    encoding: "json",
    content: Buffer.from(
      renderReference({
        fileId: part.file_id,
        fileName: part.file_name,
        mimeType: part.mime_type,
        byteSize: part.byte_size,
        explorationSummary: part.exploration_summary,
      }),
    ),
  };
}

export function toLargeFile(row: Row<"large_files">): LargeFileRow {
  return {
    fileId: row.file_id,
    conversationId: row.conversation_id,
    fileName: row.file_name,
    mimeType: row.mime_type,
    byteSize: row.byte_size,
    lineCount: row.line_count,
    sha256: row.sha256,
    blob: row.storage_path,
    explorationSummary: row.exploration_summary,
    createdAt: row.created_at,
  };
}

export function toMovedFile(row: Row<"large_files">): MovedFile {
  return {
    sha256: row.sha256,
    fileName: row.file_name,
    mimeType: row.mime_type,
    byteSize: row.byte_size,
    lineCount: row.line_count,
    extension: basename(row.storage_path).split(".").at(-1) ?? "bin",
    explorationSummary: row.exploration_summary,
    createdAt: row.created_at,
  };
}

export function toMovedSession(row: Row<"sessions">): MovedSession {
  return {
    owner: row.owner,
    sessionId: row.session_id,
    cursor: row.cursor,
    lastEventId: row.last_event,
    baseTokens: row.base_tokens,
  };
}

export interface MovedColumns extends Omit<Row<"messages">, "session_ref" | "chain"> {
  readonly session_id: string;
  /** Of its event id; null if that names nothing. */
  readonly event_kind: number | null;
  /** seq of the message that it revises. */
  readonly revises_seq: number | null;
}

/** Forgotten messages are moved without what belonged to them. */
export function toMovedMessage(
  row: MovedColumns,
  own: Pick<MovedMessage, "cuts" | "redaction">,
): MovedMessage {
  const isForgotten = row.forgotten_at !== null;
  return {
    kind: "message",
    seq: row.seq,
    sessionId: row.session_id,
    eventId: row.event_id,
    eventKind: row.event_kind === EVENT_KIND.provisional ? "provisional" : "entry",
    position: row.position,
    createdAt: row.created_at,
    ...(row.dated === 1 ? null : { isDated: false }),
    role: row.role,
    tokens: row.tokens,
    hidden: hiddenReasons(row.hidden),
    revises: row.revises_seq,
    body: isForgotten ? new Uint8Array() : decodeBody(row),
    cuts: isForgotten ? [] : own.cuts,
    salt: row.salt,
    commitment: row.commitment,
    redaction: isForgotten ? null : own.redaction,
    forgottenAt: row.forgotten_at,
  };
}

/**
 * The ledger names files by ids that depend on this database; a moved record names them by content. A forgotten file has no content: its id
 * stays as it is, and names nothing in any archive.
 */
export function nameFilesByContent(
  { kind, body }: Pick<Row<"ledger">, "kind" | "body">,
  contentOf: (fileId: string) => string | null,
): string {
  if (kind !== "file" && kind !== "forget") return body;
  const parsed = JSON.parse(body) as { fileId: string; files?: readonly string[] };
  if (kind === "file") {
    const sha256 = contentOf(parsed.fileId);
    return sha256 === null ? body : JSON.stringify({ sha256 });
  }
  const files = (parsed.files ?? []).map((fileId) => {
    const sha256 = contentOf(fileId);
    return sha256 === null ? fileId : { sha256 };
  });
  return JSON.stringify({ ...parsed, files });
}

/** A summary without its text. */
export type SummaryColumns = Omit<
  Row<"summaries">,
  "content" | "hash" | "previous_id" | "start_seq" | "end_seq" | "made_at_seq"
>;

export function toSummary(row: Row<"summaries">): SummaryRow {
  const { publishedSeq: _publishedSeq, ...outline } = toSummaryOutline(row);
  return { ...outline, content: row.content, previousId: row.previous_id };
}

export function toSummaryOutline(row: SummaryColumns): SummaryOutline {
  return {
    summaryId: row.summary_id,
    conversationId: row.conversation_id,
    kind: row.kind,
    depth: row.depth,
    state: row.state,
    startPosition: row.start_pos,
    endPosition: row.end_pos,
    messages: row.messages,
    descendantCount: row.descendant_count,
    tokens: row.tokens,
    sourceTokens: row.source_tokens,
    earliestAt: row.earliest_at,
    latestAt: row.latest_at,
    model: row.model,
    level: row.level,
    isStale: row.stale === 1,
    isRoot: row.is_root === 1,
    publishedSeq: row.published_seq,
    createdAt: row.created_at,
  };
}

/** Archives are written in this order of fields. */
export function toMovedSummary(row: Row<"summaries">, sources: readonly (number | string)[]): MovedSummary {
  return {
    summaryId: row.summary_id,
    kind: row.kind,
    depth: row.depth,
    state: row.state,
    startPosition: row.start_pos,
    startSeq: row.start_seq,
    endPosition: row.end_pos,
    endSeq: row.end_seq,
    messages: row.messages,
    descendantCount: row.descendant_count,
    tokens: row.tokens,
    sourceTokens: row.source_tokens,
    earliestAt: row.earliest_at,
    latestAt: row.latest_at,
    content: row.content,
    model: row.model,
    level: row.level,
    isStale: row.stale === 1,
    isRoot: row.is_root === 1,
    madeAtSeq: row.made_at_seq,
    createdAt: row.created_at,
    publishedSeq: row.published_seq,
    previousId: row.previous_id,
    sources,
  };
}

export type FoundSummaryColumns = Pick<Row<"summary_refs">, "summary_ref"> &
  Pick<
    Row<"summaries">,
    | "summary_id"
    | "conversation_id"
    | "kind"
    | "depth"
    | "tokens"
    | "earliest_at"
    | "latest_at"
    | "created_at"
    | "content"
  >;

export function toFoundSummary(row: FoundSummaryColumns): FoundSummary {
  return {
    ref: row.summary_ref,
    summaryId: row.summary_id,
    conversationId: row.conversation_id,
    kind: row.kind,
    depth: row.depth,
    tokens: row.tokens,
    earliestAt: row.earliest_at,
    latestAt: row.latest_at,
    createdAt: row.created_at,
    content: row.content,
  };
}

/** Summaries have no neighbours: their distance exceeds any reach. */
const GAP = 100;

/** A message beside what was found. */
export type CandidateColumns = Pick<Row<"messages">, "conversation_id" | "session_ref" | "created_at"> & {
  readonly id: number;
  /** Null where it was not asked for. */
  readonly role: string | null;
  /** seq of its first version. */
  readonly stands_at: number;
  readonly words: number;
};

/** Messages of one session and conversation are a group, numbered in order of arrival. */
export function toCandidates(rows: readonly CandidateColumns[]): CandidateDocument[] {
  const groups = new Map<string, number>();
  return rows.map((row) => {
    const name = `${row.session_ref}.${row.conversation_id}`;
    let group = groups.get(name);
    if (group === undefined) groups.set(name, (group = groups.size));
    return {
      id: row.id,
      conversationId: row.conversation_id,
      group,
      position: row.stands_at,
      words: row.words,
      createdAt: row.created_at,
      role: row.role,
    };
  });
}

export const toSummaryCandidate = (
  row: Pick<CandidateColumns, "id" | "conversation_id" | "created_at" | "words">,
  index: number,
): CandidateDocument => ({
  id: row.id,
  conversationId: row.conversation_id,
  group: row.conversation_id,
  position: index * GAP,
  words: row.words,
  createdAt: row.created_at,
  role: null,
});

export type DoubtfulColumns = Pick<
  Row<"summaries">,
  | "summary_id"
  | "conversation_id"
  | "depth"
  | "tokens"
  | "source_tokens"
  | "level"
  | "model"
  | "stale"
  | "content"
>;

export function toDoubtful(row: DoubtfulColumns): DoubtfulSummary {
  return {
    summaryId: row.summary_id,
    conversationId: row.conversation_id,
    depth: row.depth,
    tokens: row.tokens,
    sourceTokens: row.source_tokens,
    level: row.level,
    model: row.model,
    isStale: row.stale === 1,
    content: row.content,
  };
}

/** An item of a run, with the content of its message or summary. */
export const toRunItem = (row: RunRow, { bytes, summary }: Pick<RunItem, "bytes" | "summary">): RunItem => ({
  startPosition: row.start_pos,
  endPosition: row.end_pos,
  seq: row.seq,
  hidden: row.hidden,
  tokens: row.tokens,
  messages: row.messages,
  createdAt: row.earliest_at,
  isDated: row.dated !== 0,
  messageId: row.message_id,
  versionId: row.version_id,
  bytes,
  summary,
});

export function toForkItem(row: Row<"fork_items">): ForkItem {
  return {
    kind: row.kind,
    messageId: row.message_id,
    summaryId: row.summary_id,
    firstId: row.first_id,
    lastId: row.last_id,
    startPosition: row.start_pos,
    endPosition: row.end_pos,
    tokens: row.tokens,
    messages: row.messages,
    depth: row.depth,
    earliestAt: row.earliest_at,
    latestAt: row.latest_at,
  };
}

export function toDebt(row: Row<"compaction_debt">): Debt {
  return {
    conversationId: row.conversation_id,
    reason: row.reason,
    budgetTokens: row.budget_tokens,
    requestedAt: row.requested_at,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    leaseHolder: row.lease_holder,
    leaseUntil: row.lease_until,
    lastFailure: row.last_failure,
  };
}

export const toSpace = (
  row: Pick<Row<"vector_spaces">, "space_id" | "model" | "dimensions" | "created_at" | "filled_at">,
): VectorSpace => ({
  spaceId: row.space_id,
  model: row.model,
  dimensions: row.dimensions,
  createdAt: row.created_at,
  filledAt: row.filled_at,
});

export const toImported = (row: Row<"imports">): ImportedPart => ({
  importId: row.import_id,
  conversationId: row.conversation_id,
  source: row.source,
  at: row.at,
  messages: row.messages,
});
