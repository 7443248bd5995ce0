/**
 * A set of document ids. Ids are given out one after the other, so tens of thousands of them lie close together and one bit of an array for
 * each does the work of a hash table in a fraction of the time. A listing in which they are far apart is searched as it is, the latest first;
 * several of those that span too much become a table after all.
 */

/** Ids further apart than this go into a table. */
const MAX_RANGE = 4_000_000;
/** A listing with fewer ids than one in so many is searched: to mark them would touch all of the range. */
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
    const [only = [], ...more] = lists.filter((ids) => ids.length > 0);
    if (more.length === 0 && isSparse(only)) {
      this.#low = 0;
      this.#marks = null;
      this.#table = { has: (id) => holdsId(only, id) };
      this.size = only.length;
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

/** Whether ids come the latest first, each once, and far apart. */
function isSparse(ids: readonly number[]): boolean {
  const [first = 0, last = 0] = [ids[0], ids.at(-1)];
  return (
    first - last > MAX_GAP * ids.length && ids.every((id, at) => at === 0 || id < (ids[at - 1] as number))
  );
}

/** Looks for an id where the latest comes first. */
function holdsId(ids: readonly number[], wanted: number): boolean {
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
