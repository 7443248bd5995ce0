/**
 * Reading conversations, messages, files and the state of the archive. Every read that serves a caller is filtered by its owner. Related
 * statements are pipelined: one round trip, and one more if payloads have to be put back.
 */
import {
  countReasons,
  decodeBody,
  listPayloads,
  makePage,
  placePage,
  must,
  parseCursor,
  putTogether,
  spliceRanges,
  toConversation,
  toLargeFile,
  toMessage,
  toMessageOutline,
  toPart,
  toReference,
} from "@lossless/core/adapter";
import type {
  ConversationColumns,
  MessageColumns,
  PartRecord,
  ReferenceColumns,
  StoredBody,
} from "@lossless/core/adapter";
import type {
  ArchiveStatus,
  ConversationFilter,
  ConversationOrder,
  ConversationRow,
  LargeFileRow,
  ListConversations,
  ListMessages,
  MessageBody,
  MessageRow,
  Opening,
  Outline,
  OutlineRequest,
  Page,
  Row,
  SessionState,
  ShownMessage,
} from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { SCHEMA_VERSION } from "./migrate.ts";
import { findEvents } from "./plan-reads.ts";
import type { SqlValue } from "./sql-values.ts";
import type { StoreContext } from "./store-context.ts";

const CONVERSATION_COLUMNS = `
  c.conversation_id, c.owner, c.session_key, c.session_id, c.created_at, c.archived_at, c.archive_cause,
  c.agent, c.project, c.branch, c.title, c.model, c.name, c.tags, c.pinned_at, c.unlisted_at,
  c.message_count, c.shown_messages, c.shown_tokens, c.summary_count, c.fold_revision, c.first_at, c.last_at, c.arrival_bytes`;
const FILTERS = ["owner", "sessionKey", "project", "agent", "exceptSession"] as const;
/** The conversations that {@link bindFilter} selects. */
export const CHOSEN = `
  ($1::text IS NULL OR c.owner = $1) AND ($2::text IS NULL OR c.session_key = $2) AND ($3::text IS NULL OR c.project = $3)
  AND ($4::text IS NULL OR c.agent = $4) AND ($5::text IS NULL OR c.session_id <> $5)`;
export const bindFilter = (filter: ConversationFilter): SqlValue[] =>
  FILTERS.map((key) => filter[key] ?? null);
/** Further filters of lists; see {@link bindList}. */
const LISTED = `
  ($6::text IS NULL OR c.model = $6) AND ($7::bigint IS NULL OR c.last_at >= $7)
  AND ($8::bigint IS NULL OR c.last_at < $8) AND ($9::bigint = 1 OR c.unlisted_at IS NULL)
  AND ($10::text IS NULL OR c.tags::jsonb @> to_jsonb($10::text))`;
const bindList = (request: ListConversations): SqlValue[] => {
  const { model = null, since = null, before = null, unlisted = true, tag = null } = request;
  return [...bindFilter(request), model, since, before, Number(unlisted), tag];
};
const selectConversations = (order: string): string => `
  SELECT ${CONVERSATION_COLUMNS} FROM conversations c WHERE c.conversation_id < $11 AND ${CHOSEN} AND ${LISTED}
  ORDER BY ${order} LIMIT $12 OFFSET $13`;
const BY_ID = "c.conversation_id DESC";
const BY_TIME = `c.last_at IS NULL, c.last_at DESC, ${BY_ID}`;
const PINNED_FIRST = "c.pinned_at IS NULL";
/** Texts are sorted by their bytes, as everywhere else. */
const byText = (column: string): string =>
  selectConversations(`${PINNED_FIRST}, c.${column} COLLATE "C" NULLS LAST, ${BY_TIME}`);
const LISTS: Readonly<Record<ConversationOrder, string>> = {
  id: selectConversations(BY_ID),
  newest: selectConversations(`${PINNED_FIRST}, ${BY_TIME}`),
  oldest: selectConversations(`${PINNED_FIRST}, c.last_at IS NULL, c.last_at, c.conversation_id`),
  project: byText("project"),
  agent: byText("agent"),
  model: byText("model"),
};
/** Reads only the first rows: a conversation without a user is not read to its end. */
const OPENINGS = `
  SELECT j.id AS "conversationId", m.message_id AS "messageId"
  FROM unnest($1::bigint[]) WITH ORDINALITY j (id, place) CROSS JOIN LATERAL (
    SELECT f.message_id, f.position, f.seq FROM (
      SELECT o.message_id, o.role, o.hidden_now, o.revises, o.position, o.seq FROM messages o
      WHERE o.conversation_id = j.id ORDER BY o.position, o.seq LIMIT 200) f
    WHERE f.role = 'user' AND f.hidden_now = 0 AND f.revises IS NULL ORDER BY f.position, f.seq LIMIT $2) m
  ORDER BY j.place, m.position, m.seq`;
const SELECT_CONVERSATION = `
  SELECT ${CONVERSATION_COLUMNS} FROM conversations c WHERE c.conversation_id = $1 AND ($2::text IS NULL OR c.owner = $2)`;

/** The displayed time: a line without one has that of the next line with one, at the end that of the last before. */
const nextDated = (isBehind: boolean): string => `
  (SELECT n.created_at FROM messages n
   WHERE n.conversation_id = m.conversation_id AND n.dated = 1 AND (n.position, n.seq) ${isBehind ? ">" : "<"} (m.position, m.seq)
   ORDER BY ${isBehind ? "n.position, n.seq" : "n.position DESC, n.seq DESC"} LIMIT 1)`;
export const READ_AT = `
  CASE WHEN m.dated = 0 AND c.first_at IS NOT NULL THEN coalesce(${nextDated(true)}, ${nextDated(false)}) ELSE m.created_at END`;
const MESSAGE_COLUMNS = `
  m.message_id, m.conversation_id, s.session_id, m.event_id, m.seq, m.position, m.role, m.tokens, ${READ_AT} AS created_at, m.arrival_bytes,
  m.revises, m.newest, m.forgotten_at, m.hidden_now, m.dated`;
const MESSAGE_SOURCE = `
  FROM messages m JOIN sessions s USING (session_ref) JOIN conversations c ON c.conversation_id = m.conversation_id`;
const SELECT_MESSAGE = `
  SELECT ${MESSAGE_COLUMNS}, m.body, m.encoding ${MESSAGE_SOURCE} WHERE m.message_id = $1 AND ($2::text IS NULL OR c.owner = $2)`;
const SELECT_REVISIONS = `
  SELECT ${MESSAGE_COLUMNS} ${MESSAGE_SOURCE}
  WHERE (m.message_id = $1 OR m.revises = $1) AND ($2::text IS NULL OR c.owner = $2) ORDER BY m.seq`;
const PARTS_OF = `
  SELECT p.*, f.storage_path, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
  FROM message_parts p LEFT JOIN large_files f USING (file_id) WHERE p.message_id = ANY($1::bigint[]) ORDER BY p.message_id, p.ordinal`;
const SELECT_FILE = `
  SELECT f.* FROM large_files f JOIN conversations c USING (conversation_id)
  WHERE f.file_id = $1 AND ($2::text IS NULL OR c.owner = $2)`;
/** One lookup per session: event ids are random, and an index over all of them would cost every import more than this. */
const SESSIONS_WITH = `
  SELECT s.session_id FROM sessions s
  WHERE s.owner = $1 AND EXISTS (SELECT 1 FROM event_ids e WHERE e.session_ref = s.session_ref AND e.event_id = $2)
  ORDER BY s.session_ref`;
const SESSION_REF =
  "SELECT session_ref FROM sessions WHERE session_id = $2 AND ($1::text IS NULL OR owner = $1) ORDER BY session_ref LIMIT 1";
const SESSION_STATE = `
  SELECT s.cursor, s.last_event, s.base_tokens,
    (SELECT p.conversation_id FROM placements p WHERE p.session_ref = s.session_ref ORDER BY p.start_position DESC LIMIT 1)
      AS conversation_id
  FROM sessions s WHERE s.session_ref = (${SESSION_REF})`;
const EVENTS = `${findEvents(`(${SESSION_REF})`)} ORDER BY a.place`;

export async function listConversations(
  { sql }: StoreContext,
  request: ListConversations,
): Promise<Page<ConversationRow>> {
  const { order = "id", limit } = request;
  const { before, offset, cursorOf } = placePage(request);
  const values = [...bindList(request), before, limit + 1, offset];
  const rows = await sql.all<ConversationColumns>(LISTS[order], ...values);
  return makePage(rows.map(toConversation), limit, cursorOf);
}

export const listOpenings = (
  { sql }: StoreContext,
  conversationIds: readonly number[],
  limit: number,
): Promise<Opening[]> => sql.all<Opening>(OPENINGS, [...conversationIds], limit);

export async function readConversation(
  { sql }: StoreContext,
  id: number,
  owner?: string,
): Promise<ConversationRow | null> {
  const row = await sql.get<ConversationColumns>(SELECT_CONVERSATION, id, owner ?? null);
  return row ? toConversation(row) : null;
}

export async function listMessages({ sql }: StoreContext, request: ListMessages): Promise<Page<MessageRow>> {
  const isNewest = request.direction === "newest";
  const keys = request.order === "position" ? ["m.position", "m.seq"] : ["m.seq"];
  const end = isNewest ? Number.MAX_SAFE_INTEGER : -1;
  const from = request.after === null ? keys.map(() => end) : parseCursor(request.after, keys.length);
  const rows = await sql.all<MessageColumns>(
    `SELECT ${MESSAGE_COLUMNS} ${MESSAGE_SOURCE}
     WHERE m.conversation_id = $1 AND ($2::text IS NULL OR c.owner = $2)
       AND (${keys.join(", ")}) ${isNewest ? "<" : ">"} (${keys.map((_, at) => `$${at + 4}`).join(", ")})
     ORDER BY ${keys.map((key) => (isNewest ? `${key} DESC` : key)).join(", ")} LIMIT $3`,
    request.conversationId,
    request.owner ?? null,
    request.limit + 1,
    ...from,
  );
  return makePage(rows.map(toMessage), request.limit, ({ position, seq }) =>
    request.order === "position" ? `${position}.${seq}` : `${seq}`,
  );
}

const OUTLINE = `
  SELECT m.message_id, m.seq, m.position, CASE WHEN m.hidden_now = 0 AND m.revises IS NULL THEN m.tokens ELSE 0 END AS tokens,
    m.created_at, m.role, m.dated
  FROM conversations c JOIN messages m USING (conversation_id)
  WHERE c.conversation_id = $1 AND ($2::text IS NULL OR c.owner = $2) AND (m.position, m.seq) > ($3, $4)
  ORDER BY m.position, m.seq LIMIT $5`;

type OutlineRow = Pick<
  Row<"messages">,
  "message_id" | "seq" | "position" | "tokens" | "created_at" | "role" | "dated"
>;

export async function readOutline(
  { sql }: StoreContext,
  { conversationId, owner, after, limit }: OutlineRequest,
): Promise<Outline> {
  const [position, seq] = after ?? [-1, -1];
  const rows = await sql.all<OutlineRow>(OUTLINE, conversationId, owner ?? null, position, seq, limit);
  return toMessageOutline(
    rows.map((row) => [
      row.message_id,
      row.seq,
      row.position,
      row.tokens,
      row.created_at,
      row.role,
      row.dated,
    ]),
  );
}

const IDS_AT = `
  SELECT m.message_id AS id FROM conversations c JOIN messages m USING (conversation_id)
  WHERE c.conversation_id = $1 AND ($2::text IS NULL OR c.owner = $2)
  ORDER BY m.position, m.seq LIMIT $3 OFFSET $4`;
const NUMBER_OF = `
  SELECT o.conversation_id, (
    SELECT count(*) FROM messages m
    WHERE m.conversation_id = o.conversation_id AND (m.position, m.seq) < (o.position, o.seq)) AS number
  FROM messages o JOIN conversations c USING (conversation_id)
  WHERE o.message_id = $1 AND ($2::text IS NULL OR c.owner = $2)`;

export async function listMessageIds(
  { sql }: StoreContext,
  { conversationId, at, limit, owner }: { conversationId: number; at: number; limit: number; owner?: string },
): Promise<number[]> {
  const rows = await sql.all<{ id: number }>(IDS_AT, conversationId, owner ?? null, limit, at);
  return rows.map(({ id }) => id);
}

export async function locateMessage(
  { sql }: StoreContext,
  messageId: number,
  owner?: string,
): Promise<{ conversationId: number; number: number } | null> {
  const row = await sql.get<{ conversation_id: number; number: number }>(NUMBER_OF, messageId, owner ?? null);
  return row ? { conversationId: row.conversation_id, number: row.number } : null;
}

export function readMessage(
  { sql, files }: StoreContext,
  messageId: number,
  owner?: string,
): Promise<MessageBody | null> {
  return sql.read(async (own) => {
    const [rows, parts] = await Promise.all([
      own.all<MessageColumns & StoredBody>(SELECT_MESSAGE, messageId, owner ?? null),
      own.all<PartRecord>(PARTS_OF, [messageId]),
    ]);
    const [row] = rows;
    if (!row) return null;
    return { row: toMessage(row), parts: parts.map(toPart), bytes: await restore(files, own, row, parts) };
  });
}

/** The arrival bytes: the decompressed body, with each payload put back from its file. All payloads take one round trip. */
async function restore(
  files: StoreContext["files"],
  sql: Sql,
  row: StoredBody,
  parts: readonly PartRecord[],
): Promise<Uint8Array> {
  const payloads = listPayloads(parts);
  const contents = await Promise.all(
    payloads.map(async ({ file }) => (file === null ? null : files.read(sql, file.storage_path))),
  );
  return putTogether(row, payloads, contents);
}

/** The arrival bytes of each message, in the transaction of the caller. Rows without payloads in files need no further query. */
export async function restoreAll(
  files: StoreContext["files"],
  sql: Sql,
  rows: readonly (StoredBody & { readonly arrival_bytes: number })[],
): Promise<Uint8Array[]> {
  const bodies = rows.map((row) => decodeBody(row, row.arrival_bytes));
  const cut = rows.filter((row, at) => bodies[at]?.byteLength !== row.arrival_bytes);
  if (cut.length === 0) return bodies;
  const parts = await readParts(
    sql,
    cut.map(({ message_id }) => message_id),
  );
  return Promise.all(
    rows.map(async (row, at) => {
      const own = parts.get(row.message_id);
      return own === undefined ? must(bodies[at], "a body") : restore(files, sql, row, own);
    }),
  );
}

/**
 * The same for messages by their ids, whose rows are already requested: their payloads are requested before it is known whether there are any,
 * so that everything takes one round trip.
 */
export async function restoreAsked<R extends StoredBody>(
  files: StoreContext["files"],
  sql: Sql,
  messageIds: readonly number[],
  asked: Promise<R[]>,
): Promise<{ readonly row: R; readonly bytes: Uint8Array }[]> {
  const [rows, parts, contentOf] = await Promise.all([
    asked,
    readParts(sql, messageIds),
    files.readCut(sql, messageIds),
  ]);
  return rows.map((row) => {
    const payloads = listPayloads(parts.get(row.message_id) ?? []);
    const contents = payloads.map(({ file }) => (file === null ? null : contentOf(file.storage_path)));
    return { row, bytes: putTogether(row, payloads, contents) };
  });
}

/** The parts of messages that have any, each payload with its file. */
async function readParts(
  sql: Sql,
  messageIds: readonly number[],
): Promise<ReadonlyMap<number, readonly PartRecord[]>> {
  const rows = await sql.all<PartRecord & { readonly message_id: number }>(PARTS_OF, [...messageIds]);
  return Map.groupBy(rows, ({ message_id }) => message_id);
}

/** The first version of each message, and the content of its newest. */
const SELECT_SHOWN = `
  SELECT f.message_id, f.seq, f.created_at, v.message_id AS version_id, v.body, v.encoding, v.arrival_bytes, v.tokens
  FROM unnest($1::bigint[]) WITH ORDINALITY j (id, place) JOIN messages f ON f.message_id = j.id
  JOIN messages v ON v.message_id = coalesce(f.newest, f.message_id) ORDER BY j.place`;
const PAYLOADS_OF = `
  SELECT p.message_id, p.at, p.length, p.file_id, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
  FROM unnest($1::bigint[]) j (id) JOIN messages m ON m.message_id = j.id
  JOIN message_parts p ON p.message_id = coalesce(m.newest, m.message_id) JOIN large_files f USING (file_id)
  ORDER BY p.message_id, p.at`;

type ShownRow = Pick<
  Row<"messages">,
  "message_id" | "seq" | "created_at" | "body" | "encoding" | "arrival_bytes" | "tokens"
> & { readonly version_id: number };

/** Includes the references of payloads: requesting them after reading the bodies would be another round trip. */
export function readShown({ sql }: StoreContext, messageIds: readonly number[]): Promise<ShownMessage[]> {
  if (messageIds.length === 0) return Promise.resolve([]);
  return sql.read(async (own) => {
    const [rows, payloads] = await Promise.all([
      own.all<ShownRow>(SELECT_SHOWN, [...messageIds]),
      own.all<ReferenceColumns & { readonly message_id: number }>(PAYLOADS_OF, [...messageIds]),
    ]);
    const references = Map.groupBy(payloads, ({ message_id }) => message_id);
    return rows.map((row) => {
      const { message_id: messageId, seq, created_at: createdAt, tokens } = row;
      const body = decodeBody(row, row.arrival_bytes);
      const cut = references.get(row.version_id);
      return cut === undefined
        ? { messageId, seq, createdAt, bytes: body, tokens }
        : { messageId, seq, createdAt, bytes: spliceRanges(body, cut.map(toReference)), tokens: null };
    });
  });
}

export async function readRevisions(
  { sql }: StoreContext,
  messageId: number,
  owner?: string,
): Promise<MessageRow[]> {
  return (await sql.all<MessageColumns>(SELECT_REVISIONS, messageId, owner ?? null)).map(toMessage);
}

export async function readFile(
  { sql }: Pick<StoreContext, "sql">,
  fileId: string,
  owner?: string,
): Promise<LargeFileRow | null> {
  const row = await sql.get<Row<"large_files">>(SELECT_FILE, fileId, owner ?? null);
  return row ? toLargeFile(row) : null;
}

export function readFileContent(
  { sql, files }: StoreContext,
  fileId: string,
  owner?: string,
): Promise<Uint8Array | null> {
  return sql.read(async (own) => {
    const file = await readFile({ sql: own }, fileId, owner);
    return file ? files.read(own, file.blob) : null;
  });
}

type StateColumns = Pick<Row<"sessions">, "cursor" | "last_event" | "base_tokens"> & {
  readonly conversation_id: number | null;
};

export async function readSession(
  { sql }: StoreContext,
  owner: string | null,
  sessionId: string,
): Promise<SessionState | null> {
  const row = await sql.get<StateColumns>(SESSION_STATE, owner, sessionId);
  if (!row) return null;
  const { cursor, conversation_id: conversationId, last_event, base_tokens } = row;
  return { cursor, conversationId, lastEventId: last_event, baseTokens: base_tokens };
}

export async function knownEvents(
  { sql }: StoreContext,
  owner: string | null,
  sessionId: string,
  eventIds: readonly string[],
): Promise<string[]> {
  type Found = { readonly place: number; readonly message_id: number | null };
  const rows = await sql.all<Found>(EVENTS, owner, sessionId, [...eventIds]);
  return rows.flatMap(({ place, message_id }) =>
    message_id === null ? [] : must(eventIds[place - 1], "an event that was asked for"),
  );
}

export async function findSessions({ sql }: StoreContext, owner: string, eventId: string): Promise<string[]> {
  const rows = await sql.all<{ session_id: string }>(SESSIONS_WITH, owner, eventId);
  return rows.map((row) => row.session_id);
}

const OWNED = "($1::text IS NULL OR c.owner = $1)";
const TOTALS = `
  SELECT count(*) AS conversations, count(*) FILTER (WHERE archived_at IS NULL) AS active, coalesce(sum(message_count), 0) AS messages,
    coalesce(sum(summary_count), 0) AS summaries, coalesce(sum(shown_tokens), 0) AS tokens,
    coalesce(sum(arrival_bytes), 0) AS arrival, max(stored_at) AS stored_at, max(last_at) AS last_at
  FROM conversations c WHERE ${OWNED}`;
const HIDDEN_COUNTS = `
  SELECT m.hidden_now AS hidden, count(*) AS n FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.hidden_now <> 0 AND ${OWNED} GROUP BY m.hidden_now`;
const REVISION_COUNT = `
  SELECT count(*) AS n FROM messages m JOIN conversations c USING (conversation_id) WHERE m.revises IS NOT NULL AND ${OWNED}`;
const FILE_COUNT = `
  SELECT count(*) AS n, coalesce(sum(f.byte_size), 0) AS bytes FROM large_files f JOIN conversations c USING (conversation_id) WHERE ${OWNED}`;
/** The tables of the schema, with their indexes. */
const TABLE_BYTES = `
  SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')`;

interface Totals extends Record<
  "conversations" | "active" | "messages" | "summaries" | "tokens" | "arrival",
  number
> {
  readonly stored_at: number | null;
  readonly last_at: number | null;
}

/** Everything but the name of the database and the state of the index. */
export function readStatus(
  { sql }: StoreContext,
  owner: string | null,
): Promise<Omit<ArchiveStatus, "databasePath" | "index">> {
  return sql.read(async (own) => {
    const [totals, hidden, revisions, files, tables] = await Promise.all([
      own.get<Totals>(TOTALS, owner),
      own.all<{ hidden: number; n: number }>(HIDDEN_COUNTS, owner),
      own.get<{ n: number }>(REVISION_COUNT, owner),
      own.get<{ n: number; bytes: number }>(FILE_COUNT, owner),
      own.get<{ bytes: number }>(TABLE_BYTES),
    ]);
    const counted = must(totals, "a sum");
    return {
      databaseBytes: tables?.bytes ?? 0,
      filesBytes: files?.bytes ?? 0,
      arrivalBytes: counted.arrival,
      schemaVersion: SCHEMA_VERSION,
      conversations: counted.conversations,
      activeConversations: counted.active,
      messages: counted.messages,
      hidden: countReasons(hidden),
      revisions: revisions?.n ?? 0,
      summaries: counted.summaries,
      largeFiles: files?.n ?? 0,
      tokens: counted.tokens,
      lastStoredAt: counted.stored_at,
      lastMessageAt: counted.last_at,
    };
  });
}
