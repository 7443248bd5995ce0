/**
 * Finds the clues of a question: reads the blocks of its terms in one round trip and matches them here, limited to what the caller may see, plus
 * the texts that are not indexed yet. Positions are read in a second trip, only for documents that contain all words of a phrase. The blocks of
 * words show where the literals of a regular expression can occur.
 *
 * Invariant: a search reads one snapshot of the archive, so that a document is in a segment or pending, and never missed between the two.
 */
import { EngineError, must, toListing } from "@lossless/core/adapter";
import type { SpellingDoubt } from "@lossless/core/adapter";
import { holdsClue } from "@lossless/core/ports";
import type {
  ClueRequest,
  CluesFound,
  DocumentKind,
  DoubtsFound,
  RecallScope,
  TextClue,
} from "@lossless/core/ports";
import type { Sql, Statement } from "./connection.ts";
import { FIND_PROBLEM } from "./full-text-index.ts";
import { intersect, listTerms, SegmentMatcher, unite } from "./match.ts";
import type { PlaceSlice, TermPostings } from "./match.ts";
import { PENDING_PAGE } from "./pending.ts";
import type { PendingDocument, PendingRow } from "./pending.ts";
import { decodeDocuments, decodeIds } from "./posting-blocks.ts";
import { findRecallParts, HAS_RECALL_PARTS } from "./recall-parts.ts";
import { FIELD } from "./segment.ts";
import type { StoreContext } from "./store-context.ts";
import { findDoubtful, toRanges } from "./word-blocks.ts";

/** Positions as short as this are included with the list of documents: reading them costs less than a second request. */
const INLINE_PLACES = 4_000;
/** Sorts after every term with a given prefix. */
const LAST_CHARACTER = "\u{10ffff}";

const SCOPE = `
  scope AS MATERIALIZED (
    SELECT conversation_id AS id, message_count, summary_count, first_at, last_at FROM conversations
    WHERE ($1::text IS NULL OR owner = $1) AND ($2::bigint[] IS NULL OR conversation_id = ANY($2)))`;
/**
 * Every version of a message but its newest. A range, because a server without statistics assumes that most rows are revisions and reads them
 * all.
 */
const SUPERSEDED = `
  SELECT x.id FROM messages m JOIN messages f ON f.message_id = m.revises
  CROSS JOIN LATERAL (VALUES (m.revises), (CASE WHEN f.newest <> m.message_id THEN m.message_id END)) x (id)
  WHERE m.revises BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}`;
/** Summaries that are not shown: not published yet, or no longer. */
const UNSHOWN = `
  SELECT r.summary_ref AS id FROM summaries s JOIN summary_refs r USING (summary_id) WHERE s.state IN ('prepared', 'retired')`;
/** Deleted documents that are still in segments. */
const GONE = "SELECT string_agg(id::text, ',') AS gone FROM index_gone";
/** Ids are returned as one text: a row for each would cost more than finding them. */
const FACTS: Readonly<Record<DocumentKind, string>> = {
  message: facts("message", "message_count", SUPERSEDED, HAS_RECALL_PARTS),
  summary: facts("summary", "summary_count", UNSHOWN, "false"),
};

function facts(kind: DocumentKind, count: string, unlisted: string, hasRecallParts: string): string {
  return `
    SELECT coalesce(sum(${count}), 0)::bigint AS total, min(first_at) AS first_at, max(last_at) AS last_at,
      (${FIND_PROBLEM} WHERE $1::text IS NULL OR owner = $1) AS problem, ${hasRecallParts} AS has_recall_parts,
      (SELECT string_agg(id::text, ',') FROM (${unlisted}) u) AS unlisted,
      (${GONE} WHERE kind = '${kind}' AND ($1::text IS NULL OR owner = $1)) AS gone
    FROM conversations
    WHERE ($1::text IS NULL OR owner = $1) AND ($2::bigint[] IS NULL OR conversation_id = ANY($2))`;
}

/** The numbers of the first and the last document of a scope. */
const EXTENT: Readonly<Record<DocumentKind, string>> = {
  message: `
    WITH ${SCOPE}
    SELECT min((SELECT message_id FROM messages m WHERE m.conversation_id = s.id ORDER BY seq LIMIT 1)) AS low,
      max((SELECT message_id FROM messages m WHERE m.conversation_id = s.id ORDER BY seq DESC LIMIT 1)) AS high FROM scope s`,
  summary: `
    WITH ${SCOPE} SELECT min(summary_ref) AS low, max(summary_ref) AS high FROM summary_refs`,
};
const LIVE = `
  index_heads h JOIN index_segments s ON s.owner = h.owner AND s.generation = h.generation AND s.kind = $1`;
/**
 * Each by its whole key, whatever the statistics of the table: `OFFSET 0` keeps the planner from reading segments instead. Positions only where
 * they may be needed.
 */
const lookUp = (terms: string, condition: string, isPlaced: string): string => `
  SELECT s.owner, s.segment, s.low_id AS low, p.field, p.term, p.documents, p.places
  FROM ${LIVE} ${terms} CROSS JOIN LATERAL (
    SELECT p.field, p.term, p.documents, CASE WHEN ${isPlaced} AND octet_length(p.places) <= ${INLINE_PLACES} THEN p.places END AS places
    FROM index_postings p WHERE p.owner = s.owner AND p.segment = s.segment AND ${condition} OFFSET 0) p
  WHERE $2::text IS NULL OR h.owner = $2`;
const POSTINGS = lookUp(
  "CROSS JOIN unnest($3::smallint[], $4::text[]) AS t (field, term)",
  "p.field = t.field AND p.term = t.term",
  "t.term = ANY($5::text[])",
);
const PREFIX = lookUp(
  "",
  `p.field = ${FIELD.word} AND p.term >= $3 AND p.term < $3 || '${LAST_CHARACTER}'`,
  "$4::boolean",
);
const SLICES = `
  SELECT t.segment, t.term, t.at, p.places
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[], $5::int[]) AS t (owner, segment, term, at, length)
  CROSS JOIN LATERAL (
    SELECT substr(p.places, t.at + 1, t.length) AS places FROM index_postings p
    WHERE p.owner = t.owner AND p.segment = t.segment AND p.field = ${FIELD.word} AND p.term = t.term OFFSET 0) p`;
const FILTERED: Readonly<Record<DocumentKind, string>> = {
  message: `
    WITH ${SCOPE}
    SELECT string_agg(m.message_id::text, ',') AS ids FROM scope JOIN messages m ON m.conversation_id = scope.id
    WHERE ($3::bigint IS NULL OR m.created_at >= $3) AND ($4::bigint IS NULL OR m.created_at < $4) AND ($5::text IS NULL OR m.role = $5)`,
  summary: `
    WITH ${SCOPE}
    SELECT string_agg(r.summary_ref::text, ',') AS ids FROM scope JOIN summaries s ON s.conversation_id = scope.id
    JOIN summary_refs r USING (summary_id)
    WHERE ($3::bigint IS NULL OR s.latest_at >= $3) AND ($4::bigint IS NULL OR s.latest_at < $4) AND $5::text IS NULL`,
};
/** Documents of the parents of a fork after the place where it left. */
const BEYOND: Readonly<Record<DocumentKind, string>> = {
  message: `
    SELECT string_agg(m.message_id::text, ',') AS ids FROM unnest($1::bigint[], $2::bigint[]) AS p (id, position)
    JOIN messages m ON m.conversation_id = p.id AND m.position > p.position`,
  summary: `
    SELECT string_agg(r.summary_ref::text, ',') AS ids FROM unnest($1::bigint[], $2::bigint[]) AS p (id, position)
    JOIN summaries s ON s.conversation_id = p.id AND s.end_pos > p.position JOIN summary_refs r USING (summary_id)`,
};
const ALL_GONE = `${GONE} WHERE kind = $1`;
const PENDING_IDS = `
  SELECT p.message_id AS id FROM index_pending p WHERE $1::text IS NULL OR p.owner = $1`;

interface FactRow {
  readonly total: number;
  readonly first_at: number | null;
  readonly last_at: number | null;
  readonly problem: string | null;
  readonly has_recall_parts: boolean;
  readonly unlisted: string | null;
  readonly gone: string | null;
}

interface BlockRow {
  readonly owner: string;
  readonly segment: number;
  readonly low: number;
  readonly field: number;
  readonly term: string;
  readonly documents: Uint8Array;
  readonly places: Uint8Array | null;
}

const parseIds = (text: string | null | undefined): number[] => (text ? text.split(",").map(Number) : []);

/** The conversations a scope names, or null. */
export const nameConversations = ({
  conversationIds,
  inherited = [],
}: RecallScope): readonly number[] | null =>
  conversationIds?.concat(inherited.map(({ conversationId }) => conversationId)) ?? null;

export function findClues(context: StoreContext, request: ClueRequest): Promise<CluesFound> {
  return context.sql.read((sql) => findOnce(sql, context, request));
}

async function findOnce(
  sql: Sql,
  context: StoreContext,
  { kind, clues, scope, limit, withRecallParts = false }: ClueRequest,
): Promise<CluesFound> {
  const conversations = nameConversations(scope);
  const { owner = null } = scope;
  const asked = sql.get<FactRow>(FACTS[kind], owner, conversations);
  const [found, pendingRows, segments, allowed, beyond] = await Promise.all([
    asked,
    run<PendingRow>(sql, context.index.pending.ask(kind, scope, conversations)),
    readSegments(sql, kind, owner, clues, conversations, asked),
    readAllowed(sql, kind, scope, conversations),
    readBeyond(sql, kind, scope),
  ]);
  const facts = must(found, "the facts of a search");
  checkProblem(facts.problem);
  context.index.notePending(pendingRows.length);
  const matching = segments.begin(clues, allowed);
  // Everything that depends on the first answer is pipelined.
  const isCommon = matching.candidates.some(({ length }) => length > limit);
  const [, waiting, extent, recallParts] = await Promise.all([
    matching.readPlaces(sql),
    readPending(sql, context, { kind, scope }, pendingRows),
    isCommon ? sql.get<Extent>(EXTENT[kind], owner, conversations) : undefined,
    withRecallParts && facts.has_recall_parts
      ? findRecallParts(sql, listCandidates(matching, limit, pendingRows))
      : [],
  ]);
  const ids = matching.finish();
  for (const { id, terms } of waiting.documents)
    for (const [at, clue] of clues.entries())
      if (holdsClue(terms, clue)) ids[at] = unite([ids[at] ?? NO_IDS, Float64Array.of(id)]);
  const unlisted = new Set([...parseIds(facts.unlisted), ...beyond]);
  return {
    total: facts.total,
    firstAt: facts.first_at,
    lastAt: facts.last_at,
    listings: ids.map((all) =>
      toListing(takeNewest(all, limit + 1), unlisted, limit, extent ?? { low: null, high: null }),
    ),
    pendingIds: waiting.unread,
    hasRecallParts: facts.has_recall_parts,
    ...(waiting.isMore || !withRecallParts ? {} : { recallParts }),
  };
}

const NO_IDS = new Float64Array(0);

/** The numbers of the first and the last document of a scope. */
interface Extent {
  readonly low: number | null;
  readonly high: number | null;
}

/** The messages that may be listed: all whose positions are not read yet, and the newest of the others. */
function listCandidates(
  { candidates, isCertain }: Matching,
  limit: number,
  pendingRows: readonly PendingRow[],
): number[] {
  const lists = candidates.map((ids, at) => (isCertain[at] ? ids.slice(-(limit + 1)) : ids));
  return [...unite([...lists, Float64Array.from(pendingRows, ({ id }) => id).sort()])];
}

const run = <T>(sql: Sql, { text, values }: Statement): Promise<T[]> => sql.all<T>(text, ...values);

/** The documents of a scope limited by time or role, in order; null without such a limit. */
async function readAllowed(
  sql: Sql,
  kind: DocumentKind,
  scope: RecallScope,
  conversations: readonly number[] | null,
): Promise<Float64Array | null> {
  const { owner = null, since = null, before = null, role } = scope;
  const speaker = kind === "message" ? (role ?? null) : null;
  if (since === null && before === null && speaker === null) return null;
  const row = await sql.get<{ ids: string | null }>(
    FILTERED[kind],
    owner,
    conversations,
    since,
    before,
    speaker,
  );
  return Float64Array.from(parseIds(row?.ids)).sort();
}

export async function readBeyond(
  sql: Sql,
  kind: DocumentKind,
  { inherited = [] }: RecallScope,
): Promise<readonly number[]> {
  if (inherited.length === 0) return [];
  const ids = inherited.map(({ conversationId }) => conversationId);
  const positions = inherited.map(({ position }) => position);
  return parseIds((await sql.get<{ ids: string | null }>(BEYOND[kind], ids, positions))?.ids);
}

async function readSegments(
  sql: Sql,
  kind: DocumentKind,
  owner: string | null,
  clues: readonly TextClue[],
  conversations: readonly number[] | null,
  askedGone: Promise<Pick<FactRow, "gone"> | undefined>,
): Promise<Segments> {
  const { words, prefixes, identifiers, placed } = listTerms(clues);
  const scopes = (conversations ?? []).map(String);
  const fields = [
    ...Array.from(words, () => FIELD.word),
    ...Array.from(identifiers, () => FIELD.identifier),
    ...scopes.map(() => FIELD.conversation),
  ];
  const [blocks, gone, ...prefixed] = await Promise.all([
    fields.length === 0
      ? []
      : sql.all<BlockRow>(POSTINGS, kind, owner, fields, [...words, ...identifiers, ...scopes], [...placed]),
    askedGone,
    ...Array.from(prefixes, (prefix) => sql.all<BlockRow>(PREFIX, kind, owner, prefix, placed.has(prefix))),
  ]);
  const rows = [...blocks, ...prefixed.flat()];
  return new Segments(rows, conversations !== null, parseIds(gone?.gone));
}

function checkProblem(problem: string | null): void {
  if (problem === null) return;
  throw new EngineError("database_corrupt", `cannot search: ${problem}`, { step: { kind: "rebuild_index" } });
}

/** The newest ones, newest first. */
function takeNewest(ids: Float64Array, count: number): number[] {
  const newest: number[] = [];
  for (let at = ids.length - 1; at >= 0 && newest.length < count; at--) newest.push(ids[at] ?? 0);
  return newest;
}

interface Waiting {
  readonly documents: readonly PendingDocument[];
  /** Documents that cannot be read, because no reader was given. */
  readonly unread: readonly number[];
  /** There are more than one answer has. */
  readonly isMore: boolean;
}

/** All pending documents of a scope. */
async function readPending(
  sql: Sql,
  { files, derive, index: { pending } }: StoreContext,
  { kind, scope }: { readonly kind: DocumentKind; readonly scope: RecallScope },
  firstRows: readonly PendingRow[],
): Promise<Waiting> {
  const unread: number[] = [];
  const documents: PendingDocument[] = [];
  const isMore = firstRows.length >= PENDING_PAGE;
  for (let rows = firstRows; rows.length > 0;) {
    if (derive === null && kind === "message") unread.push(...rows.map(({ id }) => id));
    else documents.push(...(await pending.take(sql, { files, derive }, kind, rows)));
    if (rows.length < PENDING_PAGE) break;
    const after = rows.at(-1)?.id;
    rows = await run<PendingRow>(sql, pending.ask(kind, scope, nameConversations(scope), after));
  }
  return { documents, unread, isMore };
}

interface Segment {
  readonly owner: string;
  readonly low: number;
  readonly words: Map<string, TermPostings>;
  readonly identifiers: Map<string, Float64Array>;
  readonly conversations: Float64Array[];
}

/** The blocks that were read, by segment. */
class Segments {
  readonly #segments = new Map<number, Segment>();
  readonly #isScoped: boolean;
  readonly #gone: ReadonlySet<number>;

  constructor(rows: readonly BlockRow[], isScoped: boolean, gone: readonly number[]) {
    this.#isScoped = isScoped;
    this.#gone = new Set(gone);
    for (const row of rows) this.#add(row);
  }

  #add({ owner, segment, low, field, term, documents, places }: BlockRow): void {
    let found = this.#segments.get(segment);
    if (found === undefined) {
      found = { owner, low, words: new Map(), identifiers: new Map(), conversations: [] };
      this.#segments.set(segment, found);
    }
    if (field === FIELD.word) found.words.set(term, { ...decodeDocuments(documents), places });
    else if (field === FIELD.identifier) found.identifiers.set(term, decodeIds(documents));
    else found.conversations.push(decodeIds(documents));
  }

  /** Matches as far as the loaded blocks allow. */
  begin(clues: readonly TextClue[], allowed: Float64Array | null): Matching {
    const entries = [...this.#segments]
      .toSorted(([, a], [, b]) => a.low - b.low)
      .map(([number, segment]) => ({
        number,
        segment,
        matcher: new SegmentMatcher(segment),
        scope: this.#isScoped ? unite(segment.conversations) : null,
      }));
    // Most clues need no more positions than those loaded; the others are matched again once theirs are there.
    const first = entries.map(({ matcher }) => clues.map((clue) => matcher.tryMatch(clue)));
    const gather = (clue: TextClue, at: number): Float64Array => {
      const lists = entries.map(({ matcher, scope }, index) => {
        const ids = first[index]?.[at] ?? matcher.match(clue);
        return scope === null ? ids : intersect([ids, scope]);
      });
      return this.#narrow(concat(lists), allowed);
    };
    const missing = entries.flatMap(({ number, segment: { owner }, matcher }) =>
      matcher.listMissing().map((slice) => ({ owner, segment: number, ...slice })),
    );
    const isCertain = clues.map((_, at) => first.every((found) => found[at] !== null));
    const candidates = clues.map(gather);
    return {
      candidates,
      isCertain,
      readPlaces: (sql) => this.#readPlaces(sql, missing),
      finish: () => clues.map((clue, at) => (isCertain[at] ? (candidates[at] ?? NO_IDS) : gather(clue, at))),
    };
  }

  /** The documents that match each clue, in order, among those allowed. */
  async match(sql: Sql, clues: readonly TextClue[], allowed: Float64Array | null): Promise<Float64Array[]> {
    const matching = this.begin(clues, allowed);
    await matching.readPlaces(sql);
    return matching.finish();
  }

  #narrow(found: Float64Array, allowed: Float64Array | null): Float64Array {
    const present = this.#gone.size === 0 ? found : found.filter((id) => !this.#gone.has(id));
    return allowed === null ? present : intersect([present, allowed]);
  }

  async #readPlaces(sql: Sql, slices: readonly SegmentSlice[]): Promise<void> {
    if (slices.length === 0) return;
    const rows = await sql.all<{ segment: number; term: string; at: number; places: Uint8Array }>(
      SLICES,
      slices.map(({ owner }) => owner),
      slices.map(({ segment }) => segment),
      slices.map(({ term }) => term),
      slices.map(({ from }) => from),
      slices.map(({ length }) => length),
    );
    for (const { segment, term, at, places } of rows) {
      const postings = must(this.#segments.get(segment)?.words.get(term), "a term that was read");
      postings.places ??= new Uint8Array(must(postings.starts.at(-1), "the end of the places"));
      postings.places.set(places, at);
    }
  }
}

/** Clues that are being matched. */
interface Matching {
  /** The documents that match each clue, or may. */
  readonly candidates: readonly Float64Array[];
  /** For which clues this is certain for all. */
  readonly isCertain: readonly boolean[];
  /** Reads the positions that decide the others. */
  readPlaces(sql: Sql): Promise<void>;
  /** The documents that match each clue, in order; call after the positions were read. */
  finish(): Float64Array[];
}

interface SegmentSlice extends PlaceSlice {
  readonly owner: string;
  readonly segment: number;
}

/** Concatenates and sorts lists: numbers that were committed late are between those of other segments. */
function concat(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  let isOrdered = true;
  for (const list of lists) {
    if (list.length > 0 && at > 0 && (list[0] ?? 0) < (all[at - 1] ?? 0)) isOrdered = false;
    all.set(list, at);
    at += list.length;
  }
  return isOrdered ? all : all.sort();
}

/** Which of some documents match each clue. */
export async function testClues(
  context: StoreContext,
  { kind, clues, ids }: { kind: DocumentKind; clues: readonly TextClue[]; ids: readonly number[] },
): Promise<number[][]> {
  if (ids.length === 0) return clues.map(() => []);
  const wanted = Float64Array.from(ids).sort();
  const asked = new Set(ids);
  return context.sql.read(async (sql) => {
    const [pendingRows, segments] = await Promise.all([
      run<PendingRow>(sql, context.index.pending.ask(kind, {}, null)),
      readSegments(sql, kind, null, clues, null, sql.get<FactRow>(ALL_GONE, kind)),
    ]);
    const [matched, waiting] = await Promise.all([
      segments.match(sql, clues, wanted),
      readPending(sql, context, { kind, scope: {} }, pendingRows),
    ]);
    const held = matched.map((list) => [...list]);
    for (const { id, terms } of waiting.documents.filter((document) => asked.has(document.id)))
      for (const [at, clue] of clues.entries()) if (holdsClue(terms, clue)) held[at]?.push(id);
    return held;
  });
}

export function findDoubts(
  { sql }: StoreContext,
  doubts: readonly SpellingDoubt[],
  scope: RecallScope,
): Promise<DoubtsFound> {
  const { owner = null } = scope;
  return sql.read(async (snapshot) => {
    const [{ words, unresolvedIds }, pending] = await Promise.all([
      findDoubtful(snapshot, doubts, owner),
      snapshot.all<{ id: number }>(PENDING_IDS, owner),
    ]);
    const unresolved = toRanges([...unresolvedIds, ...pending.map(({ id }) => id)]);
    return { words, unresolved, isWhole: true };
  });
}
