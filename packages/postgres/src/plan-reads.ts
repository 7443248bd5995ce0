/**
 * The reads of plans, answered by the server inside the transaction of the plan. Each read sends its statements at once, so that a set of them
 * takes one round trip. A lock is a separate statement before the reads: a statement sees the state at its start, and one that waited for a lock
 * started before it had it.
 */
import { ATTACHMENT_PREFIX, Conflict, EVENT_KIND, HIDDEN, PAGE_ROWS } from "@lossless/core/adapter";
import type { SessionRef } from "@lossless/core/adapter";
import type {
  Arrival,
  CalibrationRow,
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
  ReadsLater,
  Row,
  RunRow,
  SessionPlacements,
  SourceLink,
  SourceSpan,
  SummarySpan,
  TableName,
  TouchedSummary,
  Values,
  Version,
} from "@lossless/core/ports";
import type { Files } from "./blobs.ts";
import type { Sql, Statement } from "./connection.ts";
import type { SqlValue } from "./sql-values.ts";
import { renderCount, renderKeys, renderPage } from "./table-reads.ts";

/** Others may refer to a locked head; nobody else may change it. */
const LOCK = " FOR NO KEY UPDATE OF c";
const LOCK_FREE = `${LOCK} SKIP LOCKED`;
const HEAD = `
  c.conversation_id, c.session_id, c.head_seq, c.head_chain, c.message_count, c.shown_messages, c.shown_tokens, c.arrival_bytes,
  c.last_position, c.first_at, c.last_at, c.summary_count, c.fold_revision, c.epoch_seq, c.archived_at, c.owner`;
const HEADS = `SELECT ${HEAD} FROM conversations c WHERE c.conversation_id = ANY($1::bigint[]) ORDER BY c.conversation_id`;
const ACTIVE = `SELECT ${HEAD} FROM conversations c WHERE c.owner = $1 AND c.session_key = $2 AND c.archived_at IS NULL`;
const ACTIVE_ID =
  "SELECT conversation_id FROM conversations WHERE owner = $1 AND session_key = $2 AND archived_at IS NULL";
/** The session that $1 and $2 name. */
const SESSION = "(SELECT session_ref FROM sessions WHERE owner = $1 AND session_id = $2)";
/** The conversation that a session is in. */
const PLACE_HEAD = `
  SELECT ${HEAD} FROM conversations c WHERE c.conversation_id =
    (SELECT p.conversation_id FROM placements p WHERE p.session_ref = ${SESSION} ORDER BY p.start_position DESC LIMIT 1)`;
const PLACEMENTS = `
  SELECT s.session_ref, s.base_tokens, p.start_position, p.base_position, p.conversation_id
  FROM sessions s LEFT JOIN placements p USING (session_ref)
  WHERE s.owner = $1 AND s.session_id = $2 ORDER BY p.start_position DESC`;
const NEXT_IDS: Readonly<Record<NumberedTable, string>> = {
  sessions: "SELECT nextval('sessions_ids') AS id FROM generate_series(1, $1::int)",
  conversations: "SELECT nextval('conversations_ids') AS id FROM generate_series(1, $1::int)",
  messages: "SELECT nextval('messages_ids') AS id FROM generate_series(1, $1::int)",
  spend: "SELECT nextval('spend_ids') AS id FROM generate_series(1, $1::int)",
};
const CHAIN_AT = `
  SELECT chain FROM messages WHERE conversation_id = $1 AND seq = $2
  UNION ALL SELECT chain FROM ledger WHERE conversation_id = $1 AND seq = $2`;
const TURNS = "SELECT advancement_key FROM turns WHERE advancement_key = ANY($1::text[])";
/** `place` numbers the requested ids: not every id is returned by the database exactly as sent. */
const ASKED = "unnest($3::text[]) WITH ORDINALITY a (event_id, place)";
/** The message of each requested id, or null. Each is looked up by its key: for a join, the server may read all ids of the session. */
export const findEvents = (session: string): string =>
  `SELECT a.place, (SELECT e.message_id FROM event_ids e WHERE e.session_ref = ${session} AND e.event_id = a.event_id) AS message_id FROM ${ASKED}`;
const EVENTS = findEvents(SESSION);
const VERSIONS = `
  SELECT m.message_id, m.revises, m.conversation_id, m.seq, m.position, m.salt, m.commitment, m.forgotten_at, r.key_id, r.keyed, r.sealed
  FROM messages m LEFT JOIN redactions r ON r.message_id = m.message_id
  WHERE m.message_id = ANY($1::bigint[]) OR m.revises = ANY($1::bigint[]) ORDER BY m.seq`;
const SESSIONS = `
  SELECT session_ref, owner, session_id, cursor, last_event, base_tokens FROM sessions
  WHERE owner = $1 AND session_id = ANY($2::text[])`;
const HIDEABLE = "m.message_id, m.conversation_id, m.seq, m.position, m.hidden_now, m.newest";
const NAMED = `
  SELECT a.place, e.kind, ${HIDEABLE} FROM ${ASKED}
  JOIN event_ids e ON e.session_ref = ${SESSION} AND e.event_id = a.event_id JOIN messages m USING (message_id) ORDER BY a.place`;
const ALL_NAMED = `
  SELECT e.event_id, e.kind, ${HIDEABLE} FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref = $1 ORDER BY m.conversation_id, m.seq, e.event_id`;
const MESSAGES_AT = `
  SELECT ${HIDEABLE}, m.revises FROM messages m WHERE m.conversation_id = $1 AND m.seq = ANY($2::bigint[]) ORDER BY m.seq`;
const WITH_EVENTS = `
  SELECT r.ref FROM unnest($1::bigint[]) r (ref) WHERE EXISTS (SELECT 1 FROM event_ids e WHERE e.session_ref = r.ref)`;
const BEGUN = `
  SELECT ${HEAD} FROM conversations c WHERE c.owner = $1 AND c.session_key = $2 AND c.created_at = $3 ORDER BY c.conversation_id`;
const HIDDEN_FOR = `
  SELECT DISTINCT ${HIDEABLE} FROM placements p JOIN messages m ON m.conversation_id = p.conversation_id
  WHERE p.session_ref = ${SESSION} AND (m.hidden_now & $3::bigint) <> 0 AND m.revises IS NULL AND (m.session_ref = p.session_ref OR EXISTS (
    SELECT 1 FROM event_ids e WHERE e.session_ref = p.session_ref AND e.event_id = m.event_id AND e.message_id = m.message_id))`;
const BOUNDARIES = `
  SELECT a.place, b.conversation_id, b.session_ref, b.position, b.reason, b.retain_depth, b.shown_before, b.at, b.undone_at
  FROM ${ASKED} JOIN boundaries b ON b.session_ref = ${SESSION} AND b.event_id = a.event_id ORDER BY a.place`;
const SHOWN_BEFORE = `
  SELECT coalesce(sum(messages), 0) AS n FROM context_items WHERE conversation_id = $1 AND start_pos < $2 AND hidden = 0`;
const FILES = "SELECT * FROM large_files WHERE file_id = ANY($1::text[])";
const CALIBRATIONS = `
  SELECT model, factor, samples, updated_at FROM token_calibration WHERE model = ANY($1::text[])`;
/** Every turn of every conversation updates the same few rows: a transaction that finds one locked skips it. */
const CALIBRATIONS_LOCKED = `
  WITH own AS MATERIALIZED (SELECT * FROM token_calibration WHERE model = ANY($1::text[]) ORDER BY model FOR NO KEY UPDATE SKIP LOCKED)
  SELECT t.model, coalesce(o.factor, t.factor) AS factor, coalesce(o.samples, t.samples) AS samples, t.updated_at, o.model IS NULL AS "isBusy"
  FROM token_calibration t LEFT JOIN own o USING (model) WHERE t.model = ANY($1::text[])`;
const USAGE = "SELECT * FROM cache_usage WHERE conversation_id = ANY($1::bigint[])";
const ITEM =
  "i.conversation_id, i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden";
const POINTS =
  "unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY a (conversation_id, position, seq, place)";
const ITEM_BEFORE = `
  LATERAL (SELECT ${ITEM} FROM context_items i
    WHERE i.conversation_id = a.conversation_id AND (i.start_pos, i.seq) <= (a.position, a.seq)
    ORDER BY i.start_pos DESC, i.seq DESC LIMIT 1) i`;
const ITEMS_BEFORE = `SELECT a.place, ${ITEM} FROM ${POINTS} CROSS JOIN ${ITEM_BEFORE} ORDER BY a.place`;
const SPAN_COLUMNS = [
  "summary_id",
  "conversation_id",
  "depth",
  "state",
  "start_pos",
  "start_seq",
  "end_pos",
  "end_seq",
  "messages",
  "descendant_count",
  "tokens",
  "earliest_at",
  "latest_at",
  "stale",
  "is_root",
];
const SPAN = SPAN_COLUMNS.map((column) => `s.${column}`).join(", ");
/** From the summary above a place down to the lowest that contains it. */
const PATHS = `
  WITH RECURSIVE path (place, position, seq, summary_id, level) AS (
    SELECT a.place, a.position, a.seq, i.summary_id, 0 FROM ${POINTS} CROSS JOIN ${ITEM_BEFORE}
    WHERE i.summary_id IS NOT NULL AND a.position <= i.end_pos
    UNION ALL
    SELECT path.place, path.position, path.seq, below.summary_id, path.level + 1
    FROM path CROSS JOIN LATERAL (
      SELECT b.summary_id FROM summary_parents p JOIN summaries b ON b.summary_id = p.parent_summary_id
      WHERE p.summary_id = path.summary_id AND (b.start_pos, b.start_seq) <= (path.position, path.seq)
        AND (b.end_pos, b.end_seq) >= (path.position, path.seq) LIMIT 1) below)
  SELECT path.place, ${SPAN} FROM path JOIN summaries s ON s.summary_id = path.summary_id ORDER BY path.place, path.level`;
const RUN = `
  SELECT i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden,
         coalesce(m.newest, m.message_id) AS version_id, coalesce(m.created_at, s.earliest_at) AS earliest_at,
         coalesce(m.created_at, s.latest_at) AS latest_at, coalesce(m.dated, 1) AS dated, s.descendant_count, s.end_seq, s.stale
  FROM context_items i LEFT JOIN messages m ON m.message_id = i.message_id AND m.conversation_id = i.conversation_id
  LEFT JOIN summaries s ON s.summary_id = i.summary_id
  WHERE i.conversation_id = $1 AND (i.start_pos, i.seq) >= ($2, $3) AND (i.start_pos, i.seq) <= ($4, $5)
  ORDER BY i.start_pos, i.seq`;
const ITEMS_AROUND = `
  SELECT count(*) FILTER (WHERE (start_pos, seq) < ($2, $3)) AS before, count(*) FILTER (WHERE (start_pos, seq) > ($2, $3)) AS behind
  FROM context_items WHERE conversation_id = $1`;
const SUMMARIES = `SELECT ${SPAN} FROM summaries s WHERE s.summary_id = ANY($1::text[])`;
const CONTENTS =
  "SELECT summary_id, conversation_id, content FROM summaries WHERE summary_id = ANY($1::text[])";
const WITH_PREVIOUS = `
  SELECT summary_id, start_pos, start_seq, previous_id FROM summaries WHERE conversation_id = $1 AND previous_id IS NOT NULL`;
/** Summaries in the requested order, each with its sources in order. */
const ofEach = (messages: string, summaries: string): string => `
  SELECT q.* FROM unnest($1::text[]) WITH ORDINALITY a (summary_id, place) CROSS JOIN LATERAL (
    SELECT ${messages} FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = a.summary_id
    UNION ALL
    SELECT ${summaries} FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = a.summary_id) q
  ORDER BY a.place, q.ordinal`;
/** All links, including those to missing rows. */
const SOURCES = `
  SELECT q.* FROM unnest($1::text[]) WITH ORDINALITY a (summary_id, place) CROSS JOIN LATERAL (
    SELECT l.summary_id, l.ordinal, l.message_id, NULL::text AS source_id FROM summary_messages l WHERE l.summary_id = a.summary_id
    UNION ALL
    SELECT p.summary_id, p.ordinal, NULL, p.parent_summary_id FROM summary_parents p WHERE p.summary_id = a.summary_id) q
  ORDER BY a.place, q.ordinal`;
const PLACED_SOURCES = ofEach(
  "l.summary_id, l.ordinal, l.message_id, NULL::text AS source_id, m.position, m.seq",
  "p.summary_id, p.ordinal, NULL, p.parent_summary_id, s.start_pos, s.start_seq",
);
const SOURCE_SPANS = ofEach(
  `l.summary_id, l.ordinal, m.position AS start_pos, m.seq AS start_seq, m.position AS end_pos, m.seq AS end_seq, m.hidden_now,
   NULL::bigint AS depth, NULL::bigint AS messages, NULL::bigint AS descendant_count, NULL::bigint AS stale`,
  "p.summary_id, p.ordinal, s.start_pos, s.start_seq, s.end_pos, s.end_seq, NULL, s.depth, s.messages, s.descendant_count, s.stale",
);
/** The current sources of a summary. */
const CURRENT_SOURCES = `
  SELECT l.ordinal, m.position AS start_pos, m.seq, m.position AS end_pos, m.message_id, NULL::text AS summary_id,
         coalesce(n.tokens, m.tokens) AS tokens, 1::bigint AS messages, -1::bigint AS depth, m.hidden_now AS hidden,
         coalesce(m.newest, m.message_id) AS version_id, m.created_at AS earliest_at, m.created_at AS latest_at, m.dated,
         NULL::bigint AS descendant_count, NULL::bigint AS end_seq, 0::bigint AS stale
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest
  WHERE l.summary_id = $1
  UNION ALL
  SELECT p.ordinal, s.start_pos, s.start_seq, s.end_pos, NULL, s.summary_id, s.tokens, s.messages, s.depth,
         CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, NULL, s.earliest_at, s.latest_at, 1, s.descendant_count, s.end_seq, s.stale
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = $1 ORDER BY 1`;
const DERIVED =
  "SELECT summary_id, ordinal, parent_summary_id FROM summary_parents WHERE parent_summary_id = $1";
/** All versions of the events with the given ids, and of their attachments: `media:<event id>:<number>`. */
const FORGETTABLE = `
  WITH named AS (SELECT DISTINCT coalesce(m.revises, m.message_id) AS id FROM messages m WHERE m.message_id = ANY($1::bigint[])),
  attachments AS (
    SELECT a.message_id, a.session_ref, rtrim(substr(a.event_id, length('${ATTACHMENT_PREFIX}') + 1), '0123456789') AS owner
    FROM event_ids a
    WHERE a.session_ref IN (SELECT m.session_ref FROM named n JOIN messages m ON m.message_id = n.id)
      AND a.event_id >= '${ATTACHMENT_PREFIX}' AND a.event_id < '${ATTACHMENT_PREFIX}' || chr(1114111)),
  firsts AS (
    SELECT id FROM named
    UNION SELECT a.message_id FROM attachments a
      JOIN event_ids o ON o.session_ref = a.session_ref AND o.event_id = substr(a.owner, 1, length(a.owner) - 1)
      WHERE o.message_id IN (SELECT id FROM named)),
  versions AS (
    SELECT id FROM firsts UNION SELECT m.message_id FROM firsts f JOIN messages m ON m.revises = f.id)
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.revises, m.newest, m.hidden_now, m.arrival_bytes
  FROM versions v JOIN messages m ON m.message_id = v.id
  WHERE m.forgotten_at IS NULL ORDER BY m.conversation_id, m.seq`;
const FILES_ONLY_OF = `
  SELECT f.* FROM large_files f
  WHERE f.file_id IN (SELECT p.file_id FROM message_parts p WHERE p.message_id = ANY($1::bigint[]))
    AND NOT EXISTS (SELECT 1 FROM message_parts o WHERE o.file_id = f.file_id AND o.message_id <> ALL($1::bigint[]))
  ORDER BY f.file_id`;
/** Every summary above the messages, at any depth and in any state. */
const SUMMARIES_ABOVE = `
  WITH RECURSIVE touched (id) AS (
    (SELECT l.summary_id FROM summary_messages l WHERE l.message_id = ANY($1::bigint[])
     UNION SELECT v COLLATE "C" FROM unnest($2::text[]) v)
    UNION SELECT p.summary_id FROM touched t JOIN summary_parents p ON p.parent_summary_id = t.id)
  SELECT s.summary_id, s.conversation_id, s.kind, s.depth, s.state, s.tokens, s.model, s.level, s.created_at, s.previous_id
  FROM touched t JOIN summaries s ON s.summary_id = t.id
  ORDER BY s.depth, s.conversation_id, s.start_pos, s.summary_id`;
const MADE_AHEAD = `SELECT ${SPAN} FROM summaries s WHERE s.conversation_id = $1 AND s.state IN ('prepared', 'reserve')`;
const STALE = `SELECT ${SPAN} FROM summaries s WHERE s.conversation_id = $1 AND s.state = 'cover' AND s.stale = 1`;
/** Bodies of a page. */
const MAX_PAGE_BYTES = 16_000_000;
const ARRIVALS = `
  WITH page AS (
    SELECT m.*, sum(length(m.body)) OVER (ORDER BY m.seq) - length(m.body) AS before FROM messages m
    WHERE m.conversation_id = $1 AND m.seq > $2 ORDER BY m.seq LIMIT ${PAGE_ROWS})
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.event_id, m.revises, m.newest, m.role, m.tokens, m.created_at, m.hidden,
         m.hidden_now, m.arrival_bytes, m.encoding, m.body, m.salt, m.commitment, m.chain, m.forgotten_at, m.dated, s.session_id,
         (SELECT r.seq FROM messages r WHERE r.message_id = m.revises) AS revises_seq, e.message_id AS event_message,
         (SELECT r.message_id FROM messages r WHERE r.revises = m.message_id ORDER BY r.seq DESC LIMIT 1) AS last_revision
  FROM page m JOIN sessions s USING (session_ref)
  LEFT JOIN event_ids e ON e.session_ref = m.session_ref AND e.event_id = m.event_id
  WHERE m.before <= ${MAX_PAGE_BYTES} ORDER BY m.seq`;
const FIRST_VERSIONS = `
  SELECT m.message_id, m.position, m.seq, m.hidden, m.hidden_now, coalesce(n.tokens, m.tokens) AS tokens
  FROM messages m LEFT JOIN messages n ON n.message_id = m.newest
  WHERE m.conversation_id = $1 AND m.revises IS NULL AND (m.position, m.seq) > ($2, $3)
  ORDER BY m.position, m.seq LIMIT $4`;
const NAMED_SEQS = `
  SELECT a.place, m.seq FROM unnest($2::text[], $3::text[]) WITH ORDINALITY a (session_id, event_id, place)
  JOIN sessions s ON s.session_id = a.session_id
  JOIN event_ids e ON e.session_ref = s.session_ref AND e.event_id = a.event_id
  JOIN messages m ON m.message_id = e.message_id AND m.conversation_id = $1`;
const BORROWED_NAMES = `
  SELECT e.event_id, e.message_id FROM event_ids e JOIN messages m USING (message_id)
  WHERE e.session_ref = ${SESSION} AND e.kind = ${EVENT_KIND.alias} AND m.session_ref <> e.session_ref ORDER BY e.event_id`;
const COUNT_OWN_NAMES = `
  SELECT count(*) AS n FROM event_ids e JOIN messages m USING (message_id)
  WHERE m.conversation_id = $1 AND (e.session_ref = m.session_ref OR EXISTS (
    SELECT 1 FROM placements p WHERE p.session_ref = e.session_ref AND p.conversation_id = $1))`;

type PlacementRow = Pick<Row<"sessions">, "session_ref" | "base_tokens"> & {
  readonly start_position: number | null;
  readonly base_position: number | null;
  readonly conversation_id: number | null;
};

type NamedFirst = { readonly event_id: string; readonly message_id: number };
type VersionRow = Omit<Version, "event_id"> & Pick<Row<"messages">, "revises">;

/** A row with the number of its request, from 1. */
type Numbered<T> = T & { readonly place: number };

function toPlacements(rows: readonly PlacementRow[]): Omit<SessionPlacements, "head"> {
  const [first] = rows;
  return {
    session: first ? { session_ref: first.session_ref, base_tokens: first.base_tokens } : null,
    placements: rows.flatMap(({ session_ref, start_position, base_position, conversation_id }) =>
      start_position === null || base_position === null || conversation_id === null
        ? []
        : [{ session_ref, start_position, conversation_id, base_position }],
    ),
  };
}

/** Another transaction may have placed the session, or started another conversation, while this waited for the lock. */
function expectHead(
  head: HeadRow | null,
  wanted: { readonly conversation_id: number } | undefined,
): HeadRow | null {
  if (head?.conversation_id !== wanted?.conversation_id) throw new Conflict("the session has moved");
  return head;
}

export class PlanReads implements ReadsLater {
  readonly #sql: Sql;
  readonly #files: Files;
  readonly #lock: string;

  /** A read-only plan takes no locks. */
  constructor(sql: Sql, files: Files, isLocking: boolean) {
    this.#sql = sql;
    this.#files = files;
    this.#lock = isLocking ? LOCK : "";
  }

  /** A session that is not placed yet will be in the active conversation of its key: finding that out takes another round trip. */
  async placements({ owner, id, key }: SessionRef): Promise<SessionPlacements> {
    const [[head = null], rows] = await Promise.all([
      this.#sql.all<HeadRow>(PLACE_HEAD + this.#lock, owner, id),
      this.#sql.all<PlacementRow>(PLACEMENTS, owner, id),
    ]);
    const found = toPlacements(rows);
    if (found.placements.length > 0) return { ...found, head: expectHead(head, found.placements[0]) };
    const [active, again, current] = await Promise.all([
      this.active(owner, key),
      this.#sql.all<PlacementRow>(PLACEMENTS, owner, id),
      this.#sql.get<{ conversation_id: number }>(ACTIVE_ID, owner, key),
    ]);
    const { session, placements } = toPlacements(again);
    return { session, placements, head: expectHead(active, placements[0] ?? current) };
  }

  async active(owner: string, key: string): Promise<HeadRow | null> {
    return (await this.#sql.get<HeadRow>(ACTIVE + this.#lock, owner, key)) ?? null;
  }

  lockHeads(conversationIds: readonly number[], onlyFree = false): Promise<HeadRow[]> {
    const lock = onlyFree && this.#lock !== "" ? LOCK_FREE : this.#lock;
    return this.#sql.all<HeadRow>(HEADS + lock, conversationIds);
  }

  async chainAt(conversationId: number, seq: number): Promise<Uint8Array | null> {
    return (await this.#sql.get<{ chain: Uint8Array }>(CHAIN_AT, conversationId, seq))?.chain ?? null;
  }

  async ids(table: NumberedTable, count: number): Promise<number[]> {
    if (count === 0) return [];
    return (await this.#sql.all<{ id: number }>(NEXT_IDS[table], count)).map(({ id }) => id);
  }

  async turns(keys: readonly string[]): Promise<string[]> {
    const rows = await this.#some<{ advancement_key: string }>(TURNS, keys);
    return rows.map((row) => row.advancement_key);
  }

  /** Events of a turn are nearly always new: whether they are takes one cheap statement, what is stored of known ones another round trip. */
  async versions({ owner, id }: SessionRef, eventIds: readonly string[]): Promise<Version[]> {
    const asked = await this.#named<{ message_id: number | null }>(EVENTS, owner, id, [...new Set(eventIds)]);
    const known = asked.filter(({ message_id }) => message_id !== null) as NamedFirst[];
    const firstIds = [...new Set(known.map(({ message_id }) => message_id))];
    const rows = await this.#some<VersionRow>(VERSIONS, firstIds);
    const byId = new Map(rows.map((row) => [row.message_id, row]));
    const byFirst = Map.groupBy(rows, ({ revises }) => revises);
    return known.flatMap(({ event_id, message_id }) =>
      [byId.get(message_id) ?? [], byFirst.get(message_id) ?? []]
        .flat()
        .map((version) => ({ ...version, event_id })),
    );
  }

  sessions(owner: string, sessionIds: readonly string[]): Promise<Row<"sessions">[]> {
    return this.#sql.all<Row<"sessions">>(SESSIONS, owner, sessionIds);
  }

  events({ owner, id }: SessionRef, eventIds: readonly string[]): Promise<NamedMessage[]> {
    return this.#named<Omit<NamedMessage, "event_id">>(NAMED, owner, id, eventIds);
  }

  allEvents(sessionRef: number): Promise<NamedMessage[]> {
    return this.#sql.all<NamedMessage>(ALL_NAMED, sessionRef);
  }

  messagesAt(conversationId: number, seqs: readonly number[]): Promise<MessageAt[]> {
    return this.#sql.all<MessageAt>(MESSAGES_AT, conversationId, seqs);
  }

  async sessionsWithEvents(sessionRefs: readonly number[]): Promise<number[]> {
    return (await this.#some<{ ref: number }>(WITH_EVENTS, sessionRefs)).map(({ ref }) => ref);
  }

  conversationsBegun(owner: string, key: string, at: number): Promise<HeadRow[]> {
    return this.#sql.all<HeadRow>(BEGUN, owner, key, at);
  }

  hiddenFor({ owner, id }: SessionRef, reasons: number): Promise<HideableMessage[]> {
    return this.#sql.all<HideableMessage>(HIDDEN_FOR, owner, id, reasons);
  }

  boundaries({ owner, id }: SessionRef, eventIds: readonly string[]): Promise<Row<"boundaries">[]> {
    return this.#named<Omit<Row<"boundaries">, "event_id">>(BOUNDARIES, owner, id, eventIds);
  }

  shownBefore(conversationId: number, position: number): Promise<number> {
    return this.#count(SHOWN_BEFORE, conversationId, position);
  }

  files(fileIds: readonly string[]): Promise<Row<"large_files">[]> {
    return this.#some(FILES, fileIds);
  }

  calibrations(models: readonly string[]): Promise<CalibrationRow[]> {
    return this.#some(this.#lock === "" ? CALIBRATIONS : CALIBRATIONS_LOCKED, models);
  }

  cacheUsage(conversationIds: readonly number[]): Promise<Row<"cache_usage">[]> {
    return this.#some(USAGE, conversationIds);
  }

  async covering(points: readonly CoverPoint[]): Promise<Covering[]> {
    if (points.length === 0) return [];
    const asked = [
      points.map((place) => place.conversationId),
      points.map((place) => place.position),
      points.map((place) => place.seq),
    ];
    const [items, spans] = await Promise.all([
      this.#sql.all<Numbered<Row<"context_items">>>(ITEMS_BEFORE, ...asked),
      this.#sql.all<Numbered<SummarySpan>>(PATHS, ...asked),
    ]);
    const itemAt = new Map(items.map(({ place, ...item }) => [place, item]));
    const paths = Map.groupBy(spans, ({ place }) => place);
    return points.map((_, index) => ({
      item: itemAt.get(index + 1) ?? null,
      path: (paths.get(index + 1) ?? []).map(({ place: _place, ...span }) => span),
    }));
  }

  run(conversationId: number, first: ItemPoint, last: ItemPoint): Promise<RunRow[]> {
    const range = [first.startPosition, first.seq, last.startPosition, last.seq] as const;
    return this.#sql.all<RunRow>(RUN, conversationId, ...range);
  }

  async itemsAround(
    conversationId: number,
    { startPosition, seq }: ItemPoint,
  ): Promise<{ before: number; behind: number }> {
    type Around = { before: number; behind: number };
    const found = await this.#sql.get<Around>(ITEMS_AROUND, conversationId, startPosition, seq);
    return found ?? { before: 0, behind: 0 };
  }

  summaries(summaryIds: readonly string[]): Promise<SummarySpan[]> {
    return this.#some(SUMMARIES, summaryIds);
  }

  contents(summaryIds: readonly string[]): Promise<ReturnType<Reads["contents"]>> {
    return this.#some(CONTENTS, summaryIds);
  }

  withPrevious(conversationId: number): Promise<ReturnType<Reads["withPrevious"]>> {
    return this.#sql.all(WITH_PREVIOUS, conversationId);
  }

  sources(summaryIds: readonly string[]): Promise<SourceLink[]> {
    return this.#some(SOURCES, summaryIds);
  }

  placedSources(summaryIds: readonly string[]): Promise<PlacedLink[]> {
    return this.#some(PLACED_SOURCES, summaryIds);
  }

  currentSources(summaryId: string): Promise<RunRow[]> {
    return this.#sql.all<RunRow>(CURRENT_SOURCES, summaryId);
  }

  derivedFrom(summaryId: string): Promise<Row<"summary_parents">[]> {
    return this.#sql.all(DERIVED, summaryId);
  }

  forgettable(messageIds: readonly number[]): Promise<ForgettableVersion[]> {
    return this.#some(FORGETTABLE, messageIds);
  }

  filesOnlyOf(messageIds: readonly number[]): Promise<Row<"large_files">[]> {
    return this.#some(FILES_ONLY_OF, messageIds);
  }

  summariesAbove(messageIds: readonly number[], summaryIds: readonly string[]): Promise<TouchedSummary[]> {
    return this.#sql.all<TouchedSummary>(SUMMARIES_ABOVE, messageIds, summaryIds);
  }

  madeAhead(conversationId: number): Promise<SummarySpan[]> {
    return this.#sql.all<SummarySpan>(MADE_AHEAD, conversationId);
  }

  staleSummaries(conversationId: number): Promise<SummarySpan[]> {
    return this.#sql.all<SummarySpan>(STALE, conversationId);
  }

  page(query: PageQuery): Promise<Values[]> {
    return this.#rows(renderPage(query));
  }

  rows(query: KeysQuery): Promise<Values[]> {
    return this.#rows(renderKeys(query));
  }

  async count(table: TableName, where: Values): Promise<number> {
    const { text, values } = renderCount(table, where);
    return this.#count(text, ...values);
  }

  content(blob: string): Promise<Uint8Array | null> {
    return this.#files.read(this.#sql, blob);
  }

  arrivals(conversationId: number, afterSeq: number): Promise<Arrival[]> {
    return this.#sql.all<Arrival>(ARRIVALS, conversationId, afterSeq);
  }

  firstVersions(
    conversationId: number,
    { position, seq }: { readonly position: number; readonly seq: number },
    limit: number,
  ): Promise<FirstVersion[]> {
    return this.#sql.all<FirstVersion>(FIRST_VERSIONS, conversationId, position, seq, limit);
  }

  sourceSpans(summaryIds: readonly string[]): Promise<SourceSpan[]> {
    return this.#some(SOURCE_SPANS, summaryIds);
  }

  async namedSeqs(conversationId: number, names: readonly EventName[]): Promise<(number | null)[]> {
    const sessionIds = names.map(({ sessionId }) => sessionId);
    const eventIds = names.map(({ eventId }) => eventId);
    const rows = await this.#sql.all<Numbered<{ seq: number }>>(
      NAMED_SEQS,
      conversationId,
      sessionIds,
      eventIds,
    );
    const seqs = new Map(rows.map(({ place, seq }) => [place, seq]));
    return names.map((_, index) => seqs.get(index + 1) ?? null);
  }

  borrowedNames(
    owner: string,
    sessionId: string,
  ): Promise<Pick<Row<"event_ids">, "event_id" | "message_id">[]> {
    return this.#sql.all(BORROWED_NAMES, owner, sessionId);
  }

  countOwnNames(conversationId: number): Promise<number> {
    return this.#count(COUNT_OWN_NAMES, conversationId);
  }

  #rows({ text, values }: Statement): Promise<Values[]> {
    return this.#sql.all<Values>(text, ...values);
  }

  async #count(text: string, ...values: readonly SqlValue[]): Promise<number> {
    return (await this.#sql.get<{ n: number }>(text, ...values))?.n ?? 0;
  }

  /** Sends nothing for an empty list of keys. */
  async #some<T>(text: string, keys: readonly (number | string)[]): Promise<T[]> {
    return keys.length === 0 ? [] : this.#sql.all<T>(text, keys);
  }

  /** What event ids of a session name, under the requested ids. */
  async #named<T extends object>(
    text: string,
    owner: string,
    sessionId: string,
    eventIds: readonly string[],
  ): Promise<(T & { readonly event_id: string })[]> {
    if (eventIds.length === 0) return [];
    const rows = await this.#sql.all<Numbered<T>>(text, owner, sessionId, eventIds);
    return rows.map((row) => ({ ...row, event_id: eventIds[row.place - 1] ?? "" }));
  }
}
