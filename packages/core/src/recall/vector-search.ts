/**
 * Search by meaning: the messages whose vectors are nearest to the vector of a question, found exactly, and joined by rank with what its
 * words found. Ranks are joined, not scores, because the two have nothing in common but their order.
 */
import { setImmediate } from "node:timers/promises";
import type { Neighbour } from "../model/vector.ts";
import { NearestList } from "../model/vector.ts";
import type { RecallScope } from "../store/recall.ts";
import type { Store } from "../store/store.ts";
import type { FoundDocuments } from "./find-documents.ts";
import { joinIds } from "./id-set.ts";
import type { FindStore } from "./own-words.ts";
import { compareSaid } from "./rank.ts";
import type { Candidate, RankedDocument } from "./rank.ts";

/** A question as a vector, or why there is none. */
export type QuestionVector =
  | {
      readonly kind: "vector";
      readonly spaceId: number;
      readonly model: string;
      readonly vector: Float32Array;
    }
  | { readonly kind: "none"; readonly note: string | null };

export const NO_QUESTION_VECTOR: QuestionVector = { kind: "none", note: null };

/** What added a document to a result. */
export type FoundBy = "words" | "vector" | "regex";

/** How many neighbours take part. */
const NEIGHBOURS = 100;
/**
 * The weight of a rank by vectors compared with one by words, and how many of the first results by words are never displaced. With a weak
 * model (R@10 of both joined as equals falls by .056) these raise R@10 of every measured set and lower no MRR; docs/recall.md has the
 * figures.
 */
const VECTOR_WEIGHT = 0.6;
const KEPT = 7;
/** How slowly the value of a rank falls; the usual constant. */
const RANK_OFFSET = 60;

/**
 * The nearest messages of a scope, and all that are as near as the last of them. Other work and a cancellation get their turn between two
 * stretches.
 */
export async function findNearest(
  store: Store,
  { spaceId, vector }: Extract<QuestionVector, { kind: "vector" }>,
  scope: RecallScope,
  options: { readonly limit?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<Neighbour[]> {
  const limit = options.limit ?? NEIGHBOURS;
  const best = new NearestList(limit);
  for (let after: string | null = null; !options.signal?.aborted;) {
    const { nearest, next } = await store.scanVectors({ spaceId, vector, scope, limit, after });
    for (const { id, score } of nearest) best.add(id, score);
    if (next === null) break;
    after = next;
    await setImmediate();
  }
  return best.list();
}

export interface FusedDocuments extends FoundDocuments {
  /** Documents found by their vectors. */
  readonly near: ReadonlySet<number>;
  /** Documents found by their words. */
  readonly worded: ReadonlySet<number>;
}

/** Joins what words found with what vectors found. */
export async function fuseDocuments(
  store: FindStore,
  documents: FoundDocuments,
  nearest: readonly Neighbour[],
  options: { readonly scope: RecallScope; readonly needsAll: boolean },
): Promise<FusedDocuments> {
  const unknown = nearest.map(({ id }) => id).filter((id) => !documents.candidates.has(id));
  const added =
    unknown.length === 0
      ? []
      : await store.readCandidates({ kind: "message", ids: unknown, reach: 0, scope: options.scope });
  const candidates = new Map([
    ...documents.candidates,
    ...added.map((candidate) => [candidate.id, candidate] as const),
  ]);
  const near = orderNear(nearest, candidates);
  return {
    ...documents,
    candidates,
    ranked: fuseByRank(documents.ranked, near, options.needsAll, compareIn(candidates)),
    holding: joinIds(documents.holding, near),
    near: new Set(near),
    worded: new Set(documents.ranked.map(({ id }) => id)),
  };
}

/** Compares documents by place: the earliest comes first. */
const compareIn =
  (candidates: ReadonlyMap<number, Candidate>) =>
  (one: number, other: number): number => {
    const [a, b] = [candidates.get(one), candidates.get(other)];
    return a === undefined || b === undefined ? 0 : compareSaid(a, b);
  };

/** The nearest whose places are known; of equals, the earliest comes first, as far as the limit leaves room. */
function orderNear(nearest: readonly Neighbour[], candidates: ReadonlyMap<number, Candidate>): number[] {
  const compare = compareIn(candidates);
  return nearest
    .filter(({ id }) => candidates.has(id))
    .toSorted((a, b) => b.score - a.score || compare(a.id, b.id))
    .slice(0, NEIGHBOURS)
    .map(({ id }) => id);
}

/**
 * The first documents found by words stay where they are; after them each list gives a document a share that falls with its rank there. If
 * all words are wanted, documents with all of them stay in front.
 */
function fuseByRank(
  ranked: readonly RankedDocument[],
  near: readonly number[],
  needsAll: boolean,
  compare: (one: number, other: number) => number,
): RankedDocument[] {
  const fused = new Map(ranked.map((document, rank) => [document.id, { ...document, score: worthOf(rank) }]));
  near.forEach((id, rank) => {
    const known = fused.get(id);
    const share = VECTOR_WEIGHT * worthOf(rank);
    if (known) known.score += share;
    else fused.set(id, { id, complete: false, score: share });
  });
  const first = ranked.slice(0, KEPT);
  for (const { id } of first) fused.delete(id);
  const tier = ({ complete }: RankedDocument): number => (needsAll && complete ? 1 : 0);
  const rest = [...fused.values()].toSorted(
    (a, b) => tier(b) - tier(a) || b.score - a.score || compare(a.id, b.id),
  );
  return scoreByRank([...first, ...rest]);
}

const worthOf = (rank: number): number => 1 / (RANK_OFFSET + rank + 1);

/** The same scale for a separate list beside fused ones. */
export function scoreByRank(ranked: readonly RankedDocument[]): RankedDocument[] {
  return ranked.map((document, rank) => ({ ...document, score: worthOf(rank) }));
}
