/**
 * The ranking of recall, as pure arithmetic: matches in, documents out, best first. It knows no store and no text.
 *
 * A clue counts once per document however often it occurs there, by its rarity, less in a document much longer than a chat message. A
 * document also gets a share of the clues that only its neighbours match (an answer follows its question) and of the best document of its
 * session. The answer to a question gets more of the clues in it. Messages of others count less if the question names who said it.
 * Documents that match everything in a list of keywords or a pasted line come before the others. When several questions are asked at once,
 * each is ranked separately and a document is as good as its best answer.
 */

import { IdSet } from "./id-set.ts";

/** One clue, and where it was found. */
export interface FoundClue {
  /** Its weight, compared with 1 for a plain word. */
  readonly weight: number;
  readonly required: boolean;
  readonly spreads: boolean;
  /** The documents that match it; those that are not among the ranked places are ignored. */
  readonly ids: readonly number[];
  /** How many documents of the searched scope match it; `ids` may be fewer when it is too common to list. */
  readonly frequency: number;
}

/** A document that may be ranked, and its place. */
export interface Candidate {
  readonly id: number;
  /** The session. Only places of one group are neighbours. */
  readonly group: number;
  /** Order within the group; neighbours differ by one. */
  readonly position: number;
  /** Length in words. */
  readonly words: number;
  /** When it was written. */
  readonly createdAt?: number;
}

export interface RankedDocument {
  readonly id: number;
  readonly score: number;
  /** Matches everything asked for. */
  readonly complete: boolean;
}

/** Up to this many words, length does not count: a chat message is as good as a shorter one. */
const FREE_WORDS = 80;
/** How much length counts beyond that, and how fast, as in BM25. */
const LENGTH_SHARE = 0.75;
const SATURATION = 1.2;
/** The share of a clue for documents one, two and three places away. */
const NEIGHBOUR_SHARES = [0.4, 0.32, 0.25];
/** The share of the clues of a message that ends with a question for the next, which answers it. */
const ANSWER_SHARE = 0.7;
/** The factor for a document by another speaker than the one the question is about. */
const OTHER_SHARE = 0.8;
/** The share of a session's best document for all of the session. */
const SESSION_SHARE = 0.3;
/** The share of the whole text compared with its single questions. */
const WHOLE_SHARE = 0.5;

/** The weight of a clue whose documents were written around a date that the question names. It does not spread and is never required. */
export const DATE_WEIGHT = 1.5;

/** How far apart neighbours may be: places within this distance of a found document have to be passed to {@link rankCandidates}. */
export const NEIGHBOUR_REACH = NEIGHBOUR_SHARES.length;

/** The worth of a clue: rare ones say more. Never negative. */
function worthOf(clue: FoundClue, total: number): number {
  const frequency = Math.min(Math.max(clue.frequency, clue.ids.length), total);
  return clue.weight * Math.log(1 + (total - frequency + 0.5) / (frequency + 0.5));
}

/** The factor of a clue in a document of this length: 1 in a short one, less in longer ones. */
function shareInLength(words: number): number {
  const length = Math.max(words, FREE_WORDS) / FREE_WORDS;
  return (SATURATION + 1) / (1 + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length));
}

/** Documents worth examining: `ids`, and `count` of those that are tied for the last places. */
export interface Seeds {
  readonly ids: readonly number[];
  readonly tied: { readonly ids: readonly number[]; readonly count: number };
}

/**
 * The documents worth examining: those with the most and rarest clues. Their neighbours should be ranked with them. Length, time and place
 * are not known yet, so take many more than will be shown, and let the caller, which knows them, break ties.
 */
export function selectSeeds(clues: readonly FoundClue[], total: number, limit: number): Seeds {
  const { documents, scores } = addWorths(clues, total);
  const least = lowestOfBest(scores, limit);
  const ids: number[] = [];
  const last: number[] = [];
  scores.forEach((score, at) => {
    if (score > least) ids.push(documents[at] as number);
    else if (score === least) last.push(documents[at] as number);
  });
  const count = limit - ids.length;
  return last.length <= count
    ? { ids: [...ids, ...last], tied: { ids: [], count: 0 } }
    : { ids, tied: { ids: last, count } };
}

/** The score of the last document that is among the best; sorting bare numbers is much faster than sorting documents. */
const lowestOfBest = (scores: Float64Array, count: number): number =>
  scores.length <= count ? 0 : (scores.toSorted().at(-count) as number);

/** Stands after the last document of a list. */
const OVER = -Infinity;

/**
 * What the clues of each document are worth together, the latest document first. Lists of clues have that order, so they are walked side by
 * side: of tens of thousands of documents, that costs less than a table of them, and no more in an archive in which they are far apart.
 */
function addWorths(
  clues: readonly FoundClue[],
  total: number,
): { readonly documents: Float64Array; readonly scores: Float64Array } {
  const lists = clues.filter(({ ids }) => ids.length > 0).map(({ ids }) => orderLatest(ids));
  const worths = clues.filter(({ ids }) => ids.length > 0).map((clue) => worthOf(clue, total));
  const most = lists.reduce((sum, ids) => sum + ids.length, 0);
  const [documents, scores] = [new Float64Array(most), new Float64Array(most)];
  const places = new Uint32Array(lists.length);
  const heads = Float64Array.from(lists, (ids) => ids[0] ?? OVER);
  let size = 0;
  for (;;) {
    let latest = OVER;
    for (let at = 0; at < heads.length; at++)
      if ((heads[at] as number) > latest) latest = heads[at] as number;
    if (latest === OVER) break;
    let score = 0;
    for (let at = 0; at < heads.length; at++) {
      if (heads[at] !== latest) continue;
      score += worths[at] as number;
      const place = (places[at] as number) + 1;
      places[at] = place;
      heads[at] = (lists[at] as readonly number[])[place] ?? OVER;
    }
    documents[size] = latest;
    scores[size] = score;
    size += 1;
  }
  return { documents: documents.subarray(0, size), scores: scores.subarray(0, size) };
}

/** Listings have this order already; what was found by its time has not. */
function orderLatest(ids: readonly number[]): readonly number[] {
  for (let at = 1; at < ids.length; at++)
    if ((ids[at] as number) >= (ids[at - 1] as number)) return [...new Set(ids)].sort((a, b) => b - a);
  return ids;
}

/** The places of one question, ordered by group and position. */
interface Layout {
  readonly candidates: readonly Candidate[];
  /** Documents that end with a question. */
  readonly asking: ReadonlySet<number>;
  /** The indexes of a list's documents. Cached, because a clue belongs to the whole and to one of its parts. */
  find(ids: readonly number[]): readonly number[];
}

function layOut(candidates: readonly Candidate[], asking: ReadonlySet<number>): Layout {
  const ordered = candidates.toSorted((a, b) => a.group - b.group || a.position - b.position);
  const indexOf = new Map(ordered.map(({ id }, index) => [id, index]));
  const found = new Map<readonly number[], readonly number[]>();
  return {
    candidates: ordered,
    asking,
    find(ids) {
      let candidates = found.get(ids);
      if (candidates === undefined) found.set(ids, (candidates = findIndexes(indexOf, ids)));
      return candidates;
    },
  };
}

/** Looks up the smaller set in the larger. */
function findIndexes(indexOf: ReadonlyMap<number, number>, ids: readonly number[]): number[] {
  if (ids.length <= indexOf.size) return ids.flatMap((id) => indexOf.get(id) ?? []);
  const wanted = new IdSet([ids]);
  return [...indexOf].flatMap(([id, at]) => (wanted.has(id) ? at : []));
}

/** The count of one clue at each place, 0 where it does not match. */
function countClue(layout: Layout, clue: FoundClue): Float64Array {
  const counts = new Float64Array(layout.candidates.length);
  for (const at of layout.find(clue.ids))
    counts[at] = shareInLength((layout.candidates[at] as Candidate).words);
  return counts;
}

/** Adds to each place the better counts of its neighbours. */
function spreadClue(layout: Layout, counts: Float64Array): Float64Array {
  const spread = Float64Array.from(counts);
  const { candidates } = layout;
  for (let at = 0; at < candidates.length; at++) {
    const count = counts[at] as number;
    if (count === 0) continue;
    for (let other = at - NEIGHBOUR_REACH; other <= at + NEIGHBOUR_REACH; other++) {
      const share = shareBetween(candidates[at] as Candidate, candidates[other], layout.asking);
      if (share * count > (spread[other] ?? Infinity)) spread[other] = share * count;
    }
  }
  return spread;
}

function shareBetween(one: Candidate, other: Candidate | undefined, asking: ReadonlySet<number>): number {
  if (other === undefined || other.group !== one.group) return 0;
  const distance = other.position - one.position;
  if (distance === 1 && asking.has(one.id)) return ANSWER_SHARE;
  return NEIGHBOUR_SHARES[Math.abs(distance) - 1] ?? 0;
}

/** Scores every place of a layout for one question. */
function scoreCandidates(layout: Layout, clues: readonly FoundClue[], total: number): Float64Array {
  const own = new Float64Array(layout.candidates.length);
  const around = new Float64Array(layout.candidates.length);
  for (const clue of clues) {
    const worth = worthOf(clue, total);
    if (worth === 0) continue;
    const counts = countClue(layout, clue);
    const spread = clue.spreads ? spreadClue(layout, counts) : counts;
    for (let at = 0; at < own.length; at++) {
      own[at] = (own[at] as number) + worth * (counts[at] as number);
      around[at] = (around[at] as number) + worth * (spread[at] as number);
    }
  }
  const best = new Map<number, number>();
  layout.candidates.forEach(({ group }, at) =>
    best.set(group, Math.max(best.get(group) ?? 0, own[at] as number)),
  );
  return around.map(
    (score, at) => score + SESSION_SHARE * (best.get((layout.candidates[at] as Candidate).group) ?? 0),
  );
}

function highest(scores: Float64Array): number {
  return scores.reduce((most, score) => Math.max(most, score), 0) || 1;
}

/** A place is as good as its best answer to one of the questions, plus a little for the others. */
function fuseParts(whole: Float64Array, parts: readonly Float64Array[]): Float64Array {
  const top = highest(whole);
  const tops = parts.map(highest);
  return whole.map((score, at) => {
    const best = parts.reduce(
      (most, part, index) => Math.max(most, (part[at] as number) / (tops[index] as number)),
      0,
    );
    return best + (WHOLE_SHARE * score) / top;
  });
}

function findComplete(layout: Layout, clues: readonly FoundClue[]): Set<number> {
  const required = clues.filter((clue) => clue.required);
  const held = new Uint16Array(layout.candidates.length);
  for (const { ids } of required) for (const at of layout.find(ids)) held[at] = (held[at] as number) + 1;
  const isComplete = (_candidate: Candidate, at: number): boolean =>
    required.length > 0 && held[at] === required.length;
  return new Set(layout.candidates.filter(isComplete).map(({ id }) => id));
}

/**
 * Ranks documents for a question.
 *
 * @param question `clues` of the whole text, `parts` with the clues of each single question when there are several, and `needsAll` when
 *   documents with every required clue come first: for keywords and pasted lines, not for questions; `others`, documents by other speakers than
 *   the one it is about, and `asking`, documents that end with a question, as far as known.
 * @param places the documents found and their neighbours within {@link NEIGHBOUR_REACH}; each id once.
 * @param total the number of documents in the searched scope.
 */
export function rankCandidates(
  question: {
    readonly clues: readonly FoundClue[];
    readonly parts?: readonly (readonly FoundClue[])[];
    readonly needsAll: boolean;
    readonly others?: ReadonlySet<number>;
    readonly asking?: ReadonlySet<number>;
  },
  candidates: readonly Candidate[],
  total: number,
): RankedDocument[] {
  const { others, asking = new Set() } = question;
  const layout = layOut(candidates, asking);
  const whole = scoreCandidates(layout, question.clues, total);
  const parts = (question.parts ?? []).map((clues) => scoreCandidates(layout, clues, total));
  const scores = parts.length > 1 ? fuseParts(whole, parts) : whole;
  const complete = findComplete(layout, question.clues);
  const ranked = layout.candidates.map((candidate, at) => ({
    candidate,
    id: candidate.id,
    score: (scores[at] as number) * (others?.has(candidate.id) ? OTHER_SHARE : 1),
    complete: complete.has(candidate.id),
  }));
  const tier = (document: RankedDocument): number => (question.needsAll && document.complete ? 1 : 0);
  return ranked
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => tier(b) - tier(a) || b.score - a.score || compareSaid(a.candidate, b.candidate))
    .map(({ id, score, complete: isComplete }) => ({ id, score, complete: isComplete }));
}

/** Of equal documents the earliest comes first. Ids break remaining ties: a server assigns them in any order. */
export const compareSaid = (a: Candidate, b: Candidate): number =>
  (a.createdAt ?? 0) - (b.createdAt ?? 0) || a.position - b.position || a.id - b.id;

/**
 * Moves documents that contain the query exactly as typed before those with another spelling. `shareOf` reads the text, so only the first
 * `limit` documents are checked; the others follow in their order.
 */
export function promoteVerbatim(
  ranked: readonly RankedDocument[],
  shareOf: (id: number) => number,
  options: { readonly needsAll: boolean; readonly limit: number },
): RankedDocument[] {
  const head = ranked.slice(0, options.limit).map((document, rank) => ({
    document,
    rank,
    tier: (options.needsAll && document.complete ? 2 : 0) + shareOf(document.id),
  }));
  head.sort((a, b) => b.tier - a.tier || a.rank - b.rank);
  return [...head.map(({ document }) => document), ...ranked.slice(options.limit)];
}
