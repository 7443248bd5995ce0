/**
 * A set of document ids. Ids are given out one after the other, so tens of thousands of them lie close together and one bit of an array for
 * each does the work of a hash table in a fraction of the time. Listings in which they are far apart are merged and searched, the latest
 * first; ids in another order that span too much become a table after all.
 */

/** Ids further apart than this go into a table. */
const MAX_RANGE = 4_000_000;
/** Listings with fewer ids than one in so many are searched: to mark them would touch all of the range. */
const MAX_GAP = 32;

interface IdRange {
  readonly low: number;
  /** Numbers from the lowest to the highest, both included; 0 without any. */
  readonly size: number;
}

function measureRange(lists: Iterable<readonly number[]>): IdRange {
  let low = Infinity;
  let high = -Infinity;
  for (const ids of lists) {
    for (const id of ids) {
      if (id < low) low = id;
      if (id > high) high = id;
    }
  }
  return high < low ? { low: 0, size: 0 } : { low, size: high - low + 1 };
}

export class IdSet {
  readonly size: number;
  readonly #low: number;
  readonly #marks: Uint8Array | null;
  readonly #table: Pick<ReadonlySet<number>, "has"> | null;

  constructor(lists: readonly (readonly number[])[]) {
    if (lists.every(isLatestFirst) && isSparse(lists)) {
      const ids = mergeLatest(lists.filter((each) => each.length > 0));
      this.#low = 0;
      this.#marks = null;
      this.#table = { has: (id) => holdsId(ids, id) };
      this.size = ids.length;
      return;
    }
    const { low, size: range } = measureRange(lists);
    this.#low = low;
    if (range > MAX_RANGE) {
      const table = new Set(lists.flat());
      this.#marks = null;
      this.#table = table;
      this.size = table.size;
      return;
    }
    const marks = new Uint8Array(range);
    let size = 0;
    for (const ids of lists) {
      for (const id of ids) {
        if (marks[id - low] === 1) continue;
        marks[id - low] = 1;
        size += 1;
      }
    }
    this.#marks = marks;
    this.#table = null;
    this.size = size;
  }

  has(id: number): boolean {
    return this.#table === null ? this.#marks?.[id - this.#low] === 1 : this.#table.has(id);
  }
}

/** Whether ids come the latest first, each once. */
function isLatestFirst(ids: readonly number[]): boolean {
  for (let at = 1; at < ids.length; at++) if ((ids[at] as number) >= (ids[at - 1] as number)) return false;
  return true;
}

/** Whether ids that come the latest first are far apart. */
function isSparse(lists: readonly (readonly number[])[]): boolean {
  let [first, last, count] = [-Infinity, Infinity, 0];
  for (const ids of lists) {
    first = Math.max(first, ids[0] ?? -Infinity);
    last = Math.min(last, ids.at(-1) ?? Infinity);
    count += ids.length;
  }
  return first - last > MAX_GAP * count;
}

/** The ids of lists in which the latest comes first, each once, in the same order. */
function mergeLatest(lists: readonly (readonly number[])[]): ArrayLike<number> {
  const [only = [], ...more] = lists;
  if (more.length === 0) return only;
  const merged = new Float64Array(lists.reduce((sum, ids) => sum + ids.length, 0));
  const places = new Uint32Array(lists.length);
  for (let size = 0; ; size++) {
    let latest = -Infinity;
    for (let at = 0; at < lists.length; at++) {
      const id = lists[at]?.[places[at] as number] ?? -Infinity;
      if (id > latest) latest = id;
    }
    if (latest === -Infinity) return merged.subarray(0, size);
    for (let at = 0; at < lists.length; at++)
      if (lists[at]?.[places[at] as number] === latest) places[at] = (places[at] as number) + 1;
    merged[size] = latest;
  }
}

/** Looks for an id where the latest comes first. */
function holdsId(ids: ArrayLike<number>, wanted: number): boolean {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ids[middle] as number) > wanted) from = middle + 1;
    else to = middle;
  }
  return ids[from] === wanted;
}

/** Something that can be asked about ids. */
export interface ReadonlyIds {
  readonly size: number;
  has(id: number): boolean;
}

/** Both together. */
export function joinIds(ids: ReadonlyIds, more: readonly number[]): ReadonlyIds {
  const added = new Set(more.filter((id) => !ids.has(id)));
  return { size: ids.size + added.size, has: (id) => ids.has(id) || added.has(id) };
}
