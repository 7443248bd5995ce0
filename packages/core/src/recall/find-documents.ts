/**
 * Finds documents for a question: splits it into clues, looks each up in the store, ranks the matches with their neighbours. Words too
 * common to be listed never add a document; they only re-rank what rarer words found. When every word is that common, documents with two of
 * them are searched instead. The speaker of a message counts if the question names a speaker or is about its asker; the short ones among
 * the best messages are read, because the answer to a question is next to it.
 */
import type { CandidateDocument, RecallScope, TiedDocuments } from "../store/recall.ts";
import type { ClueListing, DocumentKind } from "../store/text-index.ts";
import { buildClues, buildNameClues, isNearDate, nameClue } from "../text/index.ts";
import type { NamedDate, Query, QueryClue, TextClue } from "../text/index.ts";
import { IdSet } from "./id-set.ts";
import type { ReadonlyIds } from "./id-set.ts";
import type { FindStore } from "./own-words.ts";
import type { Extent } from "./reach.ts";
import { DATE_WEIGHT, NEIGHBOUR_REACH, rankCandidates, selectSeeds } from "./rank.ts";
import type { FoundClue, RankedDocument } from "./rank.ts";

/** A word in more documents than this is too common to add one. */
const COMMON_ABOVE = 20_000;
/** How many documents are examined, each with its neighbours. */
const SEEDS = 400;
/** How many are examined if only their times matter. */
const FEW_SEEDS = 50;
/** Of words that are all too common, the rarest are tried in pairs. */
const PAIRED = 4;
/** A person whose name begins this share of all messages is their speaker; a word that only opens some sentences is not. */
const SPEAKER_SHARE = 0.03;
const ASKER_ROLE = "user";
/** This many of the best are checked for a question at their end; a longer message asks several things, or nothing. */
const READ_FOR_QUESTIONS = 40;
const QUESTION_WORDS = 60;
/** Where to look for the question mark of a message that asks something. */
const LAST_CHARS = 120;
const DAY_MS = 86_400_000;
/** How far from a named day its messages may be written; the exact rule is {@link isNearDate}. */
const DATE_MARGIN_MS = 7 * DAY_MS;

export interface FindRequest {
  readonly kind: DocumentKind;
  readonly query: Query;
  readonly scope: RecallScope;
  readonly commonAbove?: number;
  /** Times of the oldest and newest message of the scope, if already known. */
  readonly extent?: Extent | undefined;
  /** How many of the newest documents that match everything are wanted; if there are enough, their scores do not matter. */
  readonly newest?: number | undefined;
  /** This many of the best are read anyway: they are requested together with those that are read here. */
  readonly readAhead?: number;
}

export interface FoundDocuments {
  /** Best first. */
  readonly ranked: readonly RankedDocument[];
  readonly candidates: ReadonlyMap<number, CandidateDocument>;
  /** Documents that match anything asked for, and those among them that match all of it, newest first; ranked or not. */
  readonly holding: ReadonlyIds;
  readonly complete: readonly number[];
  /** Documents of which none was better than another, and how many of them were taken as candidates: the newest. */
  readonly tied: TiedDocuments;
  /** False when words were too common to count every document that holds one. */
  readonly isExact: boolean;
  /** Messages that were not searched, because they are not in the index yet. */
  readonly pending: number;
}

const NOTHING: FoundDocuments = {
  ranked: [],
  candidates: new Map(),
  holding: new Set(),
  complete: [],
  tied: { ids: [], count: 0 },
  isExact: true,
  pending: 0,
};

export async function findDocuments(store: FindStore, request: FindRequest): Promise<FoundDocuments> {
  const { kind, query, scope, commonAbove = COMMON_ABOVE } = request;
  const whole = buildClues(query);
  const parts = query.parts.map(buildClues);
  const sought = new Map([...whole, ...parts.flat()].map((clue) => [nameClue(clue.sought), clue.sought]));
  if (sought.size === 0) return NOTHING;
  const clues = [...sought.values()];
  const dates = kind === "message" ? query.dates : [];
  const [answer, early] = await Promise.all([
    store.findClues({ kind, clues, scope, limit: commonAbove }),
    request.extent === undefined ? null : findDated(store, dates, scope, request.extent, commonAbove),
  ]);
  const { total } = answer;
  const listings: Listings = new Map(
    [...sought.keys()].map((name, at) => [name, answer.listings[at] as ClueListing]),
  );
  const dated =
    request.extent === undefined ? await findDated(store, dates, scope, answer, commonAbove) : early;
  const join = (clues: readonly QueryClue[]): ListedClue[] => [
    ...clues.map((clue) => ({ ...clue, ...listingOf(listings, clue) })),
    ...(dated ? [{ ...dated, listedFrom: null }] : []),
  ];
  const rare = join(whole).filter(({ listedFrom }) => listedFrom === null);
  const one = findOneThing(query, whole, listings);
  const settled = request.newest === undefined ? null : findSettled(query, whole, listings);
  const paired =
    settled !== null || rare.some(({ ids, weight }) => weight > 0 && ids.length > 0)
      ? []
      : one !== null
        ? [{ ...one, ...listingOf(listings, one) }]
        : await findPairs(store, request, whole, listings, commonAbove);
  const seeds =
    settled === null
      ? selectSeeds([...rare, ...paired], total, SEEDS)
      : selectSeeds([settled], total, Math.max(request.newest ?? 0, FEW_SEEDS));
  const pending = answer.pendingIds.length;
  if (seeds.ids.length + seeds.tied.count === 0) return { ...NOTHING, pending };
  const isMessage = kind === "message";
  const [candidates, named] = await Promise.all([
    store.readCandidates({
      kind,
      ...seeds,
      reach: isMessage && settled === null ? reachOf(query) : 0,
      scope,
      withRoles: query.isAboutAsker,
    }),
    isMessage ? findNamed(store, request, listings, total) : null,
  ]);
  const tested = one === null ? sought : [[nameClue(one.sought), one.sought] as const];
  if (settled === null) await addTested(store, kind, tested, listings, candidates);
  const others = named === null ? undefined : findOthers(query, named, candidates);
  // Of what was not tested, it is not known of every candidate whether it holds it.
  const isWhole = one === null && settled === null;
  const counted = join(whole).filter(
    ({ listedFrom, required }) => isWhole || required || listedFrom === null,
  );
  const question = { clues: counted, parts: parts.map(join), needsAll: !query.isQuestion, others };
  const first = rankCandidates(question, candidates, total);
  const asking = isMessage && query.isQuestion ? await findAsking(store, request, first, candidates) : [];
  const ranked =
    asking.length === 0 ? first : rankCandidates({ ...question, asking: new Set(asking) }, candidates, total);
  const known = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  const holding = new IdSet(whole.map((clue) => listingOf(listings, clue).ids));
  const isExact = [...listings.values()].every(({ listedFrom }) => listedFrom === null);
  return {
    ranked,
    candidates: known,
    holding,
    complete: settled?.ids ?? intersect(whole, listings, ranked),
    tied: seeds.tied,
    isExact,
    pending,
  };
}

/** Keywords found together this often need no looser search. */
const ENOUGH_COMPLETE = 5;

/** Keywords and pasted lines want documents that hold all of them; a question wants its answer, which may hold none. */
export function isFoundStrictly(query: Query, complete: number): boolean {
  const asked = query.terms.length + query.phrases.length;
  return !query.isQuestion && (complete >= ENOUGH_COMPLETE || (complete > 0 && asked === 1));
}

/** A word, an identifier or a phrase: whatever holds it holds all that was asked for. */
const isOneThing = ({ isQuestion, terms, phrases }: Query): boolean =>
  !isQuestion && terms.length + phrases.length === 1;

/** Neighbours of a document add nothing about the single item that it contains. */
const reachOf = (query: Query): number => (isOneThing(query) ? 0 : NEIGHBOUR_REACH);

/** The clue of the one thing that was asked for, if anything holds it: then it does not matter where the common words stand that it is made of. */
function findOneThing(query: Query, clues: readonly QueryClue[], listings: Listings): QueryClue | null {
  const [one, ...more] = clues.filter(({ required }) => required);
  if (!isOneThing(query) || one === undefined || more.length > 0) return null;
  return listingOf(listings, one).ids.length > 0 ? one : null;
}

/**
 * The documents that hold everything, where the newest of them are wanted and nothing else is worth a look: all hold the one word that was
 * asked for, or there are enough among the newest of words that are common.
 */
function findSettled(query: Query, clues: readonly QueryClue[], listings: Listings): FoundClue | null {
  const isPlain = clues.length === 1;
  const isCommon = clues.some((clue) => clue.required && listingOf(listings, clue).listedFrom !== null);
  if (!isPlain && !isCommon) return null;
  const ids = intersect(clues, listings, []);
  if (!isFoundStrictly(query, ids.length)) return null;
  return { weight: 1, required: true, spreads: false, ids, frequency: ids.length };
}

/** What speakers said whom the question names. */
async function findNamed(
  store: FindStore,
  { kind, query, scope, commonAbove = COMMON_ABOVE }: FindRequest,
  listings: Listings,
  total: number,
): Promise<IdSet> {
  const isSpeaker = ({ frequency }: ClueListing): boolean => frequency >= SPEAKER_SHARE * total;
  // The name of a frequent speaker occurs at least as often; for all other words there is nothing to look up.
  const names = query.isQuestion ? buildNameClues(query) : [];
  const clues = names.filter((name) => isSpeaker(listingOf(listings, name))).map(({ speaking }) => speaking);
  const spoken =
    clues.length === 0 ? [] : (await store.findClues({ kind, clues, scope, limit: commonAbove })).listings;
  return new IdSet(spoken.filter(isSpeaker).map(({ ids }) => ids));
}

/** Messages of others, if the question names a speaker of the same session, or is about its asker. */
function findOthers(query: Query, named: IdSet, candidates: readonly CandidateDocument[]): Set<number> {
  return new Set([
    ...listOthers(candidates, ({ id }) => named.has(id)),
    ...(query.isAboutAsker ? listOthers(candidates, ({ role }) => role === ASKER_ROLE) : []),
  ]);
}

/** The documents of other speakers in sessions in which the intended one speaks. */
function listOthers(
  candidates: readonly CandidateDocument[],
  isMeant: (candidate: CandidateDocument) => boolean,
): number[] {
  const groups = new Set(candidates.filter(isMeant).map(({ group }) => group));
  return candidates
    .filter((candidate) => groups.has(candidate.group) && !isMeant(candidate))
    .map(({ id }) => id);
}

/** Those of the best documents that end with a question. */
async function findAsking(
  store: FindStore,
  { scope, readAhead = 0 }: FindRequest,
  ranked: readonly RankedDocument[],
  candidates: readonly CandidateDocument[],
): Promise<number[]> {
  const short = new Set(candidates.filter(({ words }) => words <= QUESTION_WORDS).map(({ id }) => id));
  const ids = ranked.slice(0, READ_FOR_QUESTIONS).flatMap(({ id }) => (short.has(id) ? id : []));
  const ahead = ranked.slice(0, readAhead).map(({ id }) => id);
  const texts = await store.readTexts([...new Set([...ids, ...ahead])], scope);
  const looked = new Set(ids);
  return texts
    .filter(({ messageId }) => looked.has(messageId))
    .filter((text) => /[?？؟]/.test(store.textOf(text).slice(-LAST_CHARS)))
    .map(({ messageId }) => messageId);
}

/** The documents that match every required clue. For common ones only the listed part is known; ranked documents are known for certain. */
function intersect(
  clues: readonly QueryClue[],
  listings: Listings,
  ranked: readonly RankedDocument[],
): readonly number[] {
  const [first = [], ...rest] = clues
    .filter(({ required }) => required)
    .map((clue) => listingOf(listings, clue).ids)
    .toSorted((a, b) => a.length - b.length);
  const listed = rest.reduce<readonly number[]>((common, ids) => {
    const known = new IdSet([common]);
    return ids.filter((id) => known.has(id));
  }, first);
  if (ranked.length === 0) return listed;
  const known = new IdSet([listed]);
  const certain = ranked.flatMap(({ id, complete }) => (complete && !known.has(id) ? id : []));
  return [...listed, ...certain].sort((a, b) => b - a);
}

/** Listings by the names of their clues. */
type Listings = Map<string, ClueListing>;

const listingOf = (listings: Listings, { sought }: Pick<QueryClue, "sought">): ClueListing =>
  listings.get(nameClue(sought)) as ClueListing;

interface ListedClue extends FoundClue {
  readonly listedFrom: number | null;
}

/** Completes the listings of common words for the places that will be ranked: of the newest it is known already where those words stand. */
async function addTested(
  store: FindStore,
  kind: DocumentKind,
  sought: Iterable<readonly [name: string, clue: TextClue]>,
  listings: Listings,
  candidates: readonly CandidateDocument[],
): Promise<void> {
  const listedFrom = (name: string): number => listings.get(name)?.listedFrom ?? 0;
  const oldest = candidates.reduce((least, { id }) => Math.min(least, id), Infinity);
  const common = [...sought].filter(([name]) => oldest < listedFrom(name));
  if (common.length === 0) return;
  const end = Math.max(...common.map(([name]) => listedFrom(name)));
  const found = await store.testClues({
    kind,
    clues: common.map(([, clue]) => clue),
    ids: candidates.flatMap(({ id }) => (id < end ? id : [])),
  });
  for (const [at, [name]] of common.entries()) {
    const listing = listings.get(name) as ClueListing;
    // Like all listings, the latest first.
    const older = (found[at] ?? []).filter((id) => id < listedFrom(name)).sort((a, b) => b - a);
    listings.set(name, { ...listing, ids: [...listing.ids, ...older] });
  }
}

/** Documents with two common words are worth examining though neither word alone is. */
async function findPairs(
  store: FindStore,
  { kind, scope }: FindRequest,
  clues: readonly QueryClue[],
  listings: Listings,
  limit: number,
): Promise<FoundClue[]> {
  const common = clues
    .filter(
      (clue) => clue.weight > 0 && clue.sought.kind !== "near" && listingOf(listings, clue).frequency > 0,
    )
    .toSorted((a, b) => listingOf(listings, a).frequency - listingOf(listings, b).frequency)
    .slice(0, PAIRED);
  const single = common[0];
  if (single === undefined) return [];
  const pairs = common.flatMap((one, at) =>
    common.slice(at + 1).map((other): TextClue => ({ kind: "all", of: [one.sought, other.sought] })),
  );
  const { listings: paired } =
    pairs.length === 0 ? { listings: [] } : await store.findClues({ kind, clues: pairs, scope, limit });
  const found = paired.map((listing) => ({
    weight: 1,
    required: false,
    spreads: false,
    ...listing,
  }));
  // One word alone, or words that never occur together: the newest documents with the rarest of them.
  return found.some(({ ids }) => ids.length > 0) ? found : [{ ...single, ...listingOf(listings, single) }];
}

/** The messages written around the dates a question names, as one more clue. */
async function findDated(
  store: FindStore,
  dates: readonly NamedDate[],
  scope: RecallScope,
  { firstAt, lastAt }: { firstAt: number | null; lastAt: number | null },
  limit: number,
): Promise<FoundClue | null> {
  if (dates.length === 0 || firstAt === null || lastAt === null) return null;
  const ranges = dates.flatMap((date) => rangesOf(date, firstAt, lastAt));
  if (ranges.length === 0) return null;
  const written = await store.findWritten({ scope, ranges, limit });
  const ids = written
    .filter(({ createdAt }) => dates.some((date) => isNearDate(date, createdAt)))
    .map(({ messageId }) => messageId);
  return { weight: DATE_WEIGHT, required: false, spreads: false, ids, frequency: ids.length };
}

/** Periods that include a named date, in each year of the archive if it names none. */
function rangesOf(date: NamedDate, firstAt: number, lastAt: number): { since: number; before: number }[] {
  const firstYear = date.year ?? new Date(firstAt).getUTCFullYear() - 1;
  const lastYear = date.year ?? new Date(lastAt).getUTCFullYear() + 1;
  const ranges: { since: number; before: number }[] = [];
  for (let year = firstYear; year <= lastYear; year++) {
    const month = (date.month ?? 1) - 1;
    const start = Date.UTC(year, month, date.day ?? 1);
    const end =
      date.day !== undefined
        ? start + DAY_MS
        : date.month !== undefined
          ? Date.UTC(year, month + 1, 1)
          : Date.UTC(year + 1, 0, 1);
    const range = { since: start - DATE_MARGIN_MS, before: end + DATE_MARGIN_MS };
    if (range.before > firstAt && range.since <= lastAt) ranges.push(range);
  }
  return ranges;
}
