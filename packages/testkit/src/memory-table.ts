/**
 * One table of an archive of maps: rows by key, and by every column that has been searched. A row is frozen, so that it can be returned without
 * a copy.
 */
import type { Value, Values } from "@lossless/core/ports";

type Rows = Map<string, Values>;

export class MemoryTable {
  readonly #rows: Rows;
  readonly #columns = new Map<string, Map<Value, Rows>>();

  /** A copy of another table, or an empty one. */
  constructor(of?: MemoryTable) {
    this.#rows = new Map(of ? of.#rows : []);
  }

  get(name: string): Values | undefined {
    return this.#rows.get(name);
  }

  list(): Values[] {
    return [...this.#rows.values()];
  }

  /** Replaces the row with this key; undefined removes it. */
  put(name: string, row: Values | undefined): void {
    const before = this.#rows.get(name);
    for (const [column, found] of this.#columns) {
      const [old, value] = [before?.[column], row?.[column]];
      if (before && (!row || old !== value)) found.get(old ?? null)?.delete(name);
      if (row) addTo(found, value ?? null, name, row);
    }
    if (row) this.#rows.set(name, Object.freeze(row));
    else this.#rows.delete(name);
  }

  /** The rows whose columns have these values. */
  select(where: Values): Values[] {
    const [first, ...rest] = Object.entries(where);
    if (!first) return this.list();
    const [column, value] = first;
    const found = [...(this.#byColumn(column).get(value)?.values() ?? [])];
    return rest.length === 0
      ? found
      : found.filter((row) => rest.every(([name, wanted]) => row[name] === wanted));
  }

  #byColumn(column: string): Map<Value, Rows> {
    let found = this.#columns.get(column);
    if (!found) {
      this.#columns.set(column, (found = new Map()));
      for (const [name, row] of this.#rows) addTo(found, row[column] ?? null, name, row);
    }
    return found;
  }
}

function addTo(found: Map<Value, Rows>, value: Value, name: string, row: Values): void {
  const rows = found.get(value);
  if (rows) rows.set(name, row);
  else found.set(value, new Map([[name, row]]));
}
