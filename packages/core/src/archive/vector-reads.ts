/** What adapters decide about vectors, in any database: their dimensions, and how a search reads them. */
import type { RecallScope } from "../store/recall.ts";
import type { StoreVectors, StoreVectorsResult } from "../store/vectors.ts";

/** Vectors compared in one stretch, after which a search can be cancelled: some milliseconds. */
export const STRETCH_VECTORS = 2_048;
/**
 * For each wanted hit this many are compared exactly: in a benchmark of random vectors, the hardest, all of the first 20 are among them.
 */
export const LIKELY_PER_HIT = 20;
/** Conversations with fewer messages, or with less than a quarter of all, are read one by one: that is no slower. */
const MANY_MESSAGES = 8_192;
const LARGE_SHARE = 0.25;

/** The dimensions of a space, which its first vectors decide; or which vectors do not match. */
export function fitDimensions(
  known: number,
  vectors: StoreVectors["vectors"],
):
  | { readonly kind: "fit"; readonly dimensions: number }
  | Extract<StoreVectorsResult, { kind: "dimensions" }> {
  const lengths = vectors.flatMap(({ vector }) => vector?.length ?? []);
  const dimensions = known === 0 ? (lengths[0] ?? 0) : known;
  const given = lengths.find((length) => length !== dimensions);
  return given === undefined
    ? { kind: "fit", dimensions }
    : { kind: "dimensions", expected: dimensions, given };
}

/** Whether to read a scope as all of a space rather than conversation by conversation: it has `named` of the `total` messages. */
export function isMostOfAll(
  { since, before, role }: RecallScope,
  { named, total }: { readonly named: number; readonly total: number },
): boolean {
  if (since !== undefined || before !== undefined || role !== undefined) return false;
  return named === total || named >= Math.max(MANY_MESSAGES, LARGE_SHARE * total);
}
