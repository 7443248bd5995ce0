/** Documents by id, with their neighbours: candidates for the ranking, texts for showing. Nothing outside the scope is returned. */
import {
  toCandidates,
  must,
  PLAIN,
  toFoundSummary,
  toSummaryCandidate,
  toText,
} from "@lossless/core/adapter";
import type { FoundSummaryColumns, PartRecord, CandidateColumns, TextColumns } from "@lossless/core/adapter";
import type {
  ConversationFilter,
  DatedId,
  DocumentKind,
  CandidateDocument,
  CandidateRequest,
  FoundSummary,
  IdRange,
  LargeFileRow,
  MessageText,
  PlacedTime,
  RecallScope,
  Row,
  ScannedText,
  Store,
  TiedDocuments,
} from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { dropBeyond } from "./inherited.ts";
import { bindFilter, CHOSEN, PARTS_OF, READ_AT, readFile, restoreBytes } from "./read.ts";

/** Of the ids of a block of `message_times`. */
const TIME_BLOCK_BITS = 12;
/** So many times are read without asking first which of them can be among the newest. */
const READ_AT_ONCE = 2_000;

const IS_CURRENT = `
  m.forgotten_at IS NULL AND m.newest IS NULL
  AND (m.revises IS NULL OR m.message_id = (SELECT f.newest FROM messages f WHERE f.message_id = m.revises))`;
/** The conversations of a scope, which is an object with an owner and ids, either of which may be absent. */
const SCOPED = `
  SELECT conversation_id FROM conversations
  WHERE (?1 ->> 'owner' IS NULL OR owner = ?1 ->> 'owner')
    AND (?1 -> 'ids' IS NULL OR conversation_id IN (SELECT value FROM json_each(?1, '$.ids')))`;
const inScope = (role: string): string => `
  (?1 IS NULL OR m.conversation_id IN (${SCOPED}))
  AND (?2 IS NULL OR m.created_at >= ?2) AND (?3 IS NULL OR m.created_at < ?3) AND (?4 IS NULL OR ${role} = ?4)`;
const IN_SCOPE = inScope("m.role");
/** Places are read from their index alone: rows are as long as their texts. Who speaks is read from the row, and only where it is asked for. */
const ROLE = "(SELECT r.role FROM messages r WHERE r.message_id = m.message_id)";
const placesOf = (ids: string): string =>
  `FROM ${ids} CROSS JOIN messages m INDEXED BY message_places ON m.message_id = j.value`;
const IS_PLACED = `m.message_id > 0 AND ${inScope(ROLE)} AND ${IS_CURRENT}`;
/** A revision stands where its first version stood. */
const STANDS_AT = "coalesce((SELECT f.seq FROM messages f WHERE f.message_id = m.revises), m.seq)";
const PLACED = `${placesOf("json_each(?5) j")} WHERE ${IS_PLACED}`;
const SEEDS = `SELECT m.message_id AS id, m.conversation_id, ${STANDS_AT} AS stands_at ${PLACED}`;
const TIMED = `SELECT m.message_id, m.created_at, ${STANDS_AT} ${PLACED}`;
/** The time of the newest message in each of some blocks of ids, whoever may see it. */
const LATEST = `
  SELECT j.value, (SELECT m.created_at FROM messages m INDEXED BY message_times
                   WHERE m.message_id > 0 AND m.message_id >> ${TIME_BLOCK_BITS} = j.value ORDER BY m.created_at DESC LIMIT 1)
  FROM json_each(?) j`;
/** The first bytes of a row's lengths; as text, because thousands of small blobs are slow to make. */
const LENGTH = "hex(substr(d.sz, 1, 4))";
/** Documents that arrived next to the seeds, and the seeds, each once. The length of the words is the first number in the index row. */
const BESIDE = (table: string): string => `
  WITH seeds AS MATERIALIZED (${SEEDS}),
  rows AS (
    SELECT m.message_id AS value FROM seeds s JOIN messages m
    ON m.conversation_id = s.conversation_id AND m.seq BETWEEN s.stands_at - ?6 AND s.stands_at + ?6 WHERE ?6 > 0
    UNION SELECT id FROM seeds)
  SELECT m.message_id AS id, m.conversation_id, m.session_ref, ${STANDS_AT} AS stands_at, m.created_at, ${LENGTH}, iif(?7, ${ROLE}, NULL)
  ${placesOf("rows j")} LEFT JOIN ${table}_docsize d ON d.id = m.message_id WHERE ${IS_PLACED}`;
const SUMMARY_SCOPE = `
  s.state IN ('cover', 'reserve') AND (?1 IS NULL OR s.conversation_id IN (${SCOPED}))
  AND (?2 IS NULL OR s.latest_at >= ?2) AND (?3 IS NULL OR s.latest_at < ?3)`;
/** Uses the index alone: for thousands of summaries, reading through the texts would take longer than finding them. */
const SUMMARY_SOURCE = `
  FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s INDEXED BY summary_times ON s.summary_id = r.summary_id AND s.depth >= 0`;
const SUMMARY_PLACES = (table: string): string => `
  SELECT r.summary_ref AS id, s.conversation_id, s.latest_at, ${LENGTH} ${SUMMARY_SOURCE}
  LEFT JOIN ${table}_docsize d ON d.id = r.summary_ref WHERE ${SUMMARY_SCOPE} ORDER BY r.summary_ref`;
const NEWEST_SUMMARIES = `
  SELECT r.summary_ref AS id ${SUMMARY_SOURCE} WHERE ${SUMMARY_SCOPE} ORDER BY s.latest_at DESC, r.summary_ref DESC LIMIT ?5`;
const TIMES = `
  SELECT json_group_array(json_array(m.message_id, m.created_at, m.conversation_id, ${STANDS_AT})) AS times ${PLACED}`;
const SUMMARY_TIMES = `
  SELECT json_group_array(json_array(r.summary_ref, s.latest_at, s.conversation_id, 0)) AS times ${SUMMARY_SOURCE} WHERE ${SUMMARY_SCOPE}`;
const SUMMARIES = `
  SELECT r.summary_ref, s.* FROM json_each(?4) j JOIN summary_refs r ON r.summary_ref = j.value
  JOIN summaries s USING (summary_id) WHERE ${SUMMARY_SCOPE} ORDER BY j.key`;
const PLACE_OF = "SELECT conversation_id, position, seq FROM messages WHERE message_id = ?";
const RANGE = `
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
  WHERE (?1 IS NULL OR f.conversation_id IN (${SCOPED})) AND (?2 IS NULL OR f.created_at >= ?2)
    AND (?3 IS NULL OR f.created_at < ?3) AND (?4 IS NULL OR f.file_id IN (SELECT value FROM json_each(?4)))
  ORDER BY f.created_at DESC, f.file_id`;
const TEXT_COLUMNS = `
  m.message_id, m.conversation_id, m.seq, m.position, m.event_id, m.role, m.tokens, ${READ_AT} AS created_at, m.body, m.encoding,
  m.arrival_bytes`;
/** A body that is stored uncompressed is already text. */
const SCANNED = `
  m.message_id, m.seq, m.role, m.created_at, m.encoding, m.arrival_bytes,
  iif(m.encoding = ${PLAIN} AND length(m.body) = m.arrival_bytes, CAST(m.body AS TEXT), m.body)`;
const TEXTS_WITHIN = `
  SELECT ${SCANNED} FROM json_each(?5) j
  CROSS JOIN messages m ON m.message_id BETWEEN j.value ->> 0 AND j.value ->> 1
  WHERE ${IN_SCOPE} AND ${IS_CURRENT}`;
/**
 * From indexes alone if all are listed: rows are as long as their texts. If ranges are given, the plus prevents SQLite from walking whole
 * conversations for each of them.
 */
const TIMED_MESSAGES = `
  FROM messages m INDEXED BY messages_by_time
  WHERE m.conversation_id IN (${SCOPED}) AND (?2 IS NULL OR m.created_at >= ?2) AND (?3 IS NULL OR m.created_at < ?3)`;
const NEWEST_MESSAGES = `
  SELECT json_group_array(json_array(id, created_at)) AS times FROM (
    SELECT m.message_id AS id, m.created_at ${TIMED_MESSAGES} ORDER BY m.created_at DESC, m.message_id DESC LIMIT ?4)`;
const NEWEST = {
  message: {
    all: `SELECT json_group_array(json_array(m.message_id, m.created_at)) AS times ${TIMED_MESSAGES}`,
    within: `
      SELECT json_group_array(json_array(m.message_id, m.created_at)) AS times FROM json_each(?4) j
      CROSS JOIN messages m ON m.message_id BETWEEN j.value ->> 0 AND j.value ->> 1
      WHERE +m.conversation_id IN (${SCOPED})
        AND (?2 IS NULL OR m.created_at >= ?2) AND (?3 IS NULL OR m.created_at < ?3)`,
  },
  summary: {
    all: `
      SELECT json_group_array(json_array(r.summary_ref, s.latest_at)) AS times
      FROM summary_refs r JOIN summaries s INDEXED BY summary_times ON s.summary_id = r.summary_id AND s.depth >= 0
      WHERE ${SUMMARY_SCOPE}`,
    within: `
      SELECT json_group_array(json_array(r.summary_ref, s.latest_at)) AS times FROM json_each(?4) j
      CROSS JOIN summary_refs r ON r.summary_ref BETWEEN j.value ->> 0 AND j.value ->> 1
      JOIN summaries s INDEXED BY summary_times ON s.summary_id = r.summary_id AND s.depth >= 0
      WHERE ${SUMMARY_SCOPE}`,
  },
} as const;
const TEXTS = `
  SELECT ${TEXT_COLUMNS} FROM json_each(?5) j JOIN messages m ON m.message_id = j.value
  JOIN conversations c ON c.conversation_id = m.conversation_id WHERE ${IN_SCOPE} AND m.forgotten_at IS NULL ORDER BY j.key`;
/** Ids increase with the place in a conversation, and the index has them: reading places would read the rows. */
const WRITTEN = `
  SELECT DISTINCT m.message_id AS id, m.created_at FROM json_each(?4) r CROSS JOIN (${SCOPED}) c
  CROSS JOIN messages m INDEXED BY messages_by_time ON m.conversation_id = c.conversation_id
    AND m.created_at >= max(coalesce(?2, 0), r.value ->> 'since')
    AND m.created_at < min(coalesce(?3, ${Number.MAX_SAFE_INTEGER}), r.value ->> 'before')
  ORDER BY m.created_at DESC, m.message_id DESC LIMIT ?5`;
const SCOPE = `
  SELECT c.conversation_id AS id FROM conversations c WHERE ${CHOSEN} ORDER BY c.conversation_id DESC`;

type SummaryCandidateRow = readonly [id: number, conversationId: number, latestAt: number, length: string];

type ScopeValues = [string | null, number | null, number | null, string | null];

function bindScope({ owner, conversationIds, inherited = [], ...rest }: RecallScope): ScopeValues {
  const ids = conversationIds?.concat(inherited.map((part) => part.conversationId));
  return [
    owner === undefined && ids === undefined ? null : JSON.stringify({ owner, ids }),
    rest.since ?? null,
    rest.before ?? null,
    rest.role ?? null,
  ];
}

export function readCandidates(
  { connection, index }: StoreContext,
  request: CandidateRequest,
): CandidateDocument[] {
  const scope = bindScope(request.scope);
  return index.readTables((tables) => {
    if (request.kind === "summary") {
      const found = readSummaryCandidates(connection, tables.summary, scope, request);
      return dropBeyond(connection, request.scope, "summary", found, ({ id }) => id);
    }
    const rows = connection.walk<CandidateRow>(
      BESIDE(tables.message),
      ...scope,
      JSON.stringify([...request.ids, ...pickNewest(connection, scope, request.tied)]),
      request.reach,
      request.withRoles ? 1 : 0,
    );
    const candidates = Array.from(rows, toCandidate);
    return toCandidates(dropBeyond(connection, request.scope, "message", candidates, ({ id }) => id));
  });
}

type TimedRow = readonly [id: number, createdAt: number, standsAt: number];

/**
 * The newest of messages that are tied. Most of them are too old, and reading thousands of times takes longer than finding the messages: blocks
 * of ids are looked at in the order of their newest message, until no block can have one that is newer than those found.
 */
function pickNewest(
  connection: Connection,
  scope: ScopeValues,
  { ids, count }: TiedDocuments = { ids: [], count: 0 },
): number[] {
  if (count === 0) return [];
  const read = (some: readonly number[]): TimedRow[] =>
    connection.list<TimedRow>(TIMED, ...scope, JSON.stringify(some));
  const byTime = (a: TimedRow, b: TimedRow): number => b[1] - a[1] || b[2] - a[2] || b[0] - a[0];
  const newest = (rows: TimedRow[]): TimedRow[] => rows.sort(byTime).slice(0, count);
  let best: TimedRow[] = [];
  const blocks = ids.length <= READ_AT_ONCE ? [{ ids, latestAt: 0 }] : listTimeBlocks(connection, ids);
  for (let at = 0; at < blocks.length;) {
    const some: number[] = [];
    for (; at < blocks.length && (some.length < count || at === 0); at++)
      some.push(...(blocks[at]?.ids ?? []));
    best = newest([...best, ...read(some)]);
    const last = best[count - 1];
    // One as new as the last may stand after it.
    if (last !== undefined && (blocks[at]?.latestAt ?? -Infinity) < last[1]) break;
  }
  return best.map(([id]) => id);
}

interface TimeBlock {
  readonly latestAt: number;
  readonly ids: readonly number[];
}

/** The newest first. */
function listTimeBlocks(connection: Connection, ids: readonly number[]): TimeBlock[] {
  const groups = Map.groupBy(ids, (id) => Math.floor(id / 2 ** TIME_BLOCK_BITS));
  const rows = connection.list<readonly [number, number | null]>(LATEST, JSON.stringify([...groups.keys()]));
  return rows
    .map(([block, latestAt]) => ({ latestAt: latestAt ?? -Infinity, ids: groups.get(block) ?? [] }))
    .sort((a, b) => b.latestAt - a.latestAt);
}

type CandidateRow = readonly [
  id: number,
  conversationId: number,
  sessionRef: number,
  standsAt: number,
  createdAt: number,
  length: string,
  role: string | null,
];

const toCandidate = (row: CandidateRow): CandidateColumns => {
  const [id, conversation_id, session_ref, stands_at, created_at, length, role] = row;
  return { id, conversation_id, session_ref, stands_at, created_at, words: readLength(length), role };
};

function readSummaryCandidates(
  connection: Connection,
  table: string,
  [conversations, since, before]: ScopeValues,
  { ids, tied }: CandidateRequest,
): CandidateDocument[] {
  const scope = [conversations, since, before];
  const newest = tied
    ? connection.all<{ id: number }>(NEWEST_SUMMARIES, ...scope, JSON.stringify(tied.ids), tied.count)
    : [];
  const seeds = JSON.stringify([...ids, ...newest.map(({ id }) => id)]);
  const rows = connection.walk<SummaryCandidateRow>(SUMMARY_PLACES(table), ...scope, seeds);
  return Array.from(rows, ([id, conversation_id, created_at, length], at) =>
    toSummaryCandidate({ id, conversation_id, created_at, words: readLength(length) }, at),
  );
}

/** The index stores the length of each column as a varint, seven bits a byte, highest first; the first is the words. */
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
): PlacedTime[] {
  const [conversations, since, before, role] = bindScope(scope);
  const list = JSON.stringify(ids);
  const row =
    kind === "message"
      ? connection.get<{ times: string }>(TIMES, conversations, since, before, role, list)
      : connection.get<{ times: string }>(SUMMARY_TIMES, conversations, since, before, list);
  const times = JSON.parse(row?.times ?? "[]") as [number, number, number, number][];
  return dropBeyond(connection, scope, kind, times, ([id]) => id).map(
    ([id, createdAt, conversationId, position]) => ({ id, createdAt, conversationId, position }),
  );
}

export function readTexts(
  context: StoreContext,
  messageIds: readonly number[],
  scope: RecallScope,
): MessageText[] {
  const { connection } = context;
  if (messageIds.length === 0) return [];
  const read = connection.all<TextRow>(TEXTS, ...bindScope(scope), JSON.stringify(messageIds));
  const rows = dropBeyond(connection, scope, "message", read, (row) => row.message_id);
  const bodies = restoreAll(context, rows);
  return rows.map((row, at) => toText(row, must(bodies[at], "a body")));
}

export function listNewest(
  { connection }: StoreContext,
  { kind, scope, within, limit }: Parameters<Store["listNewest"]>[0],
): DatedId[] {
  const [conversations, since, before] = bindScope(scope);
  const values = [conversations ?? "{}", since, before];
  // What forks inherited is sorted out below, so then a limit must not count here.
  const isLimited = limit !== undefined && kind === "message" && (scope.inherited ?? []).length === 0;
  const row = isLimited
    ? connection.get<{ times: string }>(NEWEST_MESSAGES, ...values, limit)
    : connection.get<{ times: string }>(
        NEWEST[kind][within === null ? "all" : "within"],
        ...values,
        ...(within === null ? [] : [JSON.stringify(within)]),
      );
  const times = JSON.parse(row?.times ?? "[]") as [number, number][];
  return dropBeyond(connection, scope, kind, times, ([id]) => id)
    .map(([id, createdAt]) => ({ id, createdAt }))
    .sort((a, b) => b.createdAt - a.createdAt || b.id - a.id)
    .slice(0, limit);
}

export function readTextsWithin(
  context: StoreContext,
  ranges: readonly IdRange[],
  scope: RecallScope,
): ScannedText[] {
  const { connection } = context;
  const values = [...bindScope(scope), JSON.stringify(ranges)];
  const rows = connection.walk<ScannedRow>(TEXTS_WITHIN, ...values);
  return toScannedTexts(
    context,
    dropBeyond(connection, scope, "message", rows, ([messageId]) => messageId),
  );
}

/** Everything passes through here, so rows come without column names. */
function toScannedTexts(context: StoreContext, rows: readonly ScannedRow[]): ScannedText[] {
  const stored = rows.flatMap(([message_id, , , , encoding, arrival_bytes, body]) =>
    typeof body === "string" ? [] : [{ message_id, body, encoding, arrival_bytes }],
  );
  const bodies = restoreAll(context, stored).values();
  return rows.map(([messageId, seq, role, createdAt, , , body]) => ({
    messageId,
    seq,
    role,
    createdAt,
    arrival: typeof body === "string" ? body : decodeText(must(bodies.next().value, "a body")),
  }));
}

const decodeText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

type ScannedRow = readonly [
  messageId: number,
  seq: number,
  role: string,
  createdAt: number,
  encoding: number,
  arrivalBytes: number,
  body: Uint8Array | string,
];

/** How a body is stored. */
type StoredBody = Pick<TextRow, "message_id" | "body" | "encoding" | "arrival_bytes">;

/** The arrival bytes of each message. Payloads in files are looked up together, however many there are. */
function restoreAll({ connection, files }: StoreContext, rows: readonly StoredBody[]): Uint8Array[] {
  const read = (name: string): Uint8Array | null => files.read(name);
  const bodies = rows.map((row) => restoreBytes(row, [], read));
  const cut = rows.filter(({ arrival_bytes }, at) => bodies[at]?.byteLength !== arrival_bytes);
  if (cut.length === 0) return bodies;
  const ids = cut.map(({ message_id }) => message_id);
  const found = connection.all<PartRecord & { readonly message_id: number }>(PARTS_OF, JSON.stringify(ids));
  const parts = Map.groupBy(found, ({ message_id }) => message_id);
  return rows.map((row, at) => {
    const own = parts.get(row.message_id);
    return own === undefined ? must(bodies[at], "a body") : restoreBytes(row, own, read);
  });
}

type TextRow = TextColumns & Pick<Row<"messages">, "body" | "encoding" | "arrival_bytes">;

export function readFoundSummaries(
  { connection }: StoreContext,
  refs: readonly number[],
  scope: RecallScope,
): FoundSummary[] {
  if (refs.length === 0) return [];
  const [conversations, since, before] = bindScope(scope);
  const asked = JSON.stringify(refs);
  const rows = connection.all<FoundSummaryColumns>(SUMMARIES, conversations, since, before, asked);
  return dropBeyond(connection, scope, "summary", rows.map(toFoundSummary), ({ ref }) => ref);
}

export function listFiles(
  context: StoreContext,
  scope: RecallScope,
  fileIds: readonly string[] | null,
): LargeFileRow[] {
  const { connection } = context;
  return connection.read(() => {
    const [conversations, since, before] = bindScope(scope);
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

export function findWritten(
  { connection }: StoreContext,
  request: { scope: RecallScope; ranges: readonly { since: number; before: number }[]; limit: number },
): { messageId: number; createdAt: number }[] {
  const [conversations, since, before] = bindScope(request.scope);
  const rows = connection.all<{ id: number; created_at: number }>(
    WRITTEN,
    conversations ?? "{}",
    since,
    before,
    JSON.stringify(request.ranges),
    request.limit,
  );
  return dropBeyond(connection, request.scope, "message", rows, ({ id }) => id).map((row) => ({
    messageId: row.id,
    createdAt: row.created_at,
  }));
}

export function listRange({ connection }: StoreContext, firstId: number, lastId: number): number[] {
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
      .all<{ id: number }>(RANGE, first.conversation_id, first.position, first.seq, last.position, last.seq)
      .map(({ id }) => id);
  });
}

export function listSummariesOf({ connection }: StoreContext, messageId: number): string[] {
  return connection.all<{ id: string }>(SUMMARIES_OF, messageId).map(({ id }) => id);
}

export function readFileMessages({ connection }: StoreContext, fileId: string): number[] {
  return connection.all<{ id: number }>(FILE_MESSAGES, fileId).map(({ id }) => id);
}

export function listScope({ connection }: StoreContext, request: ConversationFilter): number[] {
  return connection.all<{ id: number }>(SCOPE, ...bindFilter(request)).map(({ id }) => id);
}
