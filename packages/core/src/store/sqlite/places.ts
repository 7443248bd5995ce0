/** Documents by id, with what stands beside them: places for the ranking, texts for showing. Nothing outside the scope is given. */
import type {
  DocumentPlace,
  FoundSummary,
  IdRange,
  MessageText,
  RecallScope,
  ScannedText,
} from "../recall.ts";
import type { DocumentKind } from "../text-index.ts";
import { PLAIN } from "../body.ts";
import type { LargeFileRow } from "../store.ts";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { resolveConversations } from "./find-clues.ts";
import { dropBeyond } from "./inherited.ts";
import { readFile, restoreBytes, SELECT_PARTS } from "./read.ts";

const IS_CURRENT = `
  m.forgotten_at IS NULL AND m.newest IS NULL
  AND (m.revises IS NULL OR m.message_id = (SELECT f.newest FROM messages f WHERE f.message_id = m.revises))`;
const IN_SCOPE = `
  (?1 IS NULL OR m.conversation_id IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR m.created_at >= ?2) AND (?3 IS NULL OR m.created_at < ?3) AND (?4 IS NULL OR m.role = ?4)`;
/** A revision stands where its first version stood. */
const STANDS_AT = "coalesce((SELECT f.seq FROM messages f WHERE f.message_id = m.revises), m.seq)";
const SEEDS = `
  SELECT m.message_id AS id, m.conversation_id, ${STANDS_AT} AS place
  FROM json_each(?5) j JOIN messages m ON m.message_id = j.value WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
/** The first bytes of a row's lengths; as text, because thousands of small blobs are slow to make. */
const LENGTH = "hex(substr(d.sz, 1, 4))";
/** What arrived beside the seeds, themselves included, each once. The length of the words is the first number the index keeps for a row. */
const BESIDE = (table: string): string => `
  WITH seeds AS MATERIALIZED (${SEEDS}),
  rows AS (
    SELECT m.message_id FROM seeds s JOIN messages m
    ON m.conversation_id = s.conversation_id AND m.seq BETWEEN s.place - ?6 AND s.place + ?6
    UNION SELECT id FROM seeds)
  SELECT m.message_id AS id, m.conversation_id, m.session_ref, ${STANDS_AT} AS place, m.created_at, ${LENGTH}
  FROM rows r JOIN messages m USING (message_id) LEFT JOIN ${table}_docsize d ON d.id = m.message_id
  WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
const SUMMARY_SCOPE = `
  s.state IN ('cover', 'reserve') AND (?1 IS NULL OR s.conversation_id IN (SELECT value FROM json_each(?1)))
  AND (?2 IS NULL OR s.latest_at >= ?2) AND (?3 IS NULL OR s.latest_at < ?3)`;
/** By the index alone: a way through the texts, for thousands of summaries, would take longer than finding them. */
const SUMMARY_SOURCE = `
  FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s INDEXED BY summary_times ON s.summary_id = r.summary_id AND s.depth >= 0`;
const SUMMARY_PLACES = (table: string): string => `
  SELECT r.summary_ref AS id, s.conversation_id, s.latest_at, ${LENGTH} ${SUMMARY_SOURCE}
  LEFT JOIN ${table}_docsize d ON d.id = r.summary_ref WHERE ${SUMMARY_SCOPE}`;
const TIMES = `
  SELECT json_group_array(json_array(m.message_id, m.created_at)) AS times
  FROM json_each(?5) j JOIN messages m ON m.message_id = j.value WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
const SUMMARY_TIMES = `
  SELECT json_group_array(json_array(r.summary_ref, s.latest_at)) AS times ${SUMMARY_SOURCE} WHERE ${SUMMARY_SCOPE}`;
const SUMMARIES = `
  SELECT r.summary_ref, s.* FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s USING (summary_id) WHERE ${SUMMARY_SCOPE} ORDER BY j.key`;
const ALL_SUMMARIES = `
  SELECT r.summary_ref, s.* FROM summaries s JOIN summary_refs r USING (summary_id) WHERE ${SUMMARY_SCOPE} ORDER BY s.latest_at DESC`;
const PLACE_OF = "SELECT conversation_id, position, seq FROM messages WHERE message_id = ?";
const RUN = `
  SELECT message_id AS id FROM messages
  WHERE conversation_id = ?1 AND (position, seq) >= (?2, ?3) AND (position, seq) <= (?4, ?5)
    AND revises IS NULL AND forgotten_at IS NULL
  ORDER BY position, seq`;
const SUMMARIES_OF = `
  SELECT l.summary_id AS id FROM summary_messages l JOIN summaries s USING (summary_id)
  WHERE l.message_id = ? AND s.state IN ('cover', 'reserve') ORDER BY s.depth, l.summary_id`;
const FILE_MESSAGES =
  "SELECT DISTINCT message_id AS id FROM message_parts WHERE file_id = ? ORDER BY message_id";
const FILES = `
  SELECT f.file_id FROM large_files f
  WHERE (?1 IS NULL OR f.conversation_id IN (SELECT value FROM json_each(?1))) AND (?2 IS NULL OR f.created_at >= ?2)
    AND (?3 IS NULL OR f.created_at < ?3) AND (?4 IS NULL OR f.file_id IN (SELECT value FROM json_each(?4)))
  ORDER BY f.created_at DESC, f.file_id`;
const HAS_PAYLOAD =
  "EXISTS (SELECT 1 FROM message_parts p WHERE p.message_id = m.message_id AND p.file_id IS NOT NULL)";
const TEXT_COLUMNS = `
  m.message_id, m.conversation_id, m.seq, m.position, m.event_id, m.role, m.tokens, m.created_at, m.body, m.encoding,
  m.arrival_bytes, ${HAS_PAYLOAD} AS has_payload`;
/** A body that is stored as it came is text already. */
const SCANNED = `
  m.message_id, m.seq, m.role, m.created_at, m.encoding, m.arrival_bytes,
  iif(m.encoding = ${PLAIN} AND length(m.body) = m.arrival_bytes, CAST(m.body AS TEXT), m.body)`;
const TEXTS_WITHIN = `
  SELECT ${SCANNED} FROM json_each(?5) j
  CROSS JOIN messages m ON m.message_id BETWEEN j.value ->> 0 AND j.value ->> 1
  WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
const TEXTS_AFTER = `
  SELECT ${SCANNED} FROM messages m WHERE m.conversation_id = ?1 AND m.seq > ?2 AND ${IS_CURRENT} ORDER BY m.seq LIMIT ?3`;
const TEXTS = `
  SELECT ${TEXT_COLUMNS} FROM json_each(?5) j JOIN messages m ON m.message_id = j.value WHERE ${IN_SCOPE} AND m.forgotten_at IS NULL ORDER BY j.key`;
const WRITTEN = `
  SELECT m.message_id AS id, m.created_at FROM messages m INDEXED BY messages_by_time
  WHERE m.conversation_id = ?1 AND m.created_at >= ?2 AND m.created_at < ?3 ORDER BY m.created_at DESC LIMIT ?4`;
const ALL_CONVERSATIONS = "SELECT conversation_id AS id FROM conversations ORDER BY conversation_id DESC";
const SCOPE = `
  SELECT conversation_id AS id FROM conversations
  WHERE (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR session_key = ?2) ORDER BY conversation_id DESC`;

/** Summaries have no neighbours: they stand farther apart than any reaches. */
const GAP = 100;

type PlaceRow = readonly [
  id: number,
  conversationId: number,
  sessionRef: number,
  place: number,
  createdAt: number,
  length: string,
];
type SummaryPlaceRow = readonly [id: number, conversationId: number, latestAt: number, length: string];

type ScopeValues = [string | null, number | null, number | null, string | null];

function bindScope(connection: Connection, scope: RecallScope): ScopeValues {
  const conversations = resolveConversations(connection, scope);
  return [
    conversations === null ? null : JSON.stringify(conversations),
    scope.since ?? null,
    scope.before ?? null,
    scope.role ?? null,
  ];
}

export function readPlaces(
  { connection, index }: StoreContext,
  request: { kind: DocumentKind; ids: readonly number[]; reach: number; scope: RecallScope },
): DocumentPlace[] {
  return connection.read(() => {
    const scope = bindScope(connection, request.scope);
    if (request.kind === "summary") {
      const found = readSummaryPlaces(connection, index.summaryTable, scope, request.ids);
      return dropBeyond(connection, request.scope, "summary", found, ({ id }) => id);
    }
    const rows = connection.walk<PlaceRow>(
      BESIDE(index.table),
      ...scope,
      JSON.stringify(request.ids),
      request.reach,
    );
    return groupPlaces(dropBeyond(connection, request.scope, "message", rows, ([id]) => id));
  });
}

/** Messages of one session and conversation are a group; their order of arrival numbers them. */
function groupPlaces(rows: Iterable<PlaceRow>): DocumentPlace[] {
  const groups = new Map<string, number>();
  return Array.from(rows, ([id, conversationId, sessionRef, position, createdAt, length]) => {
    const name = `${sessionRef}.${conversationId}`;
    let group = groups.get(name);
    if (group === undefined) groups.set(name, (group = groups.size));
    return { id, conversationId, group, position, words: readLength(length), createdAt };
  });
}

function readSummaryPlaces(
  connection: Connection,
  table: string,
  [conversations, since, before]: ScopeValues,
  ids: readonly number[],
): DocumentPlace[] {
  const sql = SUMMARY_PLACES(table);
  const rows = connection.walk<SummaryPlaceRow>(sql, conversations, since, before, JSON.stringify(ids));
  return Array.from(rows, ([id, conversationId, createdAt, length], at) => ({
    id,
    conversationId,
    group: conversationId,
    position: at * GAP,
    words: readLength(length),
    createdAt,
  }));
}

/** The index keeps the length of each column as a number of seven bits a byte, the highest first; the first is the words. */
function readLength(hex: string): number {
  let length = 0;
  for (let at = 0; at < hex.length; at += 2) {
    const byte = Number.parseInt(hex.slice(at, at + 2), 16);
    length = length * 128 + (byte & 0x7f);
    if ((byte & 0x80) === 0) break;
  }
  return length;
}

export function readTimes(
  { connection }: StoreContext,
  { kind, ids, scope }: { kind: DocumentKind; ids: readonly number[]; scope: RecallScope },
): { id: number; createdAt: number }[] {
  return connection.read(() => {
    const [conversations, since, before, role] = bindScope(connection, scope);
    const list = JSON.stringify(ids);
    const row =
      kind === "message"
        ? connection.get<{ times: string }>(TIMES, conversations, since, before, role, list)
        : connection.get<{ times: string }>(SUMMARY_TIMES, conversations, since, before, list);
    const times = JSON.parse(row?.times ?? "[]") as [number, number][];
    return dropBeyond(connection, scope, kind, times, ([id]) => id).map(([id, createdAt]) => ({
      id,
      createdAt,
    }));
  });
}

export function readTexts(
  context: StoreContext,
  messageIds: readonly number[],
  scope: RecallScope,
): MessageText[] {
  const { connection } = context;
  return connection.read(() => {
    const rows = connection.all(TEXTS, ...bindScope(connection, scope), JSON.stringify(messageIds));
    return dropBeyond(connection, scope, "message", rows, (row) => row.message_id as number).map((row) =>
      toText(context, row),
    );
  });
}

export function readTextsAfter(
  context: StoreContext,
  conversationId: number,
  afterSeq: number,
  limit: number,
): ScannedText[] {
  const { connection } = context;
  // Everything passes through here, so rows come without the names of their columns.
  return connection.read(() =>
    Array.from(connection.walk<ScannedRow>(TEXTS_AFTER, conversationId, afterSeq, limit), (row) =>
      toScannedText(context, row),
    ),
  );
}

export function readTextsWithin(
  context: StoreContext,
  ranges: readonly IdRange[],
  scope: RecallScope,
): ScannedText[] {
  const { connection } = context;
  return connection.read(() => {
    const values = [...bindScope(connection, scope), JSON.stringify(ranges)];
    const rows = connection.walk<ScannedRow>(TEXTS_WITHIN, ...values);
    return dropBeyond(connection, scope, "message", rows, ([messageId]) => messageId).map((row) =>
      toScannedText(context, row),
    );
  });
}

function toScannedText(context: StoreContext, row: ScannedRow): ScannedText {
  const [messageId, seq, role, createdAt, encoding, arrival_bytes, body] = row;
  if (typeof body === "string") return { messageId, seq, role, createdAt, arrival: body };
  const stored = { message_id: messageId, body, encoding, arrival_bytes };
  const whole = restore(context, stored, false);
  const bytes = whole.byteLength === arrival_bytes ? whole : restore(context, stored, true);
  return {
    messageId,
    seq,
    role,
    createdAt,
    arrival: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(),
  };
}

type ScannedRow = readonly [
  messageId: number,
  seq: number,
  role: string,
  createdAt: number,
  encoding: number,
  arrivalBytes: number,
  body: Uint8Array | string,
];

function restore({ connection, files }: StoreContext, row: Row, hasPayload: boolean): Uint8Array {
  const parts = hasPayload ? connection.all(SELECT_PARTS, row.message_id as number) : [];
  return restoreBytes(row, parts, (path) => files.read(path));
}

function toText(context: StoreContext, row: Row): MessageText {
  return {
    messageId: row.message_id as number,
    conversationId: row.conversation_id as number,
    seq: row.seq as number,
    position: row.position as number,
    eventId: row.event_id as string,
    role: row.role as string,
    tokens: row.tokens as number,
    createdAt: row.created_at as number,
    bytes: restore(context, row, row.has_payload === 1),
  };
}

export function readFoundSummaries(
  { connection }: StoreContext,
  refs: readonly number[] | null,
  scope: RecallScope,
): FoundSummary[] {
  return connection.read(() => {
    const [conversations, since, before] = bindScope(connection, scope);
    const rows =
      refs === null
        ? connection.all(ALL_SUMMARIES, conversations, since, before)
        : connection.all(SUMMARIES, conversations, since, before, JSON.stringify(refs));
    return dropBeyond(connection, scope, "summary", rows.map(toFoundSummary), ({ ref }) => ref);
  });
}

export function listFiles(
  context: StoreContext,
  scope: RecallScope,
  fileIds: readonly string[] | null,
): LargeFileRow[] {
  const { connection } = context;
  return connection.read(() => {
    const [conversations, since, before] = bindScope(connection, scope);
    const wanted = fileIds === null ? null : JSON.stringify(fileIds);
    const isInScope = (fileId: string): boolean =>
      scope.inherited === undefined ||
      dropBeyond(connection, scope, "message", readFileMessages(context, fileId), (id) => id).length > 0;
    return connection
      .all<{ file_id: string }>(FILES, conversations, since, before, wanted)
      .filter(({ file_id }) => isInScope(file_id))
      .flatMap(({ file_id }) => readFile(context, file_id) ?? []);
  });
}

export function toFoundSummary(row: Row): FoundSummary {
  return {
    ref: row.summary_ref as number,
    summaryId: row.summary_id as string,
    conversationId: row.conversation_id as number,
    kind: row.kind as FoundSummary["kind"],
    depth: row.depth as number,
    tokens: row.tokens as number,
    earliestAt: row.earliest_at as number,
    latestAt: row.latest_at as number,
    createdAt: row.created_at as number,
    content: row.content as string,
  };
}

export function findWritten(
  { connection }: StoreContext,
  request: { scope: RecallScope; ranges: readonly { since: number; before: number }[]; limit: number },
): { messageId: number; createdAt: number }[] {
  return connection.read(() => {
    const conversations =
      resolveConversations(connection, request.scope) ??
      connection.all<{ id: number }>(ALL_CONVERSATIONS).map(({ id }) => id);
    const { since = 0, before = Number.MAX_SAFE_INTEGER } = request.scope;
    const found = new Map<number, number>();
    for (const range of request.ranges) {
      for (const conversation of conversations) {
        const room = request.limit - found.size;
        if (room <= 0) break;
        const bounds = [Math.max(since, range.since), Math.min(before, range.before)] as const;
        const rows = connection.all<{ id: number; created_at: number }>(
          WRITTEN,
          conversation,
          ...bounds,
          room,
        );
        for (const row of dropBeyond(connection, request.scope, "message", rows, ({ id }) => id))
          found.set(row.id, row.created_at);
      }
    }
    return [...found].map(([messageId, createdAt]) => ({ messageId, createdAt }));
  });
}

export function listRun({ connection }: StoreContext, firstId: number, lastId: number): number[] {
  return connection.read(() => {
    const ends = [firstId, lastId]
      .flatMap(
        (id) =>
          connection.get<{ conversation_id: number; position: number; seq: number }>(PLACE_OF, id) ?? [],
      )
      .toSorted((a, b) => a.position - b.position || a.seq - b.seq);
    const [first, last] = ends;
    if (!first || !last || first.conversation_id !== last.conversation_id) return [];
    return connection
      .all<{ id: number }>(RUN, first.conversation_id, first.position, first.seq, last.position, last.seq)
      .map(({ id }) => id);
  });
}

export function listSummariesOf({ connection }: StoreContext, messageId: number): string[] {
  return connection.all<{ id: string }>(SUMMARIES_OF, messageId).map(({ id }) => id);
}

export function readFileMessages({ connection }: StoreContext, fileId: string): number[] {
  return connection.all<{ id: number }>(FILE_MESSAGES, fileId).map(({ id }) => id);
}

export function listScope(
  { connection }: StoreContext,
  request: { owner?: string; sessionKey?: string },
): number[] {
  return connection
    .all<{ id: number }>(SCOPE, request.owner ?? null, request.sessionKey ?? null)
    .map(({ id }) => id);
}
