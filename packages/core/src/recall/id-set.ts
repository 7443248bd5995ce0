/**
 * A set of document ids. Ids are assigned consecutively, so tens of thousands of them are close together and a bit array replaces a hash
 * table in a fraction of the time. If they are far apart, a table is used.
 */

/** Ids further apart than this go into a table. */
const MAX_RANGE = 4_000_000;

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
  readonly #table: ReadonlySet<number> | null;

  constructor(lists: readonly (readonly number[])[]) {
    const { low, size: range } = measureRange(lists);
    this.#low = low;
    if (range > MAX_RANGE) {
      this.#marks = null;
      this.#table = new Set(lists.flat());
      this.size = this.#table.size;
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

/** A set of ids that can be queried. */
export interface ReadonlyIds {
  readonly size: number;
  has(id: number): boolean;
}

/** Both together. */
export function joinIds(ids: ReadonlyIds, more: readonly number[]): ReadonlyIds {
  const added = new Set(more.filter((id) => !ids.has(id)));
  return { size: ids.size + added.size, has: (id) => ids.has(id) || added.has(id) };
}
