/**
 * The full-text index as tables: for each owner a head and segments of posting blocks (`posting-blocks.ts`). A segment is added for each batch
 * of documents; many of one size are merged. A document that is not in a segment yet has a pending row, and searches read its text.
 *
 * Invariants: a transaction that changes segments of an owner holds the lock on its head until it ends. A document is in one segment of the
 * current generation, or pending, or forgotten; never two of them. A segment of a rebuild is not searched until the head names its generation.
 */
import { ANALYSIS_VERSION } from "@lossless/core/adapter";
import type { Changes, DocumentKind, IndexState } from "@lossless/core/ports";
import type { Sql, Statement, WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";
import { PendingTexts } from "./pending.ts";
import { decodeDocuments, decodeIds } from "./posting-blocks.ts";
import type { PostingBlock } from "./posting-blocks.ts";
import { dropFromBlock, FIELD, mergeBlocks } from "./segment.ts";
import type { PostingRow, SegmentWriter } from "./segment.ts";
import { dropSpelled, mergeSpellings, moveSpellings, putSpellings } from "./word-blocks.ts";
import type { SpellingPart } from "./word-blocks.ts";

/** This many segments of about one size are merged. */
const MERGED_AT = 8;
/** A segment of the first size; each further size is {@link MERGED_AT} times as large. */
export const SMALL_SEGMENT = 256;
/** Larger segments are not merged: forgetting rewrites blocks of a segment, and a merge holds one in memory. */
const LARGEST_SEGMENT = 65_536;
/** Rows of one statement, and bytes of their blocks. */
const MAX_ROWS = 10_000;
const MAX_BYTES = 8_000_000;

const ADD_HEAD = `
  INSERT INTO index_heads (owner, generation, analysis) VALUES ($1, nextval('index_numbers'), $2) ON CONFLICT DO NOTHING`;
const HEAD_COLUMNS = "owner, generation, analysis, problem, rebuild";
const LOCK_HEAD = `SELECT ${HEAD_COLUMNS} FROM index_heads WHERE owner = $1 FOR UPDATE`;
const TRY_HEAD = `${LOCK_HEAD} SKIP LOCKED`;
const ADD_SEGMENT = `
  INSERT INTO index_segments (owner, generation, kind, segment, documents, low_id, high_id) VALUES ($1, $2, $3, $4, $5, $6, $7)`;
/** Bytes are sent as one value: an array of them would be sent as text. */
const ADD_POSTINGS = `
  INSERT INTO index_postings (owner, segment, field, term, documents, places)
  SELECT $1, $2, field, term, substr($3::bytea, at, documents), substr($3::bytea, at + documents, places)
  FROM unnest($4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[]) AS r (field, term, at, documents, places)`;
const SET_POSTINGS = `
  UPDATE index_postings p SET documents = substr($3::bytea, r.at, r.documents), places = substr($3::bytea, r.at + r.documents, r.places)
  FROM unnest($4::bigint[], $5::text[], $6::int[], $7::int[], $8::int[]) AS r (field, term, at, documents, places)
  WHERE p.owner = $1 AND p.segment = $2 AND p.field = r.field AND p.term = r.term`;
const DROP_POSTINGS = `
  DELETE FROM index_postings p USING unnest($3::bigint[], $4::text[]) AS r (field, term)
  WHERE p.owner = $1 AND p.segment = $2 AND p.field = r.field AND p.term = r.term`;
const ADD_DOCUMENTS = `
  INSERT INTO index_documents (owner, kind, id, words, name) SELECT $1, $2, id, words, name
  FROM unnest($3::bigint[], $4::bigint[], $5::text[]) AS r (id, words, name)
  ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner, words = excluded.words, name = excluded.name`;
const DROP_DOCUMENTS = "DELETE FROM index_documents WHERE kind = $1 AND id = ANY($2::bigint[])";
const SMALL_SEGMENTS = `
  SELECT segment, documents, low_id, high_id FROM index_segments
  WHERE owner = $1 AND generation = $2 AND kind = $3 AND documents < ${LARGEST_SEGMENT} ORDER BY segment`;
const NEXT_NUMBER = "SELECT nextval('index_numbers') AS number";
const ALL_POSTINGS =
  "SELECT field, term, documents, places FROM index_postings WHERE owner = $1 AND segment = ANY($2::bigint[])";
const DROP_SEGMENTS = [
  "DELETE FROM index_postings WHERE owner = $1 AND segment = ANY($2::bigint[])",
  "DELETE FROM index_segments WHERE owner = $1 AND segment = ANY($2::bigint[])",
];
/** Segments, including those of rebuilds, that may contain some documents. */
const SEGMENTS_OF = `
  SELECT segment FROM index_segments
  WHERE owner = $1 AND kind = $2 AND EXISTS (SELECT 1 FROM unnest($3::bigint[]) AS i (id) WHERE id BETWEEN low_id AND high_id)`;
/** In a fixed order, to avoid deadlocks. */
const LOCK_HEADS = `
  SELECT owner FROM index_heads WHERE owner IN (SELECT owner FROM index_gone) ORDER BY owner FOR UPDATE`;
const LISTS = "SELECT field, term, documents FROM index_postings WHERE owner = $1 AND segment = $2";
const BLOCKS_OF = `
  SELECT p.field, p.term, p.documents, p.places FROM unnest($3::bigint[], $4::text[]) AS r (field, term)
  JOIN index_postings p ON p.owner = $1 AND p.segment = $2 AND p.field = r.field AND p.term = r.term`;
const SET_COUNT = "UPDATE index_segments SET documents = documents - $3 WHERE owner = $1 AND segment = $2";
const GONE = "SELECT id FROM index_gone WHERE owner = $1 AND kind = $2";
const DROP_GONE = "DELETE FROM index_gone WHERE owner = $1 AND kind = $2 AND id = ANY($3::bigint[])";
const ADD_GONE_MESSAGES = `
  INSERT INTO index_gone (owner, kind, id) SELECT owner, kind, id FROM index_documents WHERE kind = 'message' AND id = ANY($1::bigint[])
  ON CONFLICT DO NOTHING`;
/** Also if the summary itself is already gone, and its number with it. */
const ADD_GONE_SUMMARIES = `
  INSERT INTO index_gone (owner, kind, id) SELECT owner, kind, id FROM index_documents WHERE kind = 'summary' AND name = ANY($1::text[])
  ON CONFLICT DO NOTHING`;
const END_PENDING_SUMMARIES = `
  DELETE FROM index_pending_summaries WHERE summary_ref IN (SELECT summary_ref FROM summary_refs WHERE summary_id = ANY($1::text[]))`;
const ADD_REFS = `
  INSERT INTO summary_refs (summary_id) SELECT unnest($1::text[]) ON CONFLICT (summary_id) DO NOTHING`;
const ADD_PENDING_SUMMARIES = `
  INSERT INTO index_pending_summaries (owner, summary_ref)
  SELECT c.owner, r.summary_ref FROM summary_refs r JOIN summaries s USING (summary_id) JOIN conversations c USING (conversation_id)
  WHERE r.summary_id = ANY($1::text[]) ON CONFLICT DO NOTHING`;
const END_PENDING = "DELETE FROM index_pending WHERE message_id = ANY($1::bigint[])";
const SET_PROBLEM = "UPDATE index_heads SET problem = $2 WHERE owner = $1";
/** Why searches cannot rely on the index; null when they can. */
export const FIND_PROBLEM = `
  SELECT min(coalesce(problem, CASE WHEN analysis <> ${ANALYSIS_VERSION} THEN 'the index was made by another version of the text analysis' END))
  FROM index_heads`;
const STATE = `
  SELECT (SELECT count(*) FROM index_pending)::bigint AS pending, (${FIND_PROBLEM}) AS problem,
    (SELECT coalesce(sum(s.documents), 0) FROM index_heads h JOIN index_segments s USING (owner, generation) WHERE s.kind = 'message')
      - (SELECT count(*) FROM index_gone WHERE kind = 'message') AS messages`;

export interface IndexHead {
  readonly owner: string;
  readonly generation: number;
  readonly analysis: number;
  readonly problem: string | null;
  /** The number of a running rebuild, which is its generation. */
  readonly rebuild: number | null;
}

/** A document with its place in the index. */
export interface IndexedDocument {
  readonly id: number;
  readonly words: number;
  /** Null for a message. */
  readonly name: string | null;
}

export async function readIndexState(sql: Sql): Promise<IndexState> {
  const row = await sql.get<{ pending: number; messages: number; problem: string | null }>(STATE);
  if (row?.problem) return { kind: "degraded", reason: row.problem };
  return { kind: "ready", messages: row?.messages ?? 0, pending: row?.pending ?? 0 };
}

/** The head of an owner, locked, and created if missing. `orSkip`: null when another transaction holds it. */
export async function lockHead(sql: WriteSql, owner: string, orSkip: boolean): Promise<IndexHead | null> {
  sql.post(statement(ADD_HEAD, owner, ANALYSIS_VERSION));
  return (await sql.get<IndexHead>(orSkip ? TRY_HEAD : LOCK_HEAD, owner)) ?? null;
}

export const noteProblem = (sql: WriteSql, owner: string, problem: string): Promise<number> =>
  sql.change(SET_PROBLEM, owner, problem);

/** The index part of a change set. */
type IndexWork = Changes["index"][number];

/** The index for plans, and the texts that are not in it yet. */
export class FullTextIndex {
  readonly pending = new PendingTexts();
  readonly #onPending: (messages: number) => void;

  constructor(onPending: (messages: number) => void = () => undefined) {
    this.#onPending = onPending;
  }

  /**
   * The statements for the transaction of a change set, after its rows. Added messages are already pending, by their own rows. Removed documents
   * are no longer searched from the same moment; {@link purge} removes their terms. The pending row is deleted first: a process that is indexing
   * the document holds it, and only after that is it known what to remove.
   */
  render(works: readonly IndexWork[]): readonly Statement[] {
    const messageIds = works.flatMap((work) => (work.kind === "remove-message" ? work.messageId : []));
    const removed = works.flatMap((work) => (work.kind === "remove-summary" ? work.summaryId : []));
    const added = works.flatMap((work) => (work.kind === "add-summary" ? work.summaryId : []));
    return [
      ...(messageIds.length === 0
        ? []
        : [statement(END_PENDING, messageIds), statement(ADD_GONE_MESSAGES, messageIds)]),
      ...(removed.length === 0
        ? []
        : [statement(END_PENDING_SUMMARIES, removed), statement(ADD_GONE_SUMMARIES, removed)]),
      ...(added.length === 0 ? [] : [statement(ADD_REFS, added), statement(ADD_PENDING_SUMMARIES, added)]),
    ];
  }

  /** Called after the commit. Only a hint: the pending rows are authoritative. */
  noteCommitted(works: readonly IndexWork[]): void {
    this.notePending(works.filter(({ kind }) => kind === "add-message").length);
  }

  /** Reports messages that were stored, or seen waiting. */
  notePending(messages: number): void {
    if (messages > 0) this.#onPending(messages);
  }
}

/**
 * Removes deleted documents from every segment, including those of rebuilds: no block names them afterwards, and none of their own terms is
 * left. Forgetting does this in its own transaction; other deletions may leave it to the next process that indexes.
 */
export async function purgeAll(sql: WriteSql): Promise<void> {
  for (const { owner } of await sql.all<{ owner: string }>(LOCK_HEADS)) await purge(sql, owner);
}

/** The same for one owner, whose head is locked. */
export async function purge(sql: WriteSql, owner: string): Promise<void> {
  for (const kind of ["message", "summary"] as const) {
    const rows = await sql.all<{ id: number }>(GONE, owner, kind);
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0) await removeDocuments(sql, owner, kind, ids);
  }
}

async function removeDocuments(
  sql: WriteSql,
  owner: string,
  kind: DocumentKind,
  ids: readonly number[],
): Promise<void> {
  const gone = new Set(ids);
  for (const { segment } of await sql.all<{ segment: number }>(SEGMENTS_OF, owner, kind, ids)) {
    await removeFromSegment(sql, owner, segment, gone);
    if (kind === "message") await dropSpelled(sql, owner, segment, gone);
  }
  sql.post(statement(DROP_DOCUMENTS, kind, ids), statement(DROP_GONE, owner, kind, ids));
}

async function removeFromSegment(
  sql: WriteSql,
  owner: string,
  segment: number,
  gone: ReadonlySet<number>,
): Promise<void> {
  const lists = await sql.all<Pick<PostingRow, "field" | "term" | "documents">>(LISTS, owner, segment);
  const touched = lists.filter(({ field, documents }) => holdsAny(field, documents, gone));
  if (touched.length === 0) return;
  const fields = touched.map(({ field }) => field);
  const terms = touched.map(({ term }) => term);
  const rows = await sql.all<PostingRow>(BLOCKS_OF, owner, segment, fields, terms);
  const left: PostingRow[] = [];
  const empty: PostingRow[] = [];
  for (const row of rows) {
    const block = dropFromBlock(row.field, row, gone);
    if (block === null) empty.push(row);
    else left.push({ ...row, ...block });
  }
  for (const one of packRows(SET_POSTINGS, owner, segment, left)) sql.post(one);
  sql.post(
    statement(
      DROP_POSTINGS,
      owner,
      segment,
      empty.map(({ field }) => field),
      empty.map(({ term }) => term),
    ),
  );
  const dropped = touched
    .filter(({ field }) => field === FIELD.conversation)
    .reduce((sum, { documents }) => sum + decodeIds(documents).filter((id) => gone.has(id)).length, 0);
  sql.post(statement(SET_COUNT, owner, segment, dropped));
}

function holdsAny(field: number, documents: Uint8Array, wanted: ReadonlySet<number>): boolean {
  const ids = field === FIELD.word ? decodeDocuments(documents).ids : decodeIds(documents);
  return ids.some((id) => wanted.has(id));
}

export interface NewSegment {
  readonly head: Pick<IndexHead, "owner" | "generation">;
  readonly kind: DocumentKind;
  readonly writer: Pick<SegmentWriter, "finish">;
  /** In order of ids. */
  readonly documents: readonly IndexedDocument[];
  readonly spellings: readonly SpellingPart[];
}

/** Adds a segment. The head is locked. */
export async function addSegment(sql: WriteSql, segment: NewSegment): Promise<void> {
  const { head, kind, writer, documents, spellings } = segment;
  const [first] = documents;
  const last = documents.at(-1);
  if (first === undefined || last === undefined) return;
  const number = await nextNumber(sql);
  const { owner, generation } = head;
  sql.post(statement(ADD_SEGMENT, owner, generation, kind, number, documents.length, first.id, last.id));
  for (const one of packRows(ADD_POSTINGS, owner, number, writer.finish())) sql.post(one);
  sql.post(
    statement(
      ADD_DOCUMENTS,
      owner,
      kind,
      documents.map(({ id }) => id),
      documents.map(({ words }) => words),
      documents.map(({ name }) => name),
    ),
  );
  putSpellings(sql, owner, number, spellings);
}

async function nextNumber(sql: Sql): Promise<number> {
  return (await sql.get<{ number: number }>(NEXT_NUMBER))?.number ?? 0;
}

/** Rows as statements, with a limited number of bytes in each. */
function* packRows(
  text: string,
  owner: string,
  segment: number,
  rows: Iterable<PostingRow>,
): Generator<Statement> {
  let taken: PostingRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    taken.push(row);
    bytes += row.documents.length + row.places.length;
    if (taken.length < MAX_ROWS && bytes < MAX_BYTES) continue;
    yield packStatement(text, owner, segment, taken);
    taken = [];
    bytes = 0;
  }
  if (taken.length > 0) yield packStatement(text, owner, segment, taken);
}

function packStatement(text: string, owner: string, segment: number, rows: readonly PostingRow[]): Statement {
  const blocks = rows.flatMap(({ documents, places }) => [documents, places]);
  const starts: number[] = [];
  let at = 1;
  for (const { documents, places } of rows) {
    starts.push(at);
    at += documents.length + places.length;
  }
  return statement(
    text,
    owner,
    segment,
    Buffer.concat(blocks),
    rows.map(({ field }) => field),
    rows.map(({ term }) => term),
    starts,
    rows.map(({ documents }) => documents.length),
    rows.map(({ places }) => places.length),
  );
}

interface SegmentRow {
  readonly segment: number;
  readonly documents: number;
  readonly low_id: number;
  readonly high_id: number;
}

/** Merges segments of about one size, as long as there are enough of them. The head is locked. */
export async function mergeSegments(sql: WriteSql, head: IndexHead, kind: DocumentKind): Promise<void> {
  for (;;) {
    const segments = await sql.all<SegmentRow>(SMALL_SEGMENTS, head.owner, head.generation, kind);
    const chosen = chooseMerge(segments);
    if (chosen === null) return;
    await merge(sql, head, kind, chosen);
  }
}

/** Segments to merge, or null. */
function chooseMerge<T extends Pick<SegmentRow, "documents">>(segments: readonly T[]): T[] | null {
  const sizes = Map.groupBy(segments, ({ documents }) => sizeClass(documents));
  const [, many] =
    [...sizes].toSorted(([a], [b]) => a - b).find(([, members]) => members.length >= MERGED_AT) ?? [];
  return many?.slice(0, MERGED_AT) ?? null;
}

const sizeClass = (documents: number): number =>
  Math.max(0, Math.floor(Math.log(Math.max(1, documents / SMALL_SEGMENT)) / Math.log(MERGED_AT)));

async function merge(
  sql: WriteSql,
  { owner, generation }: IndexHead,
  kind: DocumentKind,
  segments: readonly SegmentRow[],
): Promise<void> {
  const numbers = segments.map(({ segment }) => segment);
  const blocks = new Map<string, { field: number; term: string; blocks: PostingBlock[] }>();
  for (const { field, term, documents, places } of await sql.all<PostingRow>(ALL_POSTINGS, owner, numbers)) {
    const name = `${field} ${term}`;
    const known = blocks.get(name);
    if (known) known.blocks.push({ documents, places });
    else blocks.set(name, { field, term, blocks: [{ documents, places }] });
  }
  const number = await nextNumber(sql);
  const rows = Array.from(blocks.values(), (one): PostingRow => ({
    field: one.field,
    term: one.term,
    ...mergeBlocks(one.field, one.blocks),
  }));
  const documents = segments.reduce((sum, segment) => sum + segment.documents, 0);
  const low = Math.min(...segments.map(({ low_id }) => low_id));
  const high = Math.max(...segments.map(({ high_id }) => high_id));
  sql.post(statement(ADD_SEGMENT, owner, generation, kind, number, documents, low, high));
  for (const one of packRows(ADD_POSTINGS, owner, number, rows)) sql.post(one);
  if (kind === "message") {
    await moveSpellings(sql, owner, numbers, number);
    await mergeSpellings(sql, owner, number);
  }
  for (const text of DROP_SEGMENTS) sql.post(statement(text, owner, numbers));
}
