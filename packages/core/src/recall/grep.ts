/**
 * Search over messages, summaries and files. Full text: a question as typed works; documents that match all of it come first, the rest by
 * how much of it they and their neighbours match. Regex: see `regex.ts`. The result says which rule found what, how many there are, and how
 * to see more.
 */
import type { Note } from "../model/next-step.ts";
import { EngineError } from "../model/errors.ts";
import type { PlacedTime, RecallScope } from "../store/recall.ts";
import type { ConversationRow, Store } from "../store/store.ts";
import { analyzeQuery, looksLikeRegex, makeSnippet, verbatimShare } from "../text/index.ts";
import type { Query } from "../text/index.ts";
import { findDocuments, isFoundStrictly } from "./find-documents.ts";
import type { FoundDocuments } from "./find-documents.ts";
import { toMessageHit, toSummaryHit } from "./hits.ts";
import type { GrepHit } from "./hits.ts";
import { IdSet } from "./id-set.ts";
import { findNearest, fuseDocuments, scoreByRank } from "./vector-search.ts";
import type { FoundBy, FusedDocuments, QuestionVector } from "./vector-search.ts";
import { OwnWords } from "./own-words.ts";
import { promoteVerbatim } from "./rank.ts";
import type { RankedDocument } from "./rank.ts";
import { readTime } from "./reach.ts";
import type { Reach, ScopeRequest } from "./reach.ts";

export type GrepMode = "regex" | "full_text";
export type GrepScope = "messages" | "summaries" | "both" | "files";
export type GrepSort = "recency" | "relevance" | "hybrid";

export interface GrepRequest extends ScopeRequest {
  readonly pattern: string;
  /** `regex` when absent, as documented; if nothing matches it is retried as full text. */
  readonly mode?: GrepMode;
  readonly scope?: GrepScope;
  readonly fileIds?: readonly string[];
  /** ISO text or ms: written at or after, and before. */
  readonly since?: string | number;
  readonly before?: string | number;
  readonly role?: string;
  /** Hits per page, 1–200. */
  readonly limit?: number;
  /** Absent: the newest first if every hit matches everything asked for, else the best first. */
  readonly sort?: GrepSort;
  /** `next` of the previous page. */
  readonly after?: string;
  /** Also search the calls and results of our own tools. */
  readonly includeRecall?: boolean;
  /** For people: the headings of the hits' conversations, which takes two more reads. */
  readonly withHeadings?: boolean;
  /** Longest time for a regular expression. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type { FileHit, GrepHit, MessageHit, SummaryHit } from "./hits.ts";

/** The conversation of a hit: agent, project and time. */
export type FoundConversation = Pick<
  ConversationRow,
  "conversationId" | "sessionKey" | "sessionId" | "agent" | "project" | "title" | "lastAt"
> & {
  /** Its heading in lists, if requested. */
  readonly heading?: string;
};

export interface GrepResult extends FoundHits {
  readonly conversations: readonly FoundConversation[];
}

export interface FoundHits {
  readonly hits: GrepHit[];
  /** The conversations of the hits, as far as they were read. */
  readonly conversations?: readonly FoundConversation[];
  readonly mode: GrepMode;
  readonly scope: GrepScope;
  /**
   * What found the hits: all terms, any of them, terms and vectors together, the expression; `empty` when there was nothing to search for.
   */
  readonly rule: "strict" | "relaxed" | "fused" | "regex" | "empty";
  /** How many match by that rule. */
  readonly total: number;
  /** False: at least this many. */
  readonly isTotalExact: boolean;
  /** How many of them match everything asked for. */
  readonly complete: number;
  /** Pass it as `after` to see the next page; null on the last. */
  readonly next: string | null;
  /** True when a regular expression was stopped before it had tested everything. */
  readonly truncated: boolean;
  readonly notes: readonly Note[];
  readonly searched: string;
}

const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;
export const SNIPPET_CHARS = 200;
/** How many of the best are read to check whether they contain an identifier as typed. */
const VERBATIM_LOOK = 100;
/** This many are read for a question, whose order changes a little once their texts are known. */
const READ_AHEAD = 140;
/** How many documents beyond those that were ranked can be paged through. */
const MAX_UNRANKED = 5_000;
/** What an hour of age takes off in hybrid order. */
const HYBRID_AGE_PER_HOUR = 0.001;
const HOUR_MS = 3_600_000;

export interface CheckedGrep {
  readonly pattern: string;
  readonly kinds: readonly ("message" | "summary")[];
  readonly scope: RecallScope;
  readonly limit: number;
  readonly offset: number;
  readonly sort: GrepSort | null;
}

/** Refuses invalid requests, and normalises the rest. */
export function checkGrep(request: GrepRequest, reach: Reach): CheckedGrep {
  const pattern = request.pattern?.trim() ?? "";
  if (pattern === "")
    throw new EngineError("usage", "cannot search: the pattern is empty", {
      hint: "pass words, a question or a regular expression",
    });
  const limit = request.limit ?? DEFAULT_LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw new EngineError(
      "usage",
      `cannot show ${limit} hits: limit is a whole number from 1 to ${MAX_LIMIT}`,
      {
        step: { kind: "next_page" },
      },
    );
  }
  const since = readTime(request.since, "since");
  const before = readTime(request.before, "before");
  if (since !== undefined && before !== undefined && since >= before) {
    throw new EngineError("usage", "cannot search: the start of the time range must be before its end");
  }
  const wanted = request.scope ?? "both";
  return {
    pattern,
    kinds: wanted === "both" ? ["message", "summary"] : wanted === "summaries" ? ["summary"] : ["message"],
    scope: {
      ...reach.scope,
      since,
      before,
      role: request.role,
    },
    limit,
    offset: readOffset(request.after),
    sort: request.sort ?? null,
  };
}

function readOffset(after: string | undefined): number {
  if (after === undefined) return 0;
  const offset = Number(/^at_(\d{1,9})$/.exec(after)?.[1]);
  if (Number.isInteger(offset)) return offset;
  throw new EngineError("usage", `cannot continue after "${after}": it is not the end of a page`, {
    step: { kind: "next_page" },
  });
}

export function nextPage(offset: number, limit: number, available: number): string | null {
  return offset + limit < available ? `at_${offset + limit}` : null;
}

interface Candidate {
  readonly kind: "message" | "summary";
  readonly id: number;
  readonly score: number;
  readonly foundBy: readonly FoundBy[];
  readonly conversationId: number;
  readonly createdAt: number;
  /** 0 for a summary, and if unknown. */
  readonly position: number;
}

/** Documents for all of which only the time is known. */
interface DatedDocuments
  extends Pick<FoundDocuments, "ranked" | "holding">, Partial<Pick<FusedDocuments, "near" | "worded">> {
  readonly candidates: ReadonlyMap<number, Pick<PlacedTime, "createdAt" | "conversationId" | "position">>;
}

interface FoundOfKind {
  readonly kind: Candidate["kind"];
  readonly documents: FoundDocuments | FusedDocuments;
}

export interface FullTextOptions {
  readonly now: number;
  readonly commonAbove?: number;
  /** Called for a vector only when words alone are not enough. */
  readonly embedQuestion?: () => Promise<QuestionVector>;
  /** Also return the conversations of the hits. */
  readonly withConversations?: boolean;
}

export async function grepFullText(
  store: Store,
  request: GrepRequest,
  reach: Reach,
  options: FullTextOptions,
): Promise<FoundHits> {
  const checked = checkGrep(request, reach);
  const query = analyzeQuery(checked.pattern);
  const own = new OwnWords(store, request);
  const first = await findByWords(own, query, checked, { ...options, extent: reach.extent });
  const complete = first.reduce((sum, { documents }) => sum + documents.complete.length, 0);
  const isStrict = isFoundStrictly(query, complete);
  const sort = checked.sort ?? (isStrict ? "recency" : "relevance");
  const shown = checked.limit + checked.offset;
  // Asked together: a server is as far away for both as for one.
  const [worded, unranked] = await Promise.all([
    preferVerbatim(own, query, first, checked.scope),
    isStrict ? readUnranked(store, first, checked.scope, { sort, shown }) : [],
  ]);
  const questionVector =
    isStrict || !checked.kinds.includes("message") ? undefined : await options.embedQuestion?.();
  const isFused = questionVector?.kind === "vector";
  const found = isFused
    ? await addNearest(store, own, worded, questionVector, query, checked, request.signal)
    : worded;
  const candidates = found.flatMap(({ kind, documents }, at) =>
    chooseCandidates(kind, addUnranked(documents, unranked[at]?.read ?? []), query, isStrict),
  );
  const ordered = orderCandidates(candidates, sort, options.now, isStrict ? Infinity : shown);
  const left = unranked.reduce((sum, { unread }) => sum + unread, 0);
  const page = ordered.slice(checked.offset, checked.offset + checked.limit);
  const isEmpty = query.terms.length + query.phrases.length === 0;
  const [hits, conversations] = await Promise.all([
    describeCandidates(store, own, query, page, checked.scope),
    options.withConversations ? readConversations(store, page) : [],
  ]);
  return {
    hits,
    conversations,
    mode: "full_text",
    scope: request.scope ?? "both",
    rule: isFused ? "fused" : isEmpty ? "empty" : isStrict ? "strict" : "relaxed",
    total: isStrict ? complete : found.reduce((sum, { documents }) => sum + countFound(documents, query), 0),
    isTotalExact: found.every(({ documents }) => documents.isExact),
    complete,
    next: nextPage(checked.offset, checked.limit, ordered.length + left),
    truncated: false,
    notes: [
      ...noteQuery(checked.pattern, query, { complete, found: isFused ? 0 : ordered.length, isStrict }),
      ...(questionVector?.kind === "none" && questionVector.note !== null
        ? [{ text: questionVector.note, step: null }]
        : []),
      ...notePending(found.reduce((sum, { documents }) => sum + documents.pending, 0)),
    ],
    searched: reach.label,
  };
}

/** A question also finds messages next to those with its words. */
function countFound({ holding, ranked }: FoundDocuments, { isQuestion }: Query): number {
  const beside = isQuestion ? ranked.filter(({ id }) => !holding.has(id)).length : 0;
  return holding.size + beside;
}

function findByWords(
  own: OwnWords,
  query: Query,
  { kinds, scope, sort, limit, offset }: CheckedGrep,
  options: FullTextOptions & Pick<Reach, "extent">,
): Promise<FoundOfKind[]> {
  return Promise.all(
    kinds.map(async (kind) => {
      const { extent } = options;
      const readAhead = namesIdentifier(query) ? READ_AHEAD : 0;
      const newest = (sort ?? "recency") === "recency" ? limit + offset : undefined;
      const request = { kind, query, scope, extent, readAhead, newest, ...pickCommon(options) };
      return { kind, documents: await findDocuments(own, request) };
    }),
  );
}

const namesIdentifier = ({ terms }: Query): boolean => terms.some(({ kind }) => kind === "identifier");

/** The conversations of candidates; one that was removed meanwhile is omitted. */
async function readConversations(store: Store, page: readonly Candidate[]): Promise<ConversationRow[]> {
  const ids = new Set(page.map(({ conversationId }) => conversationId));
  const rows = await Promise.all([...ids].map((id) => store.readConversation(id)));
  return rows.flatMap((row) => row ?? []);
}

/** Joins messages with their nearest by meaning; summaries, which have no vectors, get the same scale. */
async function addNearest(
  store: Store,
  own: OwnWords,
  found: readonly FoundOfKind[],
  questionVector: Extract<QuestionVector, { kind: "vector" }>,
  query: Query,
  { scope }: CheckedGrep,
  signal: AbortSignal | undefined,
): Promise<FoundOfKind[]> {
  const nearest = await findNearest(store, questionVector, scope, { signal });
  const needsAll = !query.isQuestion;
  return Promise.all(
    found.map(async ({ kind, documents }) => ({
      kind,
      documents:
        kind === "message"
          ? await fuseDocuments(own, dropUnheld(documents, query), nearest, { scope, needsAll })
          : { ...documents, ranked: scoreByRank(documents.ranked) },
    })),
  );
}

/** For keywords, documents without any of them were ranked only because of their neighbours. */
function dropUnheld(documents: FoundDocuments, { isQuestion }: Query): FoundDocuments {
  if (isQuestion) return documents;
  return { ...documents, ranked: documents.ranked.filter(({ id }) => documents.holding.has(id)) };
}

const pickCommon = ({ commonAbove }: { readonly commonAbove?: number }): { commonAbove?: number } =>
  commonAbove === undefined ? {} : { commonAbove };

/** Documents that hold all keywords and were not ranked. */
interface Unranked {
  /** Newest first. */
  readonly read: readonly PlacedTime[];
  /** How many more there are, none of which is on the page. */
  readonly unread: number;
}

/** When everything that holds the keywords is wanted, also what was not looked at closely: what arrived last, as far as the page may reach it. */
function readUnranked(
  store: Store,
  found: readonly FoundOfKind[],
  scope: RecallScope,
  page: { readonly sort: GrepSort; readonly shown: number },
): Promise<Unranked[]> {
  return Promise.all(
    found.map(async ({ kind, documents }) => {
      const { complete, candidates } = documents;
      const rest = complete.filter((id) => !candidates.has(id)).slice(0, MAX_UNRANKED);
      const isPassed = rest.length === 0 ? () => false : findPassed(documents, page);
      const ids = rest.filter((id) => !isPassed(id));
      const placed = ids.length === 0 ? [] : await store.readTimes({ kind, ids, scope });
      return { read: placed.toSorted(compareNewest), unread: rest.length - ids.length };
    }),
  );
}

/**
 * Which documents come after the page, whatever their times are. In the order of scores these are all that were not ranked, once those
 * that were fill the page. In the order of time these are the ones that were tied for the last places and not taken: the newest were.
 */
function findPassed(
  { candidates, ranked, tied }: FoundDocuments,
  { sort, shown }: { readonly sort: GrepSort; readonly shown: number },
): (id: number) => boolean {
  const holding = new Set(ranked.filter(({ complete }) => complete).map(({ id }) => id));
  if (sort !== "recency") return () => holding.size >= shown;
  const isTied = new IdSet([tied.ids]);
  const taken = [...candidates.values()]
    .filter(({ id }) => isTied.has(id))
    .toSorted(compareNewest)
    .slice(0, tied.count)
    .filter(({ id }) => holding.has(id));
  return taken.length < shown ? () => false : (id) => isTied.has(id);
}

/** Behind the rest. */
function addUnranked(documents: FoundDocuments, written: readonly PlacedTime[]): DatedDocuments {
  if (written.length === 0) return documents;
  return {
    ...documents,
    ranked: [...documents.ranked, ...written.map(({ id }) => ({ id, score: 0, complete: true }))],
    candidates: new Map([...documents.candidates, ...written.map((time) => [time.id, time] as const)]),
  };
}

function chooseCandidates(
  kind: Candidate["kind"],
  documents: DatedDocuments,
  query: Query,
  isStrict: boolean,
): Candidate[] {
  const { ranked, candidates, holding } = documents;
  const best = ranked[0]?.score ?? 1;
  return keepOrder(ranked)
    .filter(({ id, complete }) => (isStrict ? complete : query.isQuestion || holding.has(id)))
    .map(({ id, score }, rank) => ({
      kind,
      id,
      // Scores of messages and of summaries have different scales; what counts is how close each is to the best of its kind.
      score: score / best - rank * 1e-9,
      foundBy: nameRules(documents, id),
      conversationId: candidates.get(id)?.conversationId ?? 0,
      createdAt: candidates.get(id)?.createdAt ?? 0,
      position: (kind === "message" ? candidates.get(id)?.position : undefined) ?? 0,
    }));
}

function nameRules({ near, worded }: DatedDocuments, id: number): readonly FoundBy[] {
  if (near === undefined) return ["words"];
  return [...(worded?.has(id) ? ["words" as const] : []), ...(near.has(id) ? ["vector" as const] : [])];
}

type Placed = Pick<PlacedTime, "id" | "createdAt" | "position">;

/** Ids break remaining ties: a server assigns them in any order. */
const compareNewest = (a: Placed, b: Placed): number =>
  b.createdAt - a.createdAt || b.position - a.position || b.id - a.id;

/** Sorts candidates. In recency order only as many of the best as will be shown take part: otherwise unrelated newest ones would win. */
function orderCandidates(
  candidates: readonly Candidate[],
  sort: GrepSort,
  now: number,
  most: number,
): Candidate[] {
  const byScore = (scoreOf: (candidate: Candidate) => number): Candidate[] =>
    candidates.toSorted((a, b) => scoreOf(b) - scoreOf(a) || b.createdAt - a.createdAt);
  if (sort === "hybrid") {
    const ageHours = (candidate: Candidate): number => Math.max(0, now - candidate.createdAt) / HOUR_MS;
    return byScore((candidate) => candidate.score / (1 + ageHours(candidate) * HYBRID_AGE_PER_HOUR));
  }
  const best = byScore(({ score }) => score);
  if (sort === "relevance") return best;
  return [...best.slice(0, most).toSorted(compareNewest), ...best.slice(most)];
}

/** The index folds case; among the best it found, those that spell an identifier as typed come first. */
function preferVerbatim(
  own: OwnWords,
  query: Query,
  found: readonly FoundOfKind[],
  scope: RecallScope,
): Promise<FoundOfKind[]> {
  return Promise.all(
    found.map(async ({ kind, documents }) => ({
      kind,
      documents:
        kind === "message" && namesIdentifier(query)
          ? await rankVerbatim(own, query, documents, scope)
          : documents,
    })),
  );
}

async function rankVerbatim(
  own: OwnWords,
  query: Query,
  documents: FoundDocuments | FusedDocuments,
  scope: RecallScope,
): Promise<FoundDocuments> {
  const ids = documents.ranked.slice(0, VERBATIM_LOOK).map(({ id }) => id);
  // For a question, those that can be among the best were already read.
  const read = query.isQuestion ? own.listRead(ids) : await own.readTexts(ids, scope);
  const texts = new Map(read.map((text) => [text.messageId, own.textOf(text)]));
  const shareOf = (id: number): number => verbatimShare(texts.get(id) ?? "", query);
  const ranked = promoteVerbatim(documents.ranked, shareOf, {
    needsAll: !query.isQuestion,
    limit: VERBATIM_LOOK,
  });
  return { ...documents, ranked };
}

/** Scores that fall with the rank, so that the order, in which complete documents lead, survives a merge with other results. */
function keepOrder(ranked: readonly RankedDocument[]): RankedDocument[] {
  let lowest = Infinity;
  return ranked.map((document) => {
    lowest = Math.min(lowest, document.score);
    return { ...document, score: lowest };
  });
}

async function describeCandidates(
  store: Store,
  own: OwnWords,
  query: Query,
  page: readonly Candidate[],
  scope: RecallScope,
): Promise<GrepHit[]> {
  const idsOf = (kind: Candidate["kind"]): number[] =>
    page.filter((hit) => hit.kind === kind).map(({ id }) => id);
  const [texts, found] = await Promise.all([
    own.readTexts(idsOf("message"), scope),
    store.readFoundSummaries(idsOf("summary"), scope),
  ]);
  const messages = new Map(texts.map((text) => [text.messageId, text]));
  const summaries = new Map(found.map((summary) => [summary.ref, summary]));
  return page.flatMap(({ kind, id, score, foundBy }): GrepHit[] => {
    const message = kind === "message" ? messages.get(id) : undefined;
    if (message)
      return [
        toMessageHit(
          message,
          { score, foundBy },
          makeSnippet(own.textOf(message), query, { maxChars: SNIPPET_CHARS }),
        ),
      ];
    const summary = kind === "summary" ? summaries.get(id) : undefined;
    if (summary)
      return [
        toSummaryHit(
          summary,
          { score, foundBy },
          makeSnippet(summary.content, query, { maxChars: SNIPPET_CHARS }),
        ),
      ];
    return [];
  });
}

function notePending(pending: number): Note[] {
  if (pending === 0) return [];
  const text = `The ${pending} newest messages of the archive are not indexed yet; the next write indexes them.`;
  return [{ text, step: null }];
}

function noteQuery(
  pattern: string,
  query: Query,
  { complete, found, isStrict }: { complete: number; found: number; isStrict: boolean },
): Note[] {
  const notes: Note[] = [];
  if (looksLikeRegex(pattern)) {
    const text = "This looks like a regular expression; full text searches for its words only.";
    notes.push({ text, step: { kind: "search_regex" } });
  }
  if (!isStrict && complete > 0 && !query.isQuestion)
    notes.push({ text: `${complete} match all terms and come first.`, step: null });
  if (!isStrict && complete === 0 && found > 0)
    notes.push({ text: "Nothing matches all terms; these match some of them.", step: null });
  return notes;
}
