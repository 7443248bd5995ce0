/** Converts what an adapter found for a clue to the port's result: the same on every database. */
import type { ClueListing } from "./text-index.ts";

/**
 * A listing of the newest documents that match a clue. `ids` has one more than the limit when there are more; `low` and `high` are the
 * first and the last id of the scope, from which the number of unlisted ones is estimated. Documents in `unlisted` are not current.
 */
export function toListing(
  ids: readonly number[],
  unlisted: ReadonlySet<number>,
  limit: number,
  { low, high }: { readonly low: number | null; readonly high: number | null },
): ClueListing {
  const current = unlisted.size === 0 ? ids : ids.filter((id) => !unlisted.has(id));
  if (ids.length <= limit) return { ids: current, frequency: current.length, listedFrom: null };
  const oldest = ids.at(-1) ?? 0;
  const last = high ?? oldest;
  const frequency = Math.ceil((ids.length * (last - (low ?? oldest) + 1)) / (last - oldest + 1));
  return { ids: current, frequency, listedFrom: oldest };
}
