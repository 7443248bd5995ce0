/** Documents by id, with their neighbours: candidates for the ranking, texts for showing. Nothing outside the scope is returned. */
import {
  gatherFamily,
  toCandidates,
  must,
  toFoundSummary,
  toLargeFile,
  toSummaryCandidate,
  toText,
} from "@lossless/core/adapter";
import type { FamilyRow, FoundSummaryColumns, CandidateColumns, TextColumns } from "@lossless/core/adapter";
import type {
  ConversationFilter,
  DatedId,
  DocumentKind,
  CandidateDocument,
  CandidateRequest,
  Family,
  FoundSummary,
  IdRange,
  LargeFileRow,
  MessageText,
  PlacedTime,
  RecallParts,
  RecallScope,
  Row,
  ScannedText,
  Store,
  WithRecall,
} from "@lossless/core/ports";
import { bindInherited, NOT_BEYOND } from "./inherited.ts";
import type { Counted } from "./pending.ts";
import { bindFilter, CHOSEN, READ_AT, restoreAll, restoreAsked } from "./read.ts";
import { readRecallParts, recallPartsOf } from "./recall-parts.ts";
import type { SqlValue } from "./sql-values.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * What {@link bindScope} gives: $1 an owner, $2 conversations, $3 and $4 what they inherited, $5 and $6 times. The conversations of a scope are
 * those named and those inherited from.
 */
const SCOPED = `
  SELECT conversation_id FROM conversations
  WHERE ($1::text IS NULL OR owner = $1) AND ($2::bigint[] IS NULL OR conversation_id = ANY($2))`;
const isWithin = (column: string): string =>
  `($5::bigint IS NULL OR ${column} >= $5) AND ($6::bigint IS NULL OR ${column} < $6)`;
const isScoped = (column: string): string =>
  `($1::text IS NULL AND $2::bigint[] IS NULL OR ${column} IN (${SCOPED}))`;
/** $7 is the role. */
const IS_SPOKEN = `
  ${isScoped("m.conversation_id")} AND ${isWithin("m.created_at")} AND ($7::text IS NULL OR m.role = $7)`;
const SPOKEN = `${IS_SPOKEN} AND ${NOT_BEYOND.message}`;
const SUMMARY_SCOPE = `
  s.state IN ('cover', 'reserve') AND ${isScoped("s.conversation_id")} AND ${isWithin("s.latest_at")} AND ${NOT_BEYOND.summary}`;
const IS_CURRENT = `
  m.forgotten_at IS NULL AND m.newest IS NULL
  AND (m.revises IS NULL OR m.message_id = (SELECT f.newest FROM messages f WHERE f.message_id = m.revises))`;

function bindScope(scope: RecallScope): SqlValue[] {
  const { owner, conversationIds, inherited = [], since, before } = scope;
  const ids = conversationIds?.concat(inherited.map(({ conversationId }) => conversationId));
  return [owner ?? null, ids ?? null, ...bindInherited(scope), since ?? null, before ?? null];
}

const bindSpoken = (scope: RecallScope): SqlValue[] => [...bindScope(scope), scope.role ?? null];

/** A revision has the place of its first version. */
const STANDS_AT = "coalesce((SELECT f.seq FROM messages f WHERE f.message_id = m.revises), m.seq)";
const seedsOf = (ids: string): string => `
  SELECT m.message_id AS id, m.conversation_id, ${STANDS_AT} AS stands_at
  FROM unnest(${ids}::bigint[]) j (id) JOIN messages m ON m.message_id = j.id WHERE ${IS_SPOKEN} AND ${IS_CURRENT}`;
/** Neighbours of the seeds in order of arrival, including themselves, each once. Of those that are tied ($10), the newest ($11) are seeds. */
const NEAR = `
  seeds AS MATERIALIZED (
    ${seedsOf("$8")} UNION ALL (${seedsOf("$10")} ORDER BY m.created_at DESC, stands_at DESC, id DESC LIMIT $11::bigint)),
  near AS (
    SELECT m.message_id FROM seeds s JOIN messages m
    ON m.conversation_id = s.conversation_id AND m.seq BETWEEN s.stands_at - $9::bigint AND s.stands_at + $9::bigint
    UNION SELECT id FROM seeds)`;
/** A pending document has no word count yet; its text is included unless it is already known ($12). */
const BESIDE = `
  WITH ${NEAR}
  SELECT m.message_id AS id, m.conversation_id, m.session_ref, ${STANDS_AT} AS stands_at, m.created_at, m.role,
    d.words, CASE WHEN d.words IS NULL AND m.message_id <> ALL($12::bigint[]) THEN m.body END AS body, m.encoding, m.arrival_bytes
  FROM near JOIN messages m USING (message_id) LEFT JOIN index_documents d ON d.kind = 'message' AND d.id = m.message_id
  WHERE ${SPOKEN} AND ${IS_CURRENT} ORDER BY m.message_id`;
const RECALL_BESIDE = recallPartsOf(
  `SELECT m.message_id AS id FROM near JOIN messages m USING (message_id) WHERE ${NOT_BEYOND.message}`,
  `${NEAR},`,
);
const SUMMARY_SOURCE = `
  FROM unnest($7::bigint[]) WITH ORDINALITY j (ref, at) JOIN summary_refs r ON r.summary_ref = j.ref
  JOIN summaries s ON s.summary_id = r.summary_id`;
/** Of those that are tied ($8), the newest ($9). */
const SUMMARY_PLACES = `
  WITH seeds AS MATERIALIZED (
    SELECT unnest($7::bigint[]) AS ref UNION ALL
    (SELECT r.summary_ref FROM unnest($8::bigint[]) j (ref) JOIN summary_refs r ON r.summary_ref = j.ref
    JOIN summaries s ON s.summary_id = r.summary_id WHERE ${SUMMARY_SCOPE} ORDER BY s.latest_at DESC, r.summary_ref DESC LIMIT $9::bigint))
  SELECT r.summary_ref AS id, s.conversation_id, s.latest_at AS created_at, d.words, CASE WHEN d.words IS NULL THEN s.content END AS content
  FROM seeds j JOIN summary_refs r ON r.summary_ref = j.ref JOIN summaries s ON s.summary_id = r.summary_id
  LEFT JOIN index_documents d ON d.kind = 'summary' AND d.id = r.summary_ref WHERE ${SUMMARY_SCOPE} ORDER BY r.summary_ref`;

/** A row without a word count when it is pending; then it includes its text. */
type Uncounted<T> = Omit<T, "words"> & Counted;

export async function readCandidates(
  context: StoreContext,
  { kind, ids, tied, reach, scope }: CandidateRequest,
): Promise<CandidateDocument[]> {
  const {
    sql,
    index: { pending },
  } = context;
  if (kind === "message") {
    return sql.read(async (own) => {
      const values = [...bindSpoken(scope), [...ids], reach, ...bindTied(tied)];
      const [rows, recall] = await Promise.all([
        own.all<Uncounted<CandidateColumns>>(BESIDE, ...values, pending.listKnown()),
        readRecallParts(own, RECALL_BESIDE, ...values),
      ]);
      const candidates = toCandidates(await pending.fillWords(own, context, kind, rows));
      return addRecall(candidates, recall, ({ id }) => id);
    });
  }
  const rows = await sql.all<Uncounted<Parameters<typeof toSummaryCandidate>[0]>>(
    SUMMARY_PLACES,
    ...bindScope(scope),
    [...ids],
    ...bindTied(tied),
  );
  return (await pending.fillWords(sql, context, kind, rows)).map(toSummaryCandidate);
}

const bindTied = (tied: CandidateRequest["tied"]): SqlValue[] => [
  tied ? [...tied.ids] : [],
  tied?.count ?? 0,
];

function addRecall<T>(
  rows: readonly T[],
  recall: readonly RecallParts[],
  idOf: (row: T) => number,
): (T & WithRecall)[] {
  const parts = new Map(recall.map((one) => [one.messageId, one]));
  return rows.map((row) => ({ ...row, recall: parts.get(idOf(row)) ?? null }));
}

interface DatedRow {
  readonly id: number;
  readonly created_at: number;
}

interface PlacedRow extends DatedRow {
  readonly conversation_id: number;
  readonly stands_at: number;
}

const toDated = ({ id, created_at: createdAt }: DatedRow): DatedId => ({ id, createdAt });

const TIMES = `
  SELECT m.message_id AS id, m.created_at, m.conversation_id, ${STANDS_AT} AS stands_at FROM unnest($8::bigint[]) j (id) JOIN messages m ON m.message_id = j.id
  WHERE ${SPOKEN} AND ${IS_CURRENT}`;
const SUMMARY_TIMES = `
  SELECT r.summary_ref AS id, s.latest_at AS created_at, s.conversation_id, 0 AS stands_at ${SUMMARY_SOURCE} WHERE ${SUMMARY_SCOPE}`;

export async function readTimes(
  { sql }: StoreContext,
  { kind, ids, scope }: { kind: DocumentKind; ids: readonly number[]; scope: RecallScope },
): Promise<PlacedTime[]> {
  const rows =
    kind === "message"
      ? await sql.all<PlacedRow>(TIMES, ...bindSpoken(scope), [...ids])
      : await sql.all<PlacedRow>(SUMMARY_TIMES, ...bindScope(scope), [...ids]);
  return rows.map((row) => ({
    ...toDated(row),
    conversationId: row.conversation_id,
    position: row.stands_at,
  }));
}

/** Without reading the documents themselves. $7 and $8 are the bounds of ranges. */
const MESSAGES_NEWEST = `
  SELECT m.message_id AS id, m.created_at FROM messages m
  WHERE m.conversation_id IN (${SCOPED}) AND ${isWithin("m.created_at")} AND ${NOT_BEYOND.message}`;
const SUMMARIES_NEWEST = `
  SELECT r.summary_ref AS id, s.latest_at AS created_at FROM summary_refs r JOIN summaries s USING (summary_id) WHERE ${SUMMARY_SCOPE}`;
const NEWEST = {
  message: {
    all: MESSAGES_NEWEST,
    within: `
      SELECT m.message_id AS id, m.created_at FROM unnest($7::bigint[], $8::bigint[]) j (first_id, last_id)
      JOIN messages m ON m.message_id BETWEEN j.first_id AND j.last_id
      WHERE m.conversation_id IN (${SCOPED}) AND ${isWithin("m.created_at")} AND ${NOT_BEYOND.message}`,
  },
  summary: {
    all: SUMMARIES_NEWEST,
    within: `
      SELECT r.summary_ref AS id, s.latest_at AS created_at FROM unnest($7::bigint[], $8::bigint[]) j (first_id, last_id)
      JOIN summary_refs r ON r.summary_ref BETWEEN j.first_id AND j.last_id JOIN summaries s USING (summary_id)
      WHERE ${SUMMARY_SCOPE}`,
  },
} as const;

const NEWEST_FIRST = "ORDER BY created_at DESC, id DESC LIMIT $7::bigint";

const bindRanges = (ranges: readonly IdRange[]): SqlValue[] => [
  ranges.map(([first]) => first),
  ranges.map(([, last]) => last),
];

export async function listNewest(
  { sql }: StoreContext,
  { kind, scope, within, limit }: Parameters<Store["listNewest"]>[0],
): Promise<DatedId[]> {
  const ranges = within === null ? [] : bindRanges(within);
  const text = NEWEST[kind][within === null ? "all" : "within"];
  const rows =
    within === null && limit !== undefined
      ? await sql.all<DatedRow>(`${text} ${NEWEST_FIRST}`, ...bindScope(scope), limit)
      : await sql.all<DatedRow>(text, ...bindScope(scope), ...ranges);
  return rows.map(toDated).sort((a, b) => b.createdAt - a.createdAt || b.id - a.id);
}

type BodyColumns = Pick<Row<"messages">, "message_id" | "body" | "encoding" | "arrival_bytes">;
const BODY_COLUMNS = "m.message_id, m.seq, m.role, m.body, m.encoding, m.arrival_bytes";
const TEXTS = `
  SELECT ${BODY_COLUMNS}, ${READ_AT} AS created_at, m.conversation_id, m.position, m.event_id, m.tokens
  FROM unnest($8::bigint[]) WITH ORDINALITY j (id, at) JOIN messages m ON m.message_id = j.id
  JOIN conversations c ON c.conversation_id = m.conversation_id
  WHERE ${SPOKEN} AND m.forgotten_at IS NULL ORDER BY j.at`;
const TEXTS_WITHIN = `
  SELECT ${BODY_COLUMNS}, m.created_at FROM unnest($8::bigint[], $9::bigint[]) j (first_id, last_id)
  JOIN messages m ON m.message_id BETWEEN j.first_id AND j.last_id WHERE ${SPOKEN} AND ${IS_CURRENT} ORDER BY m.message_id`;

export function readTexts(
  { sql, files }: StoreContext,
  messageIds: readonly number[],
  scope: RecallScope,
): Promise<MessageText[]> {
  if (messageIds.length === 0) return Promise.resolve([]);
  return sql.read(async (own) => {
    const rows = own.all<TextColumns & BodyColumns>(TEXTS, ...bindSpoken(scope), [...messageIds]);
    const read = await restoreAsked(files, own, messageIds, rows);
    return read.map(({ row, bytes }) => toText(row, bytes));
  });
}

type ScannedRow = BodyColumns & Pick<Row<"messages">, "seq" | "role" | "created_at">;

export function readTextsWithin(
  { sql, files }: StoreContext,
  ranges: readonly IdRange[],
  scope: RecallScope,
): Promise<ScannedText[]> {
  if (ranges.length === 0) return Promise.resolve([]);
  return sql.read(async (own) => {
    const rows = await own.all<ScannedRow>(TEXTS_WITHIN, ...bindSpoken(scope), ...bindRanges(ranges));
    const bodies = await restoreAll(files, own, rows);
    return rows.map(({ message_id: messageId, seq, role, created_at: createdAt }, at) => {
      const arrival = Buffer.from(must(bodies[at], "a body")).toString();
      return { messageId, seq, role, createdAt, arrival };
    });
  });
}

const SUMMARIES = `SELECT r.summary_ref, s.* ${SUMMARY_SOURCE} WHERE ${SUMMARY_SCOPE} ORDER BY j.at`;

export async function readFoundSummaries(
  { sql }: StoreContext,
  refs: readonly number[],
  scope: RecallScope,
): Promise<FoundSummary[]> {
  if (refs.length === 0) return [];
  return (await sql.all<FoundSummaryColumns>(SUMMARIES, ...bindScope(scope), [...refs])).map(toFoundSummary);
}

/** A file of an inherited conversation counts where a message that holds it does. */
const FILES = `
  SELECT f.* FROM large_files f
  WHERE ${isScoped("f.conversation_id")} AND ${isWithin("f.created_at")} AND ($7::text[] IS NULL OR f.file_id = ANY($7))
    AND ($3::bigint[] IS NULL OR EXISTS (
      SELECT 1 FROM message_parts p JOIN messages m USING (message_id) WHERE p.file_id = f.file_id AND ${NOT_BEYOND.message}))
  ORDER BY f.created_at DESC, f.file_id`;

export async function listFiles(
  { sql }: StoreContext,
  scope: RecallScope,
  fileIds: readonly string[] | null,
): Promise<LargeFileRow[]> {
  const rows = await sql.all<Row<"large_files">>(FILES, ...bindScope(scope), fileIds && [...fileIds]);
  return rows.map(toLargeFile);
}

const WRITTEN = `
  SELECT DISTINCT m.message_id AS id, m.created_at, m.seq FROM unnest($7::bigint[], $8::bigint[]) r (since, before)
  JOIN messages m ON m.created_at >= r.since AND m.created_at < r.before
  WHERE m.conversation_id IN (${SCOPED}) AND ${isWithin("m.created_at")} AND ${NOT_BEYOND.message}
  ORDER BY m.created_at DESC, m.seq DESC, m.message_id DESC LIMIT $9`;

const RECALL_WRITTEN = recallPartsOf(WRITTEN);

/** Times of messages are integers; bounds of ranges need not be. */
export async function findWritten(
  { sql }: StoreContext,
  { scope, ranges, limit }: Parameters<Store["findWritten"]>[0],
): ReturnType<Store["findWritten"]> {
  const ends = [ranges.map(({ since }) => Math.ceil(since)), ranges.map(({ before }) => Math.ceil(before))];
  const values = [...bindScope(scope), ...ends, limit];
  return sql.read(async (own) => {
    const [rows, recall] = await Promise.all([
      own.all<DatedRow>(WRITTEN, ...values),
      readRecallParts(own, RECALL_WRITTEN, ...values),
    ]);
    const written = rows.map((row) => ({ messageId: row.id, createdAt: row.created_at }));
    return addRecall(written, recall, ({ messageId }) => messageId);
  });
}

/** Between two messages of one conversation, in either order. */
const RANGE = `
  SELECT m.message_id AS id FROM messages a JOIN messages b ON b.message_id = $2 AND b.conversation_id = a.conversation_id
  JOIN messages m ON m.conversation_id = a.conversation_id
    AND (m.position, m.seq) >= (CASE WHEN (a.position, a.seq) <= (b.position, b.seq) THEN a.position ELSE b.position END,
                                CASE WHEN (a.position, a.seq) <= (b.position, b.seq) THEN a.seq ELSE b.seq END)
    AND (m.position, m.seq) <= (CASE WHEN (a.position, a.seq) <= (b.position, b.seq) THEN b.position ELSE a.position END,
                                CASE WHEN (a.position, a.seq) <= (b.position, b.seq) THEN b.seq ELSE a.seq END)
  WHERE a.message_id = $1 AND m.revises IS NULL AND m.forgotten_at IS NULL ORDER BY m.position, m.seq`;
const SUMMARIES_OF = `
  SELECT l.summary_id AS id FROM summary_messages l JOIN summaries s USING (summary_id)
  WHERE l.message_id = $1 AND s.state IN ('cover', 'reserve') ORDER BY s.depth, l.summary_id`;
const FILE_MESSAGES = "SELECT DISTINCT message_id AS id FROM message_parts WHERE file_id = $1 ORDER BY id";
const SCOPE = `SELECT c.conversation_id AS id FROM conversations c WHERE ${CHOSEN} ORDER BY c.conversation_id DESC`;

export const listRange = (context: StoreContext, firstId: number, lastId: number): Promise<number[]> =>
  listIds(context, RANGE, firstId, lastId);

export const listSummariesOf = (context: StoreContext, messageId: number): Promise<string[]> =>
  listIds(context, SUMMARIES_OF, messageId);

export const readFileMessages = (context: StoreContext, fileId: string): Promise<number[]> =>
  listIds(context, FILE_MESSAGES, fileId);

export const listScope = (context: StoreContext, request: ConversationFilter): Promise<number[]> =>
  listIds(context, SCOPE, ...bindFilter(request));

/** The conversations under a key, then all ancestors that they forked from. */
const FAMILY = `
  WITH RECURSIVE line AS (
    SELECT conversation_id, parent_id, fork_pos, first_at, last_at, true AS is_own FROM conversations
    WHERE owner = $1 AND session_key = $2
    UNION
    SELECT c.conversation_id, c.parent_id, c.fork_pos, c.first_at, c.last_at, false
    FROM line JOIN conversations c ON c.conversation_id = line.parent_id)
  SELECT * FROM line`;

export async function readFamily(
  { sql }: StoreContext,
  { owner, sessionKey, newestOnly }: Parameters<Store["readFamily"]>[0],
): Promise<Family> {
  const rows = await sql.all<FamilyRow & { readonly is_own: boolean }>(FAMILY, owner, sessionKey);
  const ids = rows.filter(({ is_own }) => is_own).map(({ conversation_id }) => conversation_id);
  return gatherFamily(ids, rows, newestOnly);
}

async function listIds<T>({ sql }: StoreContext, text: string, ...values: SqlValue[]): Promise<T[]> {
  return (await sql.all<{ id: T }>(text, ...values)).map(({ id }) => id);
}
