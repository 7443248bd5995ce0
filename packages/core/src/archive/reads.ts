/**
 * The questions that plans may ask an archive: few, narrow reads, by key sets and ranges. An adapter with direct answers implements exactly
 * this. The number of these reads is the work of adding another database.
 */
import type { SessionRef } from "../model/message.ts";
import type { Values } from "./changes.ts";
import type { Row, TableName, Value } from "./tables.ts";

/** The growing end of a conversation: all columns that a write advances. */
export type HeadRow = Pick<
  Row<"conversations">,
  | "conversation_id"
  | "session_id"
  | "head_seq"
  | "head_chain"
  | "message_count"
  | "shown_messages"
  | "shown_tokens"
  | "arrival_bytes"
  | "last_position"
  | "first_at"
  | "last_at"
  | "summary_count"
  | "fold_revision"
  | "epoch_seq"
  | "archived_at"
  | "owner"
>;

/** Where the events of a session go. */
export interface SessionPlacements {
  readonly session: Pick<Row<"sessions">, "session_ref" | "base_tokens"> | null;
  /** Newest first. */
  readonly placements: readonly Row<"placements">[];
  /** The session's current conversation; if it has none, the active conversation of its key. */
  readonly head: HeadRow | null;
}

/** One version of a stored event. */
export interface Version extends Pick<
  Row<"messages">,
  "message_id" | "conversation_id" | "seq" | "position" | "salt" | "commitment" | "forgotten_at"
> {
  /** The requested id; the message may have arrived under another. */
  readonly event_id: string;
  /** If it was redacted under a key. */
  readonly key_id: string | null;
  readonly keyed: Uint8Array | null;
  readonly sealed: number | null;
}

/** The calibration of a model. */
export interface CalibrationRow extends Row<"token_calibration"> {
  /** Another transaction is updating it: this one leaves it alone. */
  readonly isBusy?: boolean;
}

/** A message with its current reasons for being hidden. */
export type HideableMessage = Pick<
  Row<"messages">,
  "message_id" | "conversation_id" | "seq" | "position" | "hidden_now" | "newest"
>;

/** A message by its place in order of arrival. */
export type MessageAt = HideableMessage & Pick<Row<"messages">, "revises">;

/** The first message of an event, by one of its ids. */
export interface NamedMessage extends HideableMessage, Pick<Row<"event_ids">, "event_id" | "kind"> {}

/** A place in the order of a conversation. */
export interface CoverPoint {
  readonly conversationId: number;
  readonly position: number;
  readonly seq: number;
}

/** What covers a place. */
export interface Covering {
  /** The last item that begins at the place or before it. */
  readonly item: Row<"context_items"> | null;
  /** If that is a summary that extends to the place: it, and the summaries below it that include the place, down to the lowest. */
  readonly path: readonly SummarySpan[];
}

/** A source of a summary with its start. */
export interface PlacedLink extends SourceLink {
  readonly position: number;
  readonly seq: number;
}

/** The place of an item in a cover. */
export interface ItemPoint {
  readonly startPosition: number;
  readonly seq: number;
}

/** An item of a cover, or a source of a summary, with what a summary over it needs to know. */
export interface RunRow extends Omit<Row<"context_items">, "conversation_id"> {
  /** Of a message: its newest version. */
  readonly version_id: number | null;
  readonly earliest_at: number;
  readonly latest_at: number;
  /** 0 for a message whose time is a guess. */
  readonly dated: number;
  /** Of a summary. */
  readonly descendant_count: number | null;
  readonly end_seq: number | null;
  readonly stale: number | null;
}

/** A summary without its text. */
export type SummarySpan = Pick<
  Row<"summaries">,
  | "summary_id"
  | "conversation_id"
  | "depth"
  | "state"
  | "start_pos"
  | "start_seq"
  | "end_pos"
  | "end_seq"
  | "messages"
  | "descendant_count"
  | "tokens"
  | "earliest_at"
  | "latest_at"
  | "stale"
  | "is_root"
>;

/** One source of a summary: a message, or another summary. */
export interface SourceLink {
  readonly summary_id: string;
  readonly ordinal: number;
  readonly message_id: number | null;
  readonly source_id: string | null;
}

/** A version of a message that is not forgotten yet. */
export type ForgettableVersion = Pick<
  Row<"messages">,
  | "message_id"
  | "conversation_id"
  | "seq"
  | "position"
  | "revises"
  | "newest"
  | "hidden_now"
  | "arrival_bytes"
>;

/** A summary with everything that its hash binds, except its text. */
export type TouchedSummary = Pick<
  Row<"summaries">,
  | "summary_id"
  | "conversation_id"
  | "kind"
  | "depth"
  | "state"
  | "tokens"
  | "model"
  | "level"
  | "created_at"
  | "previous_id"
>;

/** Rows of one table whose columns equal these values, null included. */
interface TableQuery {
  readonly table: TableName;
  readonly columns: readonly string[];
  readonly where: Values;
  /** Columns that give the order. */
  readonly order: readonly string[];
}

/** The next rows in order. The columns of the order identify these rows uniquely. */
export interface PageQuery extends TableQuery {
  /** The values of those columns in the last row of the previous page. */
  readonly after: readonly Value[] | null;
  readonly limit: number;
}

/** All rows with one of these keys in a column. */
export interface KeysQuery extends TableQuery {
  readonly column: string;
  readonly keys: readonly (number | string)[];
}

/** A message with what its chain link, and its columns that depend on other rows, are checked against. */
export interface Arrival extends Omit<Row<"messages">, "session_ref"> {
  readonly session_id: string;
  /** seq of the message that it revises. */
  readonly revises_seq: number | null;
  /** The message that its event id names. */
  readonly event_message: number | null;
  readonly last_revision: number | null;
}

/** The first version of a message, as a cover shows it. */
export interface FirstVersion extends Pick<
  Row<"messages">,
  "message_id" | "position" | "seq" | "hidden" | "hidden_now"
> {
  /** Of its newest version. */
  readonly tokens: number;
}

/** A direct source of a summary: the summary's columns depend on it. */
export interface SourceSpan {
  readonly summary_id: string;
  readonly ordinal: number;
  readonly start_pos: number;
  readonly start_seq: number;
  readonly end_pos: number;
  readonly end_seq: number;
  /** Of a message. */
  readonly hidden_now: number | null;
  /** Of a summary, like the following. */
  readonly depth: number | null;
  readonly messages: number | null;
  readonly descendant_count: number | null;
  readonly stale: number | null;
}

/** The name of an event in a session. */
export interface EventName {
  readonly sessionId: string;
  readonly eventId: string;
}

export type NumberedTable = "sessions" | "conversations" | "messages" | "spend";

export interface Reads {
  /** Where a session is, and the head there, locked for this write until it ends. */
  placements(session: SessionRef): SessionPlacements;
  /**
   * The heads of conversations, locked for this write until it ends. With `onlyFree`, those locked by another write are skipped instead of
   * waited for.
   */
  lockHeads(conversationIds: readonly number[], onlyFree?: boolean): HeadRow[];
  /** The chain value at a seq. */
  chainAt(conversationId: number, seq: number): Uint8Array | null;
  /** Ids that no row of the table has and nobody else gets. Unused ones are lost. */
  ids(table: NumberedTable, count: number): number[];
  /** Those of the keys whose turn was already committed. */
  turns(keys: readonly string[]): string[];
  /** All versions of those events that are stored, of each in order of arrival. */
  versions(session: SessionRef, eventIds: readonly string[]): Version[];
  /** In any order, like the following: unknown ones are omitted. */
  sessions(owner: string, sessionIds: readonly string[]): Row<"sessions">[];
  /** The messages of a session's event ids, under the requested ids. */
  events(session: SessionRef, eventIds: readonly string[]): NamedMessage[];
  /** All event ids of a session, ordered by their messages, then by id. */
  allEvents(sessionRef: number): NamedMessage[];
  messagesAt(conversationId: number, seqs: readonly number[]): MessageAt[];
  /** Those of the sessions that have known events. */
  sessionsWithEvents(sessionRefs: readonly number[]): number[];
  /** Conversations of an age, ordered by id. */
  conversationsBegun(owner: string, key: string, at: number): HeadRow[];
  /** Messages of a session, in its conversations, that are hidden for any of these reasons. */
  hiddenFor(session: SessionRef, reasons: number): HideableMessage[];
  boundaries(session: SessionRef, eventIds: readonly string[]): Row<"boundaries">[];
  /** How many messages the shown items before a position represent. */
  shownBefore(conversationId: number, position: number): number;
  /** The active conversation of a key, locked for this write until it ends. */
  active(owner: string, key: string): HeadRow | null;
  files(fileIds: readonly string[]): Row<"large_files">[];
  /** Locked until the transaction ends, except those locked by another one. */
  calibrations(models: readonly string[]): CalibrationRow[];
  cacheUsage(conversationIds: readonly number[]): Row<"cache_usage">[];
  /** For each place, in the order requested. */
  covering(places: readonly CoverPoint[]): Covering[];
  /** The items of a cover from one to another, in order. */
  run(conversationId: number, first: ItemPoint, last: ItemPoint): RunRow[];
  /** How many items of a cover are before and after a place. */
  itemsAround(conversationId: number, place: ItemPoint): { readonly before: number; readonly behind: number };
  /** In any order; unknown ids are omitted. */
  summaries(summaryIds: readonly string[]): SummarySpan[];
  contents(
    summaryIds: readonly string[],
  ): Pick<Row<"summaries">, "summary_id" | "conversation_id" | "content">[];
  /** Those of a conversation with a previous context. */
  withPrevious(
    conversationId: number,
  ): (Pick<Row<"summaries">, "summary_id" | "start_pos" | "start_seq"> & { readonly previous_id: string })[];
  /** The sources of summaries, of each in order. */
  sources(summaryIds: readonly string[]): SourceLink[];
  placedSources(summaryIds: readonly string[]): PlacedLink[];
  /** The current sources of a summary. */
  currentSources(summaryId: string): RunRow[];
  /** The links of summaries that were made from this one. */
  derivedFrom(summaryId: string): Row<"summary_parents">[];
  /** All versions of the events that messages belong to, and of their attachments; forgotten ones are omitted. */
  forgettable(messageIds: readonly number[]): ForgettableVersion[];
  /** Large files used only by these messages. */
  filesOnlyOf(messageIds: readonly number[]): Row<"large_files">[];
  /** Every summary above these messages and summaries, the latter included, at any height and in any state; the finest first. */
  summariesAbove(messageIds: readonly number[], summaryIds: readonly string[]): TouchedSummary[];
  /** Summaries of a conversation that were made ahead and are in reserve or wait to be published. */
  madeAhead(conversationId: number): SummarySpan[];
  /** Stale published summaries of a conversation. */
  staleSummaries(conversationId: number): SummarySpan[];

  /** Rows in order, page by page. */
  page(query: PageQuery): Values[];
  /** Rows by a set of keys. */
  rows(query: KeysQuery): Values[];
  count(table: TableName, where: Values): number;
  /** The content of a large file; null when it is gone. */
  content(blob: string): Uint8Array | null;
  /** Messages of a conversation in order of arrival, as many as fit in a page; none at the end. */
  arrivals(conversationId: number, afterSeq: number): Arrival[];
  /** First versions in conversation order, at most `limit`. */
  firstVersions(
    conversationId: number,
    after: { readonly position: number; readonly seq: number },
    limit: number,
  ): FirstVersion[];
  /** The direct sources that exist, of each summary in order. */
  sourceSpans(summaryIds: readonly string[]): SourceSpan[];
  /** For each name, in the order requested: seq of the message of the conversation that it names, or null. */
  namedSeqs(conversationId: number, names: readonly EventName[]): (number | null)[];
  /** The event ids of a session for messages of other sessions, ordered by id. */
  borrowedNames(owner: string, sessionId: string): Pick<Row<"event_ids">, "event_id" | "message_id">[];
  /** How many event ids the sessions of a conversation have for its messages; those of forks are not counted. */
  countOwnNames(conversationId: number): number;
}

/** Every read by its name; the compiler ensures that none is missing. */
const NAMES: Readonly<Record<keyof Reads, true>> = {
  placements: true,
  lockHeads: true,
  chainAt: true,
  ids: true,
  turns: true,
  versions: true,
  sessions: true,
  events: true,
  allEvents: true,
  messagesAt: true,
  sessionsWithEvents: true,
  conversationsBegun: true,
  hiddenFor: true,
  boundaries: true,
  shownBefore: true,
  active: true,
  files: true,
  calibrations: true,
  cacheUsage: true,
  covering: true,
  run: true,
  itemsAround: true,
  summaries: true,
  contents: true,
  withPrevious: true,
  sources: true,
  placedSources: true,
  currentSources: true,
  derivedFrom: true,
  forgettable: true,
  filesOnlyOf: true,
  summariesAbove: true,
  madeAhead: true,
  staleSummaries: true,
  page: true,
  rows: true,
  count: true,
  content: true,
  arrivals: true,
  firstVersions: true,
  sourceSpans: true,
  namedSeqs: true,
  borrowedNames: true,
  countOwnNames: true,
};

export const READ_NAMES = Object.keys(NAMES) as readonly (keyof Reads)[];
