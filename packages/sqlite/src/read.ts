/** Reading conversations, messages, files and the state of the archive. Every read for a caller is filtered by owner. */
import { statSync } from "node:fs";
import {
  countReasons,
  listPayloads,
  makePage,
  placePage,
  must,
  parseCursor,
  putTogether,
  spliceRanges,
  toConversation,
  toCutPayloads,
  toLargeFile,
  toMessage,
  toMessageOutline,
  toPart,
  toReference,
} from "@lossless/core/adapter";
import type {
  ConversationColumns,
  MessageColumns,
  OutlineColumns,
  PartRecord,
  ReferenceColumns,
  StoredBody,
} from "@lossless/core/adapter";
import type {
  ArchiveStatus,
  ConversationFilter,
  ConversationOrder,
  ConversationRow,
  CutPayload,
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
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { findEvent, findSession } from "./event-ids.ts";
import { SCHEMA_VERSION } from "./migrate.ts";

const CONVERSATION_COLUMNS = `
  c.conversation_id, c.owner, c.session_key, c.session_id, c.created_at, c.archived_at, c.archive_cause,
  c.agent, c.project, c.branch, c.title, c.model, c.name, c.tags, c.pinned_at, c.unlisted_at, c.message_count,
  c.shown_messages, c.shown_tokens, c.summary_count, c.fold_revision, c.first_at, c.last_at, c.arrival_bytes`;
/** The conversations that {@link bindFilter} selects. */
export const CHOSEN = `(?1 IS NULL OR c.owner = ?1) AND (?2 IS NULL OR c.session_key = ?2)
  AND (?3 IS NULL OR c.project = ?3) AND (?4 IS NULL OR c.agent = ?4) AND (?5 IS NULL OR c.session_id <> ?5)`;
export const bindFilter = (filter: ConversationFilter): (string | null)[] => [
  filter.owner ?? null,
  filter.sessionKey ?? null,
  filter.project ?? null,
  filter.agent ?? null,
  filter.exceptSession ?? null,
];
/** Further filters of lists; see {@link bindList}. */
const LISTED = `(?6 IS NULL OR c.model = ?6) AND (?7 IS NULL OR c.last_at >= ?7)
  AND (?8 IS NULL OR c.last_at < ?8) AND (?9 = 1 OR c.unlisted_at IS NULL)
  AND (?10 IS NULL OR EXISTS (SELECT 1 FROM json_each(c.tags) t WHERE t.value = ?10))`;
const bindList = (request: ListConversations): (string | number | null)[] => [
  ...bindFilter(request),
  request.model ?? null,
  request.since ?? null,
  request.before ?? null,
  Number(request.unlisted ?? true),
  request.tag ?? null,
];
const selectConversations = (order: string): string => `
  SELECT ${CONVERSATION_COLUMNS} FROM conversations c
  WHERE c.conversation_id < ?11 AND ${CHOSEN} AND ${LISTED} ORDER BY ${order} LIMIT ?12 OFFSET ?13`;
const BY_ID = "c.conversation_id DESC";
const BY_TIME = `c.last_at IS NULL, c.last_at DESC, ${BY_ID}`;
const PINNED_FIRST = "c.pinned_at IS NULL";
const LISTS: Readonly<Record<ConversationOrder, string>> = {
  id: selectConversations(BY_ID),
  newest: selectConversations(`${PINNED_FIRST}, ${BY_TIME}`),
  oldest: selectConversations(`${PINNED_FIRST}, c.last_at IS NULL, c.last_at, c.conversation_id`),
  project: selectConversations(`${PINNED_FIRST}, c.project IS NULL, c.project, ${BY_TIME}`),
  agent: selectConversations(`${PINNED_FIRST}, c.agent IS NULL, c.agent, ${BY_TIME}`),
  model: selectConversations(`${PINNED_FIRST}, c.model IS NULL, c.model, ${BY_TIME}`),
};
/** Reads the first rows only: a conversation without a user is not read to its end. */
const OPENINGS = `
  SELECT j.value AS conversationId, m.message_id AS messageId FROM json_each(?1) j CROSS JOIN messages m
  WHERE m.message_id IN (
    SELECT f.message_id FROM (
      SELECT o.message_id, o.role, o.hidden_now, o.revises, o.position, o.seq FROM messages o
      WHERE o.conversation_id = j.value ORDER BY o.position, o.seq LIMIT 200) f
    WHERE f.role = 'user' AND f.hidden_now = 0 AND f.revises IS NULL ORDER BY f.position, f.seq LIMIT ?2)
  ORDER BY j.key, m.position, m.seq`;
const SELECT_CONVERSATION = `
  SELECT ${CONVERSATION_COLUMNS} FROM conversations c WHERE c.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2)`;

/** The displayed time: for a line without one, that of the next line that has one, at the end that of the last before. */
export const READ_AT = `
  CASE WHEN m.dated = 1 OR c.first_at IS NULL THEN m.created_at ELSE coalesce(
    (SELECT n.created_at FROM messages n WHERE n.conversation_id = m.conversation_id
       AND (n.position, n.seq) > (m.position, m.seq) AND n.dated = 1 ORDER BY n.position, n.seq LIMIT 1),
    (SELECT n.created_at FROM messages n WHERE n.conversation_id = m.conversation_id
       AND (n.position, n.seq) < (m.position, m.seq) AND n.dated = 1 ORDER BY n.position DESC, n.seq DESC LIMIT 1)) END`;
const MESSAGE_COLUMNS = `
  m.message_id, m.conversation_id, s.session_id, m.event_id, m.seq, m.position, m.role, m.tokens, ${READ_AT} AS created_at, m.arrival_bytes,
  m.revises, m.newest, m.forgotten_at, m.hidden_now, m.dated`;
const MESSAGE_SOURCE = "FROM messages m JOIN sessions s USING (session_ref)";
const SELECT_MESSAGE = `
  SELECT ${MESSAGE_COLUMNS}, m.body, m.encoding, c.owner
  ${MESSAGE_SOURCE} JOIN conversations c ON c.conversation_id = m.conversation_id
  WHERE m.message_id = ?1 AND (?2 IS NULL OR c.owner = ?2)`;
const SELECT_REVISIONS = `
  SELECT ${MESSAGE_COLUMNS} ${MESSAGE_SOURCE} JOIN conversations c ON c.conversation_id = m.conversation_id
  WHERE (m.message_id = ?1 OR m.revises = ?1) AND (?2 IS NULL OR c.owner = ?2) ORDER BY m.seq`;
/** The parts of a message, each payload with its file. */
const PART_COLUMNS = `
  p.ordinal, p.type, p.at, p.length, p.tool_call_id, p.tool_name, p.file_id, p.encoding, f.storage_path, f.file_name,
  f.mime_type, f.byte_size, f.exploration_summary`;
const SELECT_PARTS = `
  SELECT ${PART_COLUMNS}
  FROM message_parts p LEFT JOIN large_files f USING (file_id) WHERE p.message_id = ? ORDER BY p.ordinal`;
export const readParts = (connection: Connection, messageId: number): PartRecord[] =>
  connection.all<PartRecord>(SELECT_PARTS, messageId);
/** The same for many messages. */
export const PARTS_OF = `
  SELECT p.message_id, ${PART_COLUMNS} FROM json_each(?1) j CROSS JOIN message_parts p ON p.message_id = j.value
  LEFT JOIN large_files f USING (file_id) ORDER BY p.message_id, p.ordinal`;
const SELECT_FILE = `
  SELECT f.* FROM large_files f JOIN conversations c USING (conversation_id)
  WHERE f.file_id = ?1 AND (?2 IS NULL OR c.owner = ?2)`;
/** One lookup per session: event ids are random, and an index over all of them would cost every import more than this. */
const SESSIONS_WITH = `
  SELECT s.session_id FROM sessions s
  WHERE s.owner = ?1 AND EXISTS (SELECT 1 FROM event_ids e WHERE e.session_ref = s.session_ref AND e.event_id = ?2)
  ORDER BY s.session_ref`;
const SELECT_SESSION_STATE = `
  SELECT s.cursor, s.last_event, s.base_tokens,
         (SELECT p.conversation_id FROM placements p WHERE p.session_ref = s.session_ref ORDER BY p.start_position DESC LIMIT 1)
           AS conversation_id
  FROM sessions s WHERE s.session_ref = ?`;
const SESSION_BY_ID = "SELECT session_ref FROM sessions WHERE session_id = ? ORDER BY session_ref LIMIT 1";
const STATUS_CONVERSATIONS = `
  SELECT count(*) AS conversations, count(*) FILTER (WHERE archived_at IS NULL) AS active, coalesce(sum(message_count), 0) AS messages,
         coalesce(sum(summary_count), 0) AS summaries, coalesce(sum(shown_tokens), 0) AS tokens,
         coalesce(sum(arrival_bytes), 0) AS arrival, max(stored_at) AS stored_at, max(last_at) AS last_at
  FROM conversations WHERE ?1 IS NULL OR owner = ?1`;
const COUNT_HIDDEN = `
  SELECT hidden_now AS hidden, count(*) AS n FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.hidden_now <> 0 AND (?1 IS NULL OR c.owner = ?1) GROUP BY hidden_now`;
const COUNT_REVISIONS = `
  SELECT count(*) AS n FROM messages m JOIN conversations c USING (conversation_id)
  WHERE revises IS NOT NULL AND (?1 IS NULL OR c.owner = ?1)`;
const COUNT_FILES = `
  SELECT count(*) AS n, coalesce(sum(byte_size), 0) AS bytes FROM large_files f JOIN conversations c USING (conversation_id)
  WHERE ?1 IS NULL OR c.owner = ?1`;

export function listConversations(
  { connection }: StoreContext,
  request: ListConversations,
): Page<ConversationRow> {
  const { order = "id", limit } = request;
  const page = placePage(request);
  const rows = connection.all<ConversationColumns>(
    LISTS[order],
    ...bindList(request),
    page.before,
    limit + 1,
    page.offset,
  );
  return makePage(rows.map(toConversation), limit, page.cursorOf);
}

export const listOpenings = (
  { connection }: StoreContext,
  conversationIds: readonly number[],
  limit: number,
): Opening[] => connection.all<Opening>(OPENINGS, JSON.stringify(conversationIds), limit);

export function readConversation(
  { connection }: StoreContext,
  id: number,
  owner?: string,
): ConversationRow | null {
  const row = connection.get<ConversationColumns>(SELECT_CONVERSATION, id, owner ?? null);
  return row ? toConversation(row) : null;
}

export function listMessages({ connection }: StoreContext, request: ListMessages): Page<MessageRow> {
  const newest = request.direction === "newest";
  const keys = request.order === "position" ? ["m.position", "m.seq"] : ["m.seq"];
  const tuple = keys.join(", ");
  const limitValue = newest ? Number.MAX_SAFE_INTEGER : -1;
  const from = request.after === null ? keys.map(() => limitValue) : parseCursor(request.after, keys.length);
  const parameters = keys.map((_, index) => `?${index + 4}`).join(", ");
  const sql = `
    SELECT ${MESSAGE_COLUMNS} ${MESSAGE_SOURCE} JOIN conversations c ON c.conversation_id = m.conversation_id
    WHERE m.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2) AND (${tuple}) ${newest ? "<" : ">"} (${parameters})
    ORDER BY ${keys.map((key) => `${key} ${newest ? "DESC" : "ASC"}`).join(", ")} LIMIT ?3`;
  const range = [request.conversationId, request.owner ?? null, request.limit + 1, ...from];
  const rows = connection.all<MessageColumns>(sql, ...range);
  return makePage(rows.map(toMessage), request.limit, (row) =>
    request.order === "position" ? `${row.position}.${row.seq}` : `${row.seq}`,
  );
}

const OUTLINE = `
  SELECT m.message_id, m.seq, m.position, CASE WHEN m.hidden_now = 0 AND m.revises IS NULL THEN m.tokens ELSE 0 END, m.created_at, m.role,
         m.message_id NOT IN (SELECT u.message_id FROM messages u WHERE u.conversation_id = ?1 AND u.dated = 0)
  FROM conversations c JOIN messages m USING (conversation_id)
  WHERE c.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2) AND (m.position, m.seq) > (?3, ?4)
  ORDER BY m.position, m.seq LIMIT ?5`;

export function readOutline({ connection }: StoreContext, request: OutlineRequest): Outline {
  const { conversationId, owner = null, after, limit } = request;
  const rows = connection.list<OutlineColumns>(OUTLINE, conversationId, owner, ...(after ?? [-1, -1]), limit);
  return toMessageOutline(rows);
}

/** Both walk only the index of positions, so that an index far inside costs milliseconds. */
const IDS_AT = `
  SELECT m.message_id AS id FROM conversations c JOIN messages m USING (conversation_id)
  WHERE c.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2)
  ORDER BY m.position, m.seq LIMIT ?3 OFFSET ?4`;
const NUMBER_OF = `
  SELECT o.conversation_id AS conversationId,
         (SELECT count(*) FROM messages m
          WHERE m.conversation_id = o.conversation_id AND (m.position, m.seq) < (o.position, o.seq)) AS number
  FROM messages o JOIN conversations c USING (conversation_id)
  WHERE o.message_id = ?1 AND (?2 IS NULL OR c.owner = ?2)`;

export function listMessageIds(
  { connection }: StoreContext,
  { conversationId, at, limit, owner }: { conversationId: number; at: number; limit: number; owner?: string },
): number[] {
  return connection.all<{ id: number }>(IDS_AT, conversationId, owner ?? null, limit, at).map(({ id }) => id);
}

export function locateMessage(
  { connection }: StoreContext,
  messageId: number,
  owner?: string,
): { conversationId: number; number: number } | null {
  return (
    connection.get<{ conversationId: number; number: number }>(NUMBER_OF, messageId, owner ?? null) ?? null
  );
}

export function readMessage(
  { connection, files }: StoreContext,
  messageId: number,
  owner?: string,
): MessageBody | null {
  return connection.read(() => {
    const row = connection.get<MessageColumns & StoredBody>(SELECT_MESSAGE, messageId, owner ?? null);
    if (!row) return null;
    const parts = readParts(connection, messageId);
    const bytes = restoreBytes(row, parts, (path) => files.read(path));
    return { row: toMessage(row), parts: parts.map(toPart), bytes };
  });
}

/** The arrival bytes: the body decompressed, each payload put back from its file. */
export function restoreBytes(
  row: StoredBody,
  parts: readonly PartRecord[],
  readBlob: (name: string) => Uint8Array | null,
): Uint8Array {
  const payloads = listPayloads(parts);
  const contents = payloads.map(({ file }) => (file === null ? null : readBlob(file.storage_path)));
  return putTogether(row, payloads, contents);
}

/** What was cut out of a message, as far as its references say. */
export const toCuts = (parts: readonly PartRecord[]): CutPayload[] => toCutPayloads(listPayloads(parts));

/** The first version of each message, with the content of its newest. */
const SELECT_SHOWN = `
  SELECT f.message_id, f.seq, f.created_at, v.message_id, v.body, v.encoding, v.arrival_bytes, v.tokens
  FROM json_each(?1) j CROSS JOIN messages f ON f.message_id = j.value
  CROSS JOIN messages v ON v.message_id = coalesce(f.newest, f.message_id) ORDER BY j.key`;
const PAYLOADS_OF = `
  SELECT p.message_id, p.at, p.length, p.file_id, f.file_name, f.mime_type, f.byte_size, f.exploration_summary
  FROM json_each(?1) j CROSS JOIN message_parts p ON p.message_id = j.value JOIN large_files f USING (file_id)
  ORDER BY p.message_id, p.at`;

type ShownRow = readonly [
  messageId: number,
  seq: number,
  createdAt: number,
  versionId: number,
  body: Uint8Array,
  encoding: number,
  arrivalBytes: number,
  tokens: number,
];

export function readShown(
  { connection, bodies }: StoreContext,
  messageIds: readonly number[],
): ShownMessage[] {
  if (messageIds.length === 0) return [];
  return connection.read(() => {
    const rows = connection.list<ShownRow>(SELECT_SHOWN, JSON.stringify(messageIds));
    const decoded = rows.map(([, , , versionId, body, encoding, arrivalBytes]) =>
      bodies.decode(versionId, { body, encoding }, arrivalBytes),
    );
    // A body as long as the arrival has no payload in a file.
    const cut = rows.filter((row, at) => decoded[at]?.byteLength !== row[6]);
    const references = readReferences(
      connection,
      cut.map((row) => row[3]),
    );
    return rows.map(([messageId, seq, createdAt, versionId, , , , tokens], at) => {
      const body = must(decoded[at], "a body");
      const own = references.get(versionId);
      return own === undefined
        ? { messageId, seq, createdAt, bytes: body, tokens }
        : { messageId, seq, createdAt, bytes: spliceRanges(body, own), tokens: null };
    });
  });
}

/** The references that replace payloads in shown messages. */
function readReferences(
  connection: Connection,
  versionIds: readonly number[],
): ReadonlyMap<number, Parameters<typeof spliceRanges>[1]> {
  if (versionIds.length === 0) return new Map();
  const rows = connection.all<ReferenceColumns & { readonly message_id: number }>(
    PAYLOADS_OF,
    JSON.stringify(versionIds),
  );
  const parts = Map.groupBy(rows, (part) => part.message_id);
  return new Map(versionIds.map((id) => [id, (parts.get(id) ?? []).map(toReference)]));
}

export function readRevisions({ connection }: StoreContext, messageId: number, owner?: string): MessageRow[] {
  return connection.all<MessageColumns>(SELECT_REVISIONS, messageId, owner ?? null).map(toMessage);
}

export function readFile({ connection }: StoreContext, fileId: string, owner?: string): LargeFileRow | null {
  const row = connection.get<Row<"large_files">>(SELECT_FILE, fileId, owner ?? null);
  return row ? toLargeFile(row) : null;
}

export function readFileContent(context: StoreContext, fileId: string, owner?: string): Uint8Array | null {
  const file = readFile(context, fileId, owner);
  return file ? context.files.read(file.blob) : null;
}

export function readSession(
  { connection }: StoreContext,
  owner: string | null,
  sessionId: string,
): SessionState | null {
  const ref = findSessionRef(connection, owner, sessionId);
  if (ref === null) return null;
  const row = connection.get<{
    cursor: string | null;
    last_event: string | null;
    base_tokens: number | null;
    conversation_id: number | null;
  }>(SELECT_SESSION_STATE, ref);
  if (!row) return null;
  return {
    cursor: row.cursor,
    conversationId: row.conversation_id,
    lastEventId: row.last_event,
    baseTokens: row.base_tokens,
  };
}

export function knownEvents(
  { connection }: StoreContext,
  owner: string | null,
  sessionId: string,
  eventIds: readonly string[],
): string[] {
  const ref = findSessionRef(connection, owner, sessionId);
  if (ref === null) return [];
  return connection.read(() =>
    eventIds.filter((eventId) => findEvent(connection, ref, eventId) !== undefined),
  );
}

export function findSessions({ connection }: StoreContext, owner: string, eventId: string): string[] {
  return connection
    .all<{ session_id: string }>(SESSIONS_WITH, owner, eventId)
    .map(({ session_id: sessionId }) => sessionId);
}

function findSessionRef(connection: Connection, owner: string | null, sessionId: string): number | null {
  if (owner !== null) return findSession(connection, owner, sessionId);
  return connection.get<{ session_ref: number }>(SESSION_BY_ID, sessionId)?.session_ref ?? null;
}

export function readStatus({ connection, index }: StoreContext, owner?: string): ArchiveStatus {
  const scope = owner ?? null;
  const totals = connection.get<Record<string, number | null>>(STATUS_CONVERSATIONS, scope) ?? {};
  const hidden = countReasons(connection.all<{ hidden: number; n: number }>(COUNT_HIDDEN, scope));
  const files = connection.get<{ n: number; bytes: number }>(COUNT_FILES, scope);
  return {
    databasePath: connection.path,
    databaseBytes: fileBytes(connection.path) + fileBytes(`${connection.path}-wal`),
    filesBytes: files?.bytes ?? 0,
    arrivalBytes: totals.arrival ?? 0,
    schemaVersion: SCHEMA_VERSION,
    conversations: totals.conversations ?? 0,
    activeConversations: totals.active ?? 0,
    messages: totals.messages ?? 0,
    hidden,
    revisions: connection.get<{ n: number }>(COUNT_REVISIONS, scope)?.n ?? 0,
    summaries: totals.summaries ?? 0,
    largeFiles: files?.n ?? 0,
    tokens: totals.tokens ?? 0,
    lastStoredAt: totals.stored_at ?? null,
    lastMessageAt: totals.last_at ?? null,
    index: index.state(),
  };
}

const fileBytes = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
