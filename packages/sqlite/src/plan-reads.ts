/** Answers the questions of plans directly from the connection, inside the plan's transaction. */
import { ATTACHMENT_PREFIX, EVENT_KIND, HIDDEN, must, PAGE_ROWS } from "@lossless/core/adapter";
import type { SessionRef } from "@lossless/core/adapter";
import type {
  Blobs,
  Arrival,
  Covering,
  EventName,
  FirstVersion,
  ForgettableVersion,
  HeadRow,
  HideableMessage,
  ItemPoint,
  KeysQuery,
  MessageAt,
  NamedMessage,
  NumberedTable,
  PageQuery,
  CoverPoint,
  PlacedLink,
  Reads,
  RunRow,
  SessionPlacements,
  SourceLink,
  SourceSpan,
  SummarySpan,
  TouchedSummary,
  Version,
  Row,
  TableName,
  Values,
} from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import { readNextId } from "./next-id.ts";
import type { ReservedIds } from "./next-id.ts";
import { renderCount, renderKeys, renderPage } from "./table-reads.ts";

const HEAD = `
  c.conversation_id, c.session_id, c.head_seq, c.head_chain, c.message_count, c.shown_messages, c.shown_tokens, c.arrival_bytes,
  c.last_position, c.first_at, c.last_at, c.summary_count, c.fold_revision, c.epoch_seq, c.archived_at, c.owner`;
const SELECT_HEAD = `SELECT ${HEAD} FROM conversations c WHERE conversation_id = ?`;
const SELECT_ACTIVE = `SELECT ${HEAD} FROM conversations c WHERE owner = ? AND session_key = ? AND archived_at IS NULL`;
const SELECT_SESSION = "SELECT session_ref FROM sessions WHERE owner = ? AND session_id = ?";
/** In one statement: every turn needs it. */
const SELECT_PLACE = `
  SELECT s.session_ref, s.base_tokens, p.start_position, p.base_position, ${HEAD}
  FROM sessions s LEFT JOIN placements p USING (session_ref) LEFT JOIN conversations c USING (conversation_id)
  WHERE s.owner = ? AND s.session_id = ? ORDER BY p.start_position DESC`;
const CHAIN_AT = `
  SELECT chain FROM messages WHERE conversation_id = ?1 AND seq = ?2
  UNION ALL SELECT chain FROM ledger WHERE conversation_id = ?1 AND seq = ?2`;
const SELECT_TURN = "SELECT advancement_key FROM turns WHERE advancement_key = ?";
const SELECT_EVENT = "SELECT message_id FROM event_ids WHERE session_ref = ? AND event_id = ?";
const SELECT_EVENTS = `
  SELECT event_id, message_id FROM event_ids
  WHERE session_ref = ? AND event_id IN (SELECT value FROM json_each(?))`;
const SELECT_VERSIONS = `
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.salt, m.commitment, m.forgotten_at, r.key_id, r.keyed, r.sealed
  FROM messages m LEFT JOIN redactions r USING (message_id) WHERE m.message_id = ?1 OR m.revises = ?1 ORDER BY m.seq`;
const SELECT_SESSION_ROW = `
  SELECT session_ref, owner, session_id, cursor, last_event, base_tokens FROM sessions WHERE owner = ? AND session_id = ?`;
const HIDEABLE = "m.message_id, m.conversation_id, m.seq, m.position, m.hidden_now, m.newest";
const SELECT_NAMED = `
  SELECT e.kind, ${HIDEABLE} FROM event_ids e JOIN messages m USING (message_id) WHERE e.session_ref = ? AND e.event_id = ?`;
const ALL_NAMED = `
  SELECT e.event_id, e.kind, ${HIDEABLE} FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref = ? ORDER BY m.conversation_id, m.seq, e.event_id`;
const MESSAGE_AT = `SELECT ${HIDEABLE}, m.revises FROM messages m WHERE m.conversation_id = ?1 AND m.seq = ?2`;
const HAS_EVENTS = "SELECT session_ref FROM event_ids WHERE session_ref = ? LIMIT 1";
const BEGUN = `
  SELECT ${HEAD} FROM conversations c WHERE c.owner = ? AND c.session_key = ? AND c.created_at = ? ORDER BY c.conversation_id`;
const HIDDEN_FOR = `
  SELECT DISTINCT ${HIDEABLE} FROM placements p JOIN messages m ON m.conversation_id = p.conversation_id
  WHERE p.session_ref = ?1 AND (m.hidden_now & ?2) <> 0 AND m.revises IS NULL AND (m.session_ref = ?1 OR EXISTS (
    SELECT 1 FROM event_ids e WHERE e.session_ref = ?1 AND e.event_id = m.event_id AND e.message_id = m.message_id))`;
const SELECT_BOUNDARY = `
  SELECT conversation_id, session_ref, event_id, position, reason, retain_depth, shown_before, at, undone_at
  FROM boundaries WHERE session_ref = ? AND event_id = ?`;
const SHOWN_BEFORE = `
  SELECT coalesce(sum(messages), 0) AS n FROM context_items WHERE conversation_id = ? AND start_pos < ? AND hidden = 0`;
const SELECT_FILE = "SELECT * FROM large_files WHERE file_id = ?";
const SELECT_CALIBRATION = "SELECT model, factor, samples, updated_at FROM token_calibration WHERE model = ?";
const SELECT_USAGE = "SELECT * FROM cache_usage WHERE conversation_id = ?";
const ITEM_BEFORE = `
  SELECT conversation_id, start_pos, seq, end_pos, message_id, summary_id, tokens, messages, depth, hidden FROM context_items
  WHERE conversation_id = ?1 AND (start_pos, seq) <= (?2, ?3) ORDER BY start_pos DESC, seq DESC LIMIT 1`;
const RUN = `
  SELECT i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden,
         coalesce(m.newest, m.message_id) AS version_id, coalesce(m.created_at, s.earliest_at) AS earliest_at,
         coalesce(m.created_at, s.latest_at) AS latest_at, coalesce(m.dated, 1) AS dated, s.descendant_count, s.end_seq, s.stale
  FROM context_items i LEFT JOIN messages m ON m.message_id = i.message_id LEFT JOIN summaries s ON s.summary_id = i.summary_id
  WHERE i.conversation_id = ?1 AND (i.start_pos, i.seq) >= (?2, ?3) AND (i.start_pos, i.seq) <= (?4, ?5)
  ORDER BY i.start_pos, i.seq`;
const ITEMS_AROUND = `
  SELECT count(*) FILTER (WHERE (start_pos, seq) < (?2, ?3)) AS before, count(*) FILTER (WHERE (start_pos, seq) > (?2, ?3)) AS behind
  FROM context_items WHERE conversation_id = ?1`;
const SPAN = `
  summary_id, conversation_id, depth, state, start_pos, start_seq, end_pos, end_seq, messages, descendant_count, tokens, earliest_at, latest_at, stale, is_root`;
const SUMMARY = `SELECT ${SPAN} FROM summaries WHERE summary_id = ?`;
const CONTENT = "SELECT summary_id, conversation_id, content FROM summaries WHERE summary_id = ?";
const WITH_PREVIOUS = `
  SELECT summary_id, start_pos, start_seq, previous_id FROM summaries WHERE conversation_id = ? AND previous_id IS NOT NULL`;
const SOURCES = `
  SELECT summary_id, ordinal, message_id, NULL AS source_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT summary_id, ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY ordinal`;
const PLACED_SOURCES = `
  SELECT l.summary_id, l.ordinal, l.message_id, NULL AS source_id, m.position, m.seq
  FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.summary_id, p.ordinal, NULL, p.parent_summary_id, s.start_pos, s.start_seq
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1 ORDER BY 2`;
const SOURCE_AROUND = `
  SELECT ${SPAN} FROM summaries WHERE summary_id = (
    SELECT s.summary_id FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE p.summary_id = ?1 AND (s.start_pos, s.start_seq) <= (?2, ?3) AND (s.end_pos, s.end_seq) >= (?2, ?3))`;
/** The current sources of a summary. */
const CURRENT_SOURCES = `
  SELECT l.ordinal, m.position AS start_pos, m.seq, m.position AS end_pos, m.message_id, NULL AS summary_id,
         coalesce(n.tokens, m.tokens) AS tokens, 1 AS messages, -1 AS depth, m.hidden_now AS hidden,
         coalesce(m.newest, m.message_id) AS version_id, m.created_at AS earliest_at, m.created_at AS latest_at, m.dated,
         NULL AS descendant_count, NULL AS end_seq, 0 AS stale
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest
  WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.ordinal, s.start_pos, s.start_seq, s.end_pos, NULL, s.summary_id, s.tokens, s.messages, s.depth,
         CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, NULL, s.earliest_at, s.latest_at, 1, s.descendant_count, s.end_seq, s.stale
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1 ORDER BY 1`;
const DERIVED =
  "SELECT summary_id, ordinal, parent_summary_id FROM summary_parents WHERE parent_summary_id = ?";
/** All versions of the events that the given ids belong to, and of their attachments: `media:<event id>:<number>`. */
const FORGETTABLE = `
  WITH named AS (SELECT DISTINCT coalesce(m.revises, m.message_id) AS id FROM json_each(?1) j JOIN messages m ON m.message_id = j.value),
  attachments AS (
    SELECT a.message_id, a.session_ref, rtrim(substr(a.event_id, length('${ATTACHMENT_PREFIX}') + 1), '0123456789') AS owner
    FROM event_ids a
    WHERE a.session_ref IN (SELECT m.session_ref FROM named n JOIN messages m ON m.message_id = n.id)
      AND a.event_id >= '${ATTACHMENT_PREFIX}' AND a.event_id < '${ATTACHMENT_PREFIX}' || char(1114111)),
  firsts AS (
    SELECT id FROM named
    UNION SELECT a.message_id FROM attachments a
      JOIN event_ids o ON o.session_ref = a.session_ref AND o.event_id = substr(a.owner, 1, length(a.owner) - 1)
      WHERE o.message_id IN (SELECT id FROM named))
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.revises, m.newest, m.hidden_now, m.arrival_bytes
  FROM firsts f JOIN messages m ON m.message_id = f.id OR m.revises = f.id
  WHERE m.forgotten_at IS NULL ORDER BY m.conversation_id, m.seq`;
const FILES_ONLY_OF = `
  SELECT DISTINCT f.*
  FROM json_each(?1) j JOIN message_parts p ON p.message_id = j.value JOIN large_files f ON f.file_id = p.file_id
  WHERE NOT EXISTS (SELECT 1 FROM message_parts o WHERE o.file_id = f.file_id AND o.message_id NOT IN (SELECT value FROM json_each(?1)))
  ORDER BY f.file_id`;
/** Every summary above the messages, at any height and in any state. */
const SUMMARIES_ABOVE = `
  WITH RECURSIVE touched (id) AS (
    SELECT l.summary_id FROM json_each(?1) j JOIN summary_messages l ON l.message_id = j.value
    UNION SELECT value FROM json_each(?2)
    UNION SELECT p.summary_id FROM touched t JOIN summary_parents p ON p.parent_summary_id = t.id)
  SELECT s.summary_id, s.conversation_id, s.kind, s.depth, s.state, s.tokens, s.model, s.level, s.created_at, s.previous_id FROM touched t JOIN summaries s ON s.summary_id = t.id
  ORDER BY s.depth, s.conversation_id, s.start_pos, s.summary_id`;
const MADE_AHEAD = `SELECT ${SPAN} FROM summaries WHERE conversation_id = ? AND state IN ('prepared', 'reserve')`;
const STALE = `
  SELECT ${SPAN} FROM summaries INDEXED BY stale_summaries WHERE conversation_id = ? AND state = 'cover' AND stale = 1`;

const ARRIVALS = `
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.event_id, m.revises, m.newest, m.role, m.tokens, m.created_at, m.hidden,
         m.hidden_now, m.arrival_bytes, m.encoding, m.body, m.salt, m.commitment, m.chain, m.forgotten_at, m.dated, s.session_id,
         (SELECT r.seq FROM messages r WHERE r.message_id = m.revises) AS revises_seq, e.message_id AS event_message,
         (SELECT max(r.message_id) FROM messages r WHERE r.revises = m.message_id) AS last_revision
  FROM messages m JOIN sessions s USING (session_ref)
  LEFT JOIN event_ids e ON e.session_ref = m.session_ref AND e.event_id = m.event_id
  WHERE m.conversation_id = ? AND m.seq > ? ORDER BY m.seq LIMIT ${PAGE_ROWS}`;
/** Bodies of a page. */
const MAX_PAGE_BYTES = 16_000_000;
const FIRST_VERSIONS = `
  SELECT m.message_id, m.position, m.seq, m.hidden, m.hidden_now, coalesce(n.tokens, m.tokens) AS tokens
  FROM messages m LEFT JOIN messages n ON n.message_id = m.newest
  WHERE m.conversation_id = ? AND m.revises IS NULL AND (m.position, m.seq) > (?, ?)
  ORDER BY m.position, m.seq LIMIT ?`;
const SOURCE_SPANS = `
  SELECT l.summary_id, l.ordinal, m.position AS start_pos, m.seq AS start_seq, m.position AS end_pos, m.seq AS end_seq, m.hidden_now,
         NULL AS depth, NULL AS messages, NULL AS descendant_count, NULL AS stale
  FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ?1
  UNION ALL
  SELECT p.summary_id, p.ordinal, s.start_pos, s.start_seq, s.end_pos, s.end_seq, NULL, s.depth, s.messages, s.descendant_count, s.stale
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1
  ORDER BY 2`;
const NAMED_SEQ = `
  SELECT m.seq FROM event_ids e JOIN sessions s USING (session_ref) JOIN messages m USING (message_id)
  WHERE s.session_id = ? AND e.event_id = ? AND m.conversation_id = ?`;
const BORROWED_NAMES = `
  SELECT e.event_id, e.message_id FROM event_ids e JOIN sessions s USING (session_ref) JOIN messages m USING (message_id)
  WHERE s.owner = ? AND s.session_id = ? AND e.kind = ${EVENT_KIND.alias} AND m.session_ref <> e.session_ref ORDER BY e.event_id`;
/** Names are found by their session: of all names, only those of sessions that the conversation was held in. */
const COUNT_OWN_NAMES = `
  SELECT count(*) AS n FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref IN (
      SELECT session_ref FROM messages WHERE conversation_id = ?1 UNION SELECT session_ref FROM placements WHERE conversation_id = ?1)
    AND m.conversation_id = ?1 AND (e.session_ref = m.session_ref OR EXISTS (
    SELECT 1 FROM placements p WHERE p.session_ref = e.session_ref AND p.conversation_id = ?1))`;

/** As arrays, which cost half as much as objects. */
type HeadTuple = readonly [
  conversationId: number,
  sessionId: string,
  headSeq: number,
  headChain: Uint8Array,
  messageCount: number,
  shownMessages: number,
  shownTokens: number,
  arrivalBytes: number,
  lastPosition: number,
  firstAt: number | null,
  lastAt: number | null,
  summaryCount: number,
  foldRevision: number,
  epochSeq: number,
  archivedAt: number | null,
  owner: string,
];
type PlacementTuple = readonly [
  sessionRef: number,
  baseTokens: number | null,
  startPosition: number | null,
  basePosition: number | null,
  /** Of a session with a placement. */
  ...head: HeadTuple,
];

const toHead = (row: HeadTuple): HeadRow => ({
  conversation_id: row[0],
  session_id: row[1],
  head_seq: row[2],
  head_chain: row[3],
  message_count: row[4],
  shown_messages: row[5],
  shown_tokens: row[6],
  arrival_bytes: row[7],
  last_position: row[8],
  first_at: row[9],
  last_at: row[10],
  summary_count: row[11],
  fold_revision: row[12],
  epoch_seq: row[13],
  archived_at: row[14],
  owner: row[15],
});

/** Up to this many, single queries are faster. */
const FEW_EVENTS = 16;

export class PlanReads implements Reads {
  readonly #connection: Connection;
  #session: { readonly owner: string; readonly id: string; readonly ref: number } | null = null;

  readonly #files: Pick<Blobs, "read"> | null;
  readonly #reserved: ReservedIds | null;

  /** Only proofs read large files. Ids come from this archive unless they were reserved in another. */
  constructor(
    connection: Connection,
    files: Pick<Blobs, "read"> | null = null,
    reserved: ReservedIds | null = null,
  ) {
    this.#connection = connection;
    this.#files = files;
    this.#reserved = reserved;
  }

  placements({ owner, id, key }: SessionRef): SessionPlacements {
    const rows = this.#connection.list<PlacementTuple>(SELECT_PLACE, owner, id);
    const [first] = rows;
    if (first === undefined) return { session: null, placements: [], head: this.active(owner, key) };
    const [session_ref, base_tokens, , , ...newest] = first;
    this.#session = { owner, id, ref: session_ref };
    const placements = rows.flatMap(([, , start_position, base_position, conversation_id]) =>
      start_position === null || base_position === null
        ? []
        : [{ session_ref, start_position, conversation_id, base_position }],
    );
    const head = placements.length > 0 ? toHead(newest) : this.active(owner, key);
    return { session: { session_ref, base_tokens }, placements, head };
  }

  active(owner: string, key: string): HeadRow | null {
    return this.#connection.list<HeadTuple>(SELECT_ACTIVE, owner, key).map(toHead)[0] ?? null;
  }

  /** Several questions of the same set need it, and it is read once. */
  #findSession(owner: string, id: string): number | null {
    if (this.#session?.owner === owner && this.#session.id === id) return this.#session.ref;
    return this.#connection.get<{ session_ref: number }>(SELECT_SESSION, owner, id)?.session_ref ?? null;
  }

  /** The write transaction is the lock. */
  lockHeads(conversationIds: readonly number[]): HeadRow[] {
    return conversationIds.flatMap((id) => this.#connection.list<HeadTuple>(SELECT_HEAD, id).map(toHead));
  }

  chainAt(conversationId: number, seq: number): Uint8Array | null {
    return this.#connection.get<{ chain: Uint8Array }>(CHAIN_AT, conversationId, seq)?.chain ?? null;
  }

  ids(table: NumberedTable, count: number): number[] {
    if (count === 0) return [];
    const first = this.#reserved?.take(table, count) ?? readNextId(this.#connection, table);
    return Array.from({ length: count }, (_, i) => first + i);
  }

  turns(keys: readonly string[]): string[] {
    return this.#each<{ advancement_key: string }>(SELECT_TURN, keys).map((row) => row.advancement_key);
  }

  versions({ owner, id }: SessionRef, eventIds: readonly string[]): Version[] {
    const sessionRef = this.#findSession(owner, id);
    if (sessionRef === null) return [];
    return this.#findEvents(sessionRef, [...new Set(eventIds)]).flatMap(([event_id, messageId]) =>
      this.#connection
        .all<Omit<Version, "event_id">>(SELECT_VERSIONS, messageId)
        .map((row) => ({ ...row, event_id })),
    );
  }

  /** A turn queries each of its few events, an import all of a batch at once: hundreds of queries take longer than storing. */
  #findEvents(sessionRef: number, eventIds: readonly string[]): [eventId: string, messageId: number][] {
    const isMany = eventIds.length > FEW_EVENTS;
    const apart = isMany ? eventIds.filter((eventId) => !isPlain(eventId)) : eventIds;
    const found = apart.flatMap((eventId): [string, number][] => {
      const row = this.#connection.get<{ message_id: number }>(SELECT_EVENT, sessionRef, eventId);
      return row === undefined ? [] : [[eventId, row.message_id]];
    });
    if (!isMany) return found;
    const asked = JSON.stringify(eventIds.filter(isPlain));
    return [...found, ...this.#connection.list<[string, number]>(SELECT_EVENTS, sessionRef, asked)];
  }

  sessions(owner: string, sessionIds: readonly string[]): Row<"sessions">[] {
    return sessionIds.flatMap((id) => this.#connection.all<Row<"sessions">>(SELECT_SESSION_ROW, owner, id));
  }

  events(session: SessionRef, eventIds: readonly string[]): NamedMessage[] {
    return this.#eachEvent<NamedMessage>(SELECT_NAMED, session, eventIds);
  }

  allEvents(sessionRef: number): NamedMessage[] {
    return this.#connection.all<NamedMessage>(ALL_NAMED, sessionRef);
  }

  messagesAt(conversationId: number, seqs: readonly number[]): MessageAt[] {
    return seqs.flatMap((seq) => this.#connection.all<MessageAt>(MESSAGE_AT, conversationId, seq));
  }

  sessionsWithEvents(sessionRefs: readonly number[]): number[] {
    return this.#each<{ session_ref: number }>(HAS_EVENTS, sessionRefs).map((row) => row.session_ref);
  }

  conversationsBegun(owner: string, key: string, at: number): HeadRow[] {
    return this.#connection.list<HeadTuple>(BEGUN, owner, key, at).map(toHead);
  }

  hiddenFor({ owner, id }: SessionRef, reasons: number): HideableMessage[] {
    const ref = this.#findSession(owner, id);
    return ref === null ? [] : this.#connection.all<HideableMessage>(HIDDEN_FOR, ref, reasons);
  }

  boundaries(session: SessionRef, eventIds: readonly string[]): Row<"boundaries">[] {
    return this.#eachEvent<Row<"boundaries">>(SELECT_BOUNDARY, session, eventIds);
  }

  /** Under the requested id: not every id comes out of the database as it went in. */
  #eachEvent<T>(sql: string, { owner, id }: SessionRef, eventIds: readonly string[]): T[] {
    const ref = this.#findSession(owner, id);
    if (ref === null) return [];
    return eventIds.flatMap((event_id) =>
      this.#connection.all<T>(sql, ref, event_id).map((row) => ({ ...row, event_id })),
    );
  }

  shownBefore(conversationId: number, position: number): number {
    return this.#connection.get<{ n: number }>(SHOWN_BEFORE, conversationId, position)?.n ?? 0;
  }

  files(fileIds: readonly string[]): Row<"large_files">[] {
    return this.#each(SELECT_FILE, fileIds);
  }

  calibrations(models: readonly string[]): Row<"token_calibration">[] {
    return this.#each(SELECT_CALIBRATION, models);
  }

  cacheUsage(conversationIds: readonly number[]): Row<"cache_usage">[] {
    return this.#each(SELECT_USAGE, conversationIds);
  }

  covering(points: readonly CoverPoint[]): Covering[] {
    return points.map(({ conversationId, position, seq }) => {
      const item =
        this.#connection.get<Row<"context_items">>(ITEM_BEFORE, conversationId, position, seq) ?? null;
      const isAround = item !== null && item.summary_id !== null && position <= item.end_pos;
      return { item, path: isAround ? this.#findPath(item.summary_id, position, seq) : [] };
    });
  }

  #findPath(topId: string | null, position: number, seq: number): SummarySpan[] {
    const path = topId === null ? [] : this.summaries([topId]);
    for (let lowest = path[0]; lowest !== undefined;) {
      lowest = this.#connection.get<SummarySpan>(SOURCE_AROUND, lowest.summary_id, position, seq);
      if (lowest) path.push(lowest);
    }
    return path;
  }

  run(conversationId: number, first: ItemPoint, last: ItemPoint): RunRow[] {
    const range = [first.startPosition, first.seq, last.startPosition, last.seq] as const;
    return this.#connection.all<RunRow>(RUN, conversationId, ...range);
  }

  itemsAround(conversationId: number, { startPosition, seq }: ItemPoint): { before: number; behind: number } {
    const point = [conversationId, startPosition, seq] as const;
    return (
      this.#connection.get<{ before: number; behind: number }>(ITEMS_AROUND, ...point) ?? {
        before: 0,
        behind: 0,
      }
    );
  }

  summaries(summaryIds: readonly string[]): SummarySpan[] {
    return this.#each(SUMMARY, summaryIds);
  }

  contents(summaryIds: readonly string[]): ReturnType<Reads["contents"]> {
    return this.#each(CONTENT, summaryIds);
  }

  withPrevious(conversationId: number): ReturnType<Reads["withPrevious"]> {
    return this.#connection.all<ReturnType<Reads["withPrevious"]>[number]>(WITH_PREVIOUS, conversationId);
  }

  sources(summaryIds: readonly string[]): SourceLink[] {
    return this.#each(SOURCES, summaryIds);
  }

  placedSources(summaryIds: readonly string[]): PlacedLink[] {
    return this.#each(PLACED_SOURCES, summaryIds);
  }

  currentSources(summaryId: string): RunRow[] {
    return this.#connection.all<RunRow>(CURRENT_SOURCES, summaryId);
  }

  derivedFrom(summaryId: string): Row<"summary_parents">[] {
    return this.#connection.all<Row<"summary_parents">>(DERIVED, summaryId);
  }

  forgettable(messageIds: readonly number[]): ForgettableVersion[] {
    return this.#connection.all<ForgettableVersion>(FORGETTABLE, JSON.stringify(messageIds));
  }

  filesOnlyOf(messageIds: readonly number[]): Row<"large_files">[] {
    return this.#connection.all<Row<"large_files">>(FILES_ONLY_OF, JSON.stringify(messageIds));
  }

  summariesAbove(messageIds: readonly number[], summaryIds: readonly string[]): TouchedSummary[] {
    const asked = [JSON.stringify(messageIds), JSON.stringify(summaryIds)] as const;
    return this.#connection.all<TouchedSummary>(SUMMARIES_ABOVE, ...asked);
  }

  madeAhead(conversationId: number): SummarySpan[] {
    return this.#connection.all<SummarySpan>(MADE_AHEAD, conversationId);
  }

  staleSummaries(conversationId: number): SummarySpan[] {
    return this.#connection.all<SummarySpan>(STALE, conversationId);
  }

  page(query: PageQuery): Values[] {
    const { sql, values } = renderPage(query);
    return this.#connection.all<Values>(sql, ...values);
  }

  rows(query: KeysQuery): Values[] {
    if (query.keys.length === 0) return [];
    const { sql, values } = renderKeys(query);
    return this.#connection.all<Values>(sql, ...values);
  }

  count(table: TableName, where: Values): number {
    const { sql, values } = renderCount(table, where);
    return this.#connection.get<{ n: number }>(sql, ...values)?.n ?? 0;
  }

  content(blob: string): Uint8Array | null {
    return must(this.#files, "the files of the archive").read(blob);
  }

  arrivals(conversationId: number, afterSeq: number): Arrival[] {
    const page: Arrival[] = [];
    let bytes = 0;
    for (const row of this.#connection.each<Arrival>(ARRIVALS, conversationId, afterSeq)) {
      page.push(row);
      bytes += row.body.byteLength;
      if (bytes > MAX_PAGE_BYTES) break;
    }
    return page;
  }

  firstVersions(
    conversationId: number,
    { position, seq }: { readonly position: number; readonly seq: number },
    limit: number,
  ): FirstVersion[] {
    return this.#connection.all<FirstVersion>(FIRST_VERSIONS, conversationId, position, seq, limit);
  }

  sourceSpans(summaryIds: readonly string[]): SourceSpan[] {
    return this.#each(SOURCE_SPANS, summaryIds);
  }

  namedSeqs(conversationId: number, names: readonly EventName[]): (number | null)[] {
    return names.map(
      ({ sessionId, eventId }) =>
        this.#connection.get<{ seq: number }>(NAMED_SEQ, sessionId, eventId, conversationId)?.seq ?? null,
    );
  }

  borrowedNames(owner: string, sessionId: string): Pick<Row<"event_ids">, "event_id" | "message_id">[] {
    return this.#connection.all(BORROWED_NAMES, owner, sessionId);
  }

  countOwnNames(conversationId: number): number {
    return this.#connection.get<{ n: number }>(COUNT_OWN_NAMES, conversationId)?.n ?? 0;
  }

  /** One query for each key: for the few keys of a write, that is faster than a set. */
  #each<T>(sql: string, keys: readonly (string | number)[]): T[] {
    return keys.flatMap((key) => this.#connection.all<T>(sql, key));
  }
}

/** Other ids do not come out of JSON, or of the database, as they went in. */
const isPlain = (eventId: string): boolean => eventId.isWellFormed() && !eventId.includes("\0");
