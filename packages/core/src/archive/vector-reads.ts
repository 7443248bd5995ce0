/** What adapters decide about vectors, whatever database they are in: how long they are, and in which way a search reads them. */
import type { RecallScope } from "../store/recall.ts";
import type { StoreVectors, StoreVectorsResult } from "../store/vectors.ts";

/** Vectors looked at in one stretch, between which a search can be cancelled: some milliseconds. */
export const STRETCH_VECTORS = 2_048;
/** For each hit that is wanted so many are compared exactly: in a benchmark of random vectors, the hardest, all of the first 20 are among them. */
export const LIKELY_PER_HIT = 20;
/** Conversations with fewer messages, or with less than a quarter of all, are read one by one: that is no slower. */
const MANY_MESSAGES = 8_192;
const LARGE_SHARE = 0.25;

/** How long the vectors of a space are, the first ones decide; or which of these are not. */
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

/** Whether a scope is better read as all of a space than conversation by conversation: it has `named` of the `total` messages. */
export function isMostOfAll(
  { since, before, role }: RecallScope,
  { named, total }: { readonly named: number; readonly total: number },
): boolean {
  if (since !== undefined || before !== undefined || role !== undefined) return false;
  return named === total || named >= Math.max(MANY_MESSAGES, LARGE_SHARE * total);
}
