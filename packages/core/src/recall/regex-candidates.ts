/**
 * Which messages can match a regular expression, according to the index. If every match contains a literal, the words of the literal are
 * looked up (`text/literal-clues.ts`): first those that are certain, which is enough if they are rare; otherwise all of them, and the longer
 * words that the first and the last of them can be part of.
 *
 * Invariant: a message of the scope that matches is among the candidates.
 */
import { EngineError } from "../model/errors.ts";
import type { DatedId, IdRange, RecallScope } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { ClueListing, ClueRequest, CluesFound, DoubtsFound } from "../store/text-index.ts";
import { readLiteralClue, requiredLiterals } from "../text/index.ts";
import type { LiteralClue, TextClue } from "../text/index.ts";

/** Reading this few messages is faster than using the index and the spelled words. */
const FEW_MESSAGES = 1_000;
/** A literal in more messages than this is common: the page is soon full, or most have to be read anyway. */
const MAX_NARROWED = 20_000;
/** Reading so many messages costs less than resolving doubts. */
const FEW_FOUND = 500;
/** Fewer of all messages hardly fill a page. */
const FEW_SHARE = 0.01;

export class RegexCandidates {
  readonly #store: Store;
  readonly #scope: RecallScope;
  readonly #literal: LiteralClue | null;
  /** Messages that match the clue, or are not in the index yet. */
  readonly #ids: readonly IdRange[];
  /** Messages of the scope. */
  readonly #total: number;
  #whole: DoubtsFound | null = null;

  private constructor(
    store: Store,
    scope: RecallScope,
    found: CluesFound,
    ids: readonly number[],
    literal: LiteralClue | null,
  ) {
    this.#store = store;
    this.#scope = scope;
    this.#literal = literal;
    this.#ids = toRanges([...ids, ...found.pendingIds]);
    this.#total = found.total;
  }

  /** Null: any message can match. */
  static async find(store: Store, pattern: string, scope: RecallScope): Promise<RegexCandidates | null> {
    const literals = requiredLiterals(pattern).flatMap((literal) => readLiteralClue(literal) ?? []);
    const list = async (clues: readonly TextClue[], limit: number): Promise<CluesFound | null> =>
      clues.length === 0 ? null : findIfHealthy(store, { kind: "message", clues, scope, limit });
    const sure = await list(
      literals.flatMap(({ certain }) => certain ?? []),
      FEW_FOUND,
    );
    const [fewest] = sure === null ? [] : sortListed(sure);
    if (sure !== null && fewest !== undefined)
      return new RegexCandidates(store, scope, sure, fewest.ids, null);
    const found = await list(
      literals.map(({ clue }) => clue),
      MAX_NARROWED,
    );
    const [rarest] = found === null ? [] : sortListed(found);
    if (found === null || rarest === undefined || found.total <= FEW_MESSAGES) return null;
    return new RegexCandidates(store, scope, found, rarest.ids, literals[rarest.at] ?? null);
  }

  /** Whether few messages match the clue. */
  get isFew(): boolean {
    return this.#ids.length <= FEW_SHARE * this.#total;
  }

  /** The candidates among some messages. */
  async filter(documents: readonly DatedId[]): Promise<DatedId[]> {
    const ids = documents.map(({ id }) => id).sort((a, b) => a - b);
    const [low, high] = [ids[0], ids.at(-1)];
    if (low === undefined || high === undefined) return [];
    const { clue, unresolved } = await this.#resolve([low, high]);
    const [longer = []] =
      clue === null ? [] : await this.#store.testClues({ kind: "message", clues: [clue], ids });
    const ranges = joinRanges([...this.#ids, ...toRanges(longer), ...unresolved]);
    return documents.filter(({ id }) => isWithin(id, ranges));
  }

  /** All candidates, as ranges in order; null: any message. */
  async list(): Promise<IdRange[] | null> {
    const { clue, unresolved } = await this.#resolve(null);
    const request = { kind: "message", scope: this.#scope, limit: MAX_NARROWED } as const;
    const longer = clue === null ? null : await findIfHealthy(this.#store, { ...request, clues: [clue] });
    const listing = longer?.listings[0];
    if (clue !== null && listing?.listedFrom !== null) return null;
    const ranges = joinRanges([...this.#ids, ...toRanges(listing?.ids ?? []), ...unresolved]);
    const size = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    return size > this.#total / 2 ? null : ranges;
  }

  /** What messages match that hold the literal inside longer words, and messages of which that is not known. */
  async #resolve(within: IdRange | null): Promise<{ clue: TextClue | null; unresolved: readonly IdRange[] }> {
    if (this.#literal === null || this.#literal.doubts.length === 0) return { clue: null, unresolved: [] };
    const found = this.#whole ?? (await this.#store.findDoubts(this.#literal.doubts, this.#scope, within));
    if (found.isWhole) this.#whole = found;
    return { clue: this.#literal.spellOut(found.words), unresolved: found.unresolved };
  }
}

/** The listings that are complete, the shortest first. */
const sortListed = ({ listings }: CluesFound): (ClueListing & { readonly at: number })[] =>
  listings
    .map((listing, at) => ({ ...listing, at }))
    .filter(({ listedFrom }) => listedFrom === null)
    .toSorted((a, b) => a.ids.length - b.ids.length);

/** With a damaged index everything has to be read. */
async function findIfHealthy(store: Store, request: ClueRequest): Promise<CluesFound | null> {
  try {
    return await store.findClues(request);
  } catch (error) {
    if (error instanceof EngineError && error.code === "database_corrupt") return null;
    throw error;
  }
}

const toRanges = (ids: readonly number[]): IdRange[] => ids.map((id): IdRange => [id, id]);

/** The same ids in order, each once. */
function joinRanges(ranges: readonly IdRange[]): IdRange[] {
  const joined: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = joined.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Ranges are in order. */
function isWithin(id: number, ranges: readonly IdRange[]): boolean {
  let [from, to] = [0, ranges.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ranges[middle] as IdRange)[1] < id) from = middle + 1;
    else to = middle;
  }
  return (ranges[from]?.[0] ?? Infinity) <= id;
}
