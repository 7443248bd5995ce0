/**
 * The statements that write rows, generated from the declared tables: one statement for each table and kind of change, for any number of rows.
 * Lists of values are sent as arrays. Bytes are sent as one value with the offset of each, because an array of them would be hexadecimal text;
 * rows with large bytes are sent alone.
 */
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import type { ChangePart, Changes, TableName, Value, Values } from "@lossless/core/ports";
import type { Statement } from "./connection.ts";
import { toJson } from "./sql-values.ts";
import type { SqlValue } from "./sql-values.ts";

/** Above this, copying a row's bytes to combine them with others is not worth it. */
const LARGE_BYTES = 65_536;

const TYPES = {
  integer: "bigint",
  real: "double precision",
  text: "text",
  blob: "bytea",
  any: "jsonb",
} as const;

function typeOf(table: TableName, column: string): (typeof TYPES)[keyof typeof TYPES] {
  const columns: Readonly<Record<string, { readonly type: keyof typeof TYPES }>> = tables[table].columns;
  const found = columns[column];
  if (found === undefined) throw new Error(`the table ${table} has no column ${column}`);
  return TYPES[found.type];
}

const toValue = (type: string, value: Value): SqlValue =>
  type === "jsonb" && value !== null ? toJson(value) : value;

/** One relation with a row for each set of values, and its values. */
class Relation {
  readonly values: SqlValue[] = [];
  readonly #lists: string[] = [];
  readonly #names: string[] = [];
  readonly #picks: string[] = [];

  add(name: string, type: string, list: readonly Value[]): void {
    if (type === "bytea") this.#addBytes(name, list);
    else {
      this.#list(
        name,
        type === "jsonb" ? "text" : type,
        list.map((value) => toScalar(toValue(type, value))),
      );
      this.#picks.push(type === "jsonb" ? `${name}::jsonb AS ${name}` : name);
    }
  }

  #addBytes(name: string, list: readonly Value[]): void {
    const parts = list.map((value) => (value instanceof Uint8Array ? value : null));
    const all = this.values.push(Buffer.concat(parts.filter((part) => part !== null)));
    let end = 1;
    const starts = parts.map((part) => {
      const start = end;
      end += part?.byteLength ?? 0;
      return start;
    });
    this.#list(`${name}_at`, "int", starts);
    this.#list(
      `${name}_length`,
      "int",
      parts.map((part) => part?.byteLength ?? null),
    );
    this.#picks.push(`substring($${all}::bytea FROM ${name}_at FOR ${name}_length) AS ${name}`);
  }

  #list(name: string, type: string, list: readonly (number | string | null)[]): void {
    this.#names.push(name);
    this.#lists.push(`$${this.values.push(list)}::${type}[]`);
  }

  render(): string {
    return `SELECT ${this.#picks.join(", ")} FROM unnest(${this.#lists.join(", ")}) v (${this.#names.join(", ")})`;
  }
}

function toScalar(value: SqlValue): number | string | null {
  if (typeof value === "number" || typeof value === "string" || value === null) return value;
  throw new Error("bytes cannot be sent in a list");
}

const picked = (rows: readonly Values[], column: string): Value[] => rows.map((row) => row[column] ?? null);

const isLarge = (row: Values): boolean =>
  Object.values(row).some((value) => value instanceof Uint8Array && value.byteLength > LARGE_BYTES);

/** Rows in order: a later one may refer to an earlier one. */
function renderInserts(table: TableName, rows: readonly Values[]): Statement[] {
  const statements: Statement[] = [];
  let small: Values[] = [];
  const close = (): void => {
    if (small.length > 0) statements.push(renderInsert(table, small));
    small = [];
  };
  for (const row of rows) {
    if (!isLarge(row)) small.push(row);
    else {
      close();
      statements.push(renderInsert(table, [row]));
    }
  }
  close();
  return statements;
}

function renderInsert(table: TableName, rows: readonly Values[]): Statement {
  const columns = Object.keys(tables[table].columns);
  const into = `INSERT INTO ${table} (${columns.join(", ")})`;
  const [only = {}] = rows;
  if (rows.length === 1) {
    const values = columns.map((column) => toValue(typeOf(table, column), only[column] ?? null));
    return { text: `${into} VALUES (${values.map((_, i) => `$${i + 1}`).join(", ")})`, values };
  }
  const relation = new Relation();
  for (const column of columns) relation.add(column, typeOf(table, column), picked(rows, column));
  return { text: `${into} ${relation.render()}`, values: relation.values };
}

/** Updates of the same columns are combined. */
function renderUpdates(
  table: TableName,
  updates: Iterable<{ readonly key: Values; readonly set: Values }>,
): Statement[] {
  const groups = Map.groupBy(updates, ({ set }) => Object.keys(set).join());
  return [...groups.values()].flatMap((group) => {
    const columns = Object.keys(group[0]?.set ?? {});
    return columns.length === 0 ? [] : [renderUpdate(table, columns, group)];
  });
}

function renderUpdate(
  table: TableName,
  columns: readonly string[],
  group: readonly { readonly key: Values; readonly set: Values }[],
): Statement {
  const [{ key, set }] = group as [{ readonly key: Values; readonly set: Values }];
  const keys = Object.keys(key);
  if (group.length === 1) {
    const values = [
      ...columns.map((c) => toValue(typeOf(table, c), set[c] ?? null)),
      ...keys.map((c) => key[c] ?? null),
    ];
    const sets = columns.map((column, i) => `${column} = $${i + 1}`);
    const where = keys.map((column, i) => `${column} = $${columns.length + i + 1}`);
    return { text: `UPDATE ${table} SET ${sets.join(", ")} WHERE ${where.join(" AND ")}`, values };
  }
  const relation = new Relation();
  for (const column of columns)
    relation.add(
      `n_${column}`,
      typeOf(table, column),
      picked(
        group.map((one) => one.set),
        column,
      ),
    );
  for (const column of keys)
    relation.add(
      `k_${column}`,
      typeOf(table, column),
      picked(
        group.map((one) => one.key),
        column,
      ),
    );
  const sets = columns.map((column) => `${column} = r.n_${column}`);
  const where = keys.map((column) => `t.${column} = r.k_${column}`);
  return {
    text: `UPDATE ${table} t SET ${sets.join(", ")} FROM (${relation.render()}) r WHERE ${where.join(" AND ")}`,
    values: relation.values,
  };
}

/** By whole keys or their prefixes. */
function renderDeletes(table: TableName, keys: readonly Values[]): Statement[] {
  return [...Map.groupBy(keys, (key) => Object.keys(key).join()).values()].map((group) => {
    const [first = {}] = group;
    const columns = Object.keys(first);
    const relation = new Relation();
    for (const column of columns) relation.add(`k_${column}`, typeOf(table, column), picked(group, column));
    const where = columns.map((column) => `t.${column} = r.k_${column}`);
    return {
      text: `DELETE FROM ${table} t USING (${relation.render()}) r WHERE ${where.join(" AND ")}`,
      values: relation.values,
    };
  });
}

/** The rows of a change set as statements, in order. */
export const renderChanges = ({ parts }: Changes): Statement[] => parts.flatMap(renderPart);

export const renderPart = ({ deletes, inserts, updates }: ChangePart): Statement[] => [
  ...sortTables(deletes)
    .reverse()
    .flatMap(([table, keys]) => renderDeletes(table, keys)),
  ...sortTables(inserts).flatMap(([table, rows]) => renderInserts(table, rows)),
  ...[...updates].flatMap(([table, rows]) => renderUpdates(table, rows.values())),
];

const PLACES = Object.fromEntries(TABLE_NAMES.map((table, place) => [table, place]));

/** The rows for each table, referenced tables first. */
const sortTables = (written: ReadonlyMap<TableName, Values[]>): [TableName, Values[]][] =>
  [...written].sort(([a], [b]) => (PLACES[a] ?? 0) - (PLACES[b] ?? 0));
