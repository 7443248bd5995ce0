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
import type { ClueRequest, CluesFound, DoubtsFound } from "../store/text-index.ts";
import { readLiteralClue, requiredLiterals } from "../text/index.ts";
import type { LiteralClue, TextClue } from "../text/index.ts";
import { IdSet } from "./id-set.ts";

/** Reading this few messages is faster than using the index and the spelled words. */
const FEW_MESSAGES = 1_000;
/** A literal in more messages than this is common: the page is soon full, or most have to be read anyway. */
const MAX_NARROWED = 20_000;
/** Fewer of all messages hardly fill a page. */
const FEW_SHARE = 0.01;
/** Reading all messages costs less than finding those with a literal that so many have. */
const COMMON_SHARE = 0.2;

export class RegexCandidates {
  readonly #store: Store;
  readonly #scope: RecallScope;
  readonly #found: Found;
  #whole: DoubtsFound | null = null;

  private constructor(store: Store, scope: RecallScope, found: Found) {
    this.#store = store;
    this.#scope = scope;
    this.#found = found;
  }

  /** Lists at most `listed` messages for a clue, and for one without doubts at most `few`. Null: any message can match. */
  static async find(
    store: Store,
    pattern: string,
    scope: RecallScope,
    { listed, few }: { readonly listed: number; readonly few: number },
  ): Promise<RegexCandidates | null> {
    const literals = requiredLiterals(pattern).flatMap((literal) => readLiteralClue(literal) ?? []);
    const list = (clues: readonly TextClue[], limit: number): Promise<Listed | null> =>
      listRarest(store, { kind: "message", clues, scope, limit });
    const sure = await list(
      literals.flatMap(({ certain }) => certain ?? []),
      few,
    );
    if (sure?.isAll === true) return new RegexCandidates(store, scope, { ...sure, literal: null });
    const found = await list(
      literals.map(({ clue }) => clue),
      listed,
    );
    if (found === null || found.total <= FEW_MESSAGES) return null;
    return new RegexCandidates(store, scope, { ...found, literal: literals[found.at] ?? null });
  }

  /** Whether few messages match the clue. */
  get isFew(): boolean {
    const { isAll, ids, total } = this.#found;
    return isAll && ids.length <= FEW_SHARE * total;
  }

  /** The candidates among some messages. */
  async filter(documents: readonly DatedId[]): Promise<readonly DatedId[]> {
    const { isAll, ids: listed, clue, frequency, total } = this.#found;
    if (frequency > COMMON_SHARE * total) return documents;
    const ids = documents.map(({ id }) => id).sort((a, b) => a - b);
    const [low, high] = [ids[0], ids.at(-1)];
    if (low === undefined || high === undefined) return [];
    const { longer, unresolved } = await this.#resolve([low, high]);
    const clues = [...(isAll ? [] : [clue]), ...(longer === null ? [] : [longer])];
    const tested = clues.length === 0 ? [] : await this.#store.testClues({ kind: "message", clues, ids });
    const found = new IdSet([listed, ...tested]);
    return documents.filter(({ id }) => found.has(id) || isWithin(id, unresolved));
  }

  /** All candidates, as ranges in order; null: any message. */
  async list(): Promise<IdRange[] | null> {
    const all = await this.#listAll(this.#found.clue, this.#found);
    if (all === null) return null;
    const { longer, unresolved } = await this.#resolve(null);
    const more = longer === null ? [] : await this.#listAll(longer);
    if (more === null) return null;
    const ranges = joinRanges([...toRanges(all), ...toRanges(more), ...unresolved]);
    const size = ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    return size > this.#found.total / 2 ? null : ranges;
  }

  /** The messages that match a clue; null: too many. */
  async #listAll(clue: TextClue, known?: Listed): Promise<readonly number[] | null> {
    const request = { kind: "message", clues: [clue], scope: this.#scope, limit: MAX_NARROWED } as const;
    const listed = known?.isAll === true ? known : await listRarest(this.#store, request);
    return listed?.isAll === true ? listed.ids : null;
  }

  /** What messages match that hold the literal inside longer words, and messages of which that is not known. */
  async #resolve(
    within: IdRange | null,
  ): Promise<{ longer: TextClue | null; unresolved: readonly IdRange[] }> {
    const { literal } = this.#found;
    if (literal === null || literal.doubts.length === 0) return { longer: null, unresolved: [] };
    const found = this.#whole ?? (await this.#store.findDoubts(literal.doubts, this.#scope, within));
    if (found.isWhole) this.#whole = found;
    return { longer: literal.spellOut(found.words), unresolved: found.unresolved };
  }
}

/** What a clue finds. */
interface Listed {
  readonly clue: TextClue;
  /** Its place among those asked for. */
  readonly at: number;
  /** The newest messages that match it, and those that are not in the index yet. */
  readonly ids: readonly number[];
  readonly isAll: boolean;
  /** How many match it, an estimate unless all are listed. */
  readonly frequency: number;
  /** Messages of the scope. */
  readonly total: number;
}

interface Found extends Listed {
  /** Null if longer words raise no doubt. */
  readonly literal: LiteralClue | null;
}

/** Lists the rarest of some clues; null if there are none, or the index is damaged. */
async function listRarest(store: Store, request: ClueRequest): Promise<Listed | null> {
  const found = request.clues.length === 0 ? null : await findIfHealthy(store, request);
  if (found === null) return null;
  const [rarest] = [...found.listings.entries()].sort(
    ([, a], [, b]) =>
      Number(b.listedFrom === null) - Number(a.listedFrom === null) || a.frequency - b.frequency,
  );
  if (rarest === undefined) return null;
  const [at, { ids, frequency, listedFrom }] = rarest;
  return {
    clue: request.clues[at] as TextClue,
    at,
    ids: [...ids, ...found.pendingIds],
    isAll: listedFrom === null,
    frequency,
    total: found.total,
  };
}

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
