/**
 * Reads rows of declared tables, typed by their declaration: page by page, or by a set of keys. A read-only plan over an archive keeps one
 * page in memory at a time.
 */
import { read } from "./plan.ts";
import type { Asking } from "./plan.ts";
import type { Values } from "./changes.ts";
import type { Row, TableName, Value } from "./tables.ts";

/** Rows that a plan keeps in memory. */
export const PAGE_ROWS = 1_000;

export type ColumnOf<T extends TableName> = keyof Row<T> & string;

export interface PagesOf<T extends TableName, C extends ColumnOf<T>> {
  readonly columns: readonly C[];
  /** Must be among `columns`, and identify rows uniquely. */
  readonly order: readonly C[];
  readonly where?: Partial<Row<T>>;
  /** Start after these values of the order. */
  readonly after?: readonly Value[];
  /** Fewer if each row requires others. */
  readonly limit?: number;
}

/** The rows of a table, one page after the other. */
export class Pages<T extends TableName, C extends ColumnOf<T>> {
  readonly #table: T;
  readonly #of: PagesOf<T, C>;
  #after: readonly Value[] | null;
  #isAtEnd = false;

  constructor(table: T, of: PagesOf<T, C>) {
    this.#table = table;
    this.#of = of;
    this.#after = of.after ?? null;
  }

  /** Empty at the end. */
  *next(): Asking<Pick<Row<T>, C>[]> {
    if (this.#isAtEnd) return [];
    const { columns, order, where = {}, limit = PAGE_ROWS } = this.#of;
    const query = { table: this.#table, columns, where: where as Values, order, after: this.#after, limit };
    const rows = yield* read.page(query);
    this.#isAtEnd = rows.length < limit;
    const last = rows.at(-1);
    if (last) this.#after = order.map((column) => last[column] ?? null);
    return rows as Pick<Row<T>, C>[];
  }
}

/** All rows with one of these keys in a column. */
export function* readRows<T extends TableName, C extends ColumnOf<T>>(
  table: T,
  columns: readonly C[],
  by: {
    readonly column: C;
    readonly keys: readonly (number | string)[];
    readonly where?: Partial<Row<T>>;
    readonly order?: readonly C[];
  },
): Asking<Pick<Row<T>, C>[]> {
  const { column, keys, where = {}, order = [] } = by;
  if (keys.length === 0) return [];
  const rows = yield* read.rows({ table, columns, where: where as Values, order, column, keys });
  return rows as Pick<Row<T>, C>[];
}

/** Rows grouped by a column. */
export const groupBy = <R, C extends keyof R>(rows: readonly R[], column: C): Map<R[C], R[]> =>
  Map.groupBy(rows, (row) => row[column]);
