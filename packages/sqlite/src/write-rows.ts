/**
 * The statements that write rows, made from the declared tables: one INSERT for each table, one UPDATE for each set of columns, one DELETE
 * for each prefix of a key. No other INSERT is needed.
 */
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { TABLE_NAMES, tables } from "@lossless/core/ports";
import type { ChangePart, Changes, TableName, Values } from "@lossless/core/ports";

type Prepare = (sql: string) => StatementSync;

interface Insert {
  readonly sql: string;
  readonly columns: readonly string[];
}

/** By the number of rows. */
const insertTexts = new Map<TableName, Insert[]>();
const updateTexts = new Map<string, string>();
const deleteTexts = new Map<string, string>();

/** Rows per INSERT: an SQLite call costs as much as the row it stores, and a turn has about this many. */
const ROWS_AT_ONCE = 8;

export function insertRows(prepare: Prepare, table: TableName, rows: readonly Values[]): void {
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
    const end = Math.min(rows.length, at + ROWS_AT_ONCE);
    const { sql, columns } = describeInsert(table, end - at);
    const values: SQLInputValue[] = [];
    for (let row = at; row < end; row++)
      for (const column of columns) values.push(rows[row]?.[column] ?? null);
    prepare(sql).run(...values);
  }
}

function describeInsert(table: TableName, rows: number): Insert {
  const known = insertTexts.get(table) ?? [];
  insertTexts.set(table, known);
  return (known[rows] ??= makeInsert(table, rows));
}

function makeInsert(table: TableName, rows: number): Insert {
  const columns = Object.keys(tables[table].columns);
  const row = `(${columns.map(() => "?").join(", ")})`;
  const all = Array.from({ length: rows }, () => row).join(", ");
  return { columns, sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${all}` };
}

export function updateRow(prepare: Prepare, table: TableName, key: Values, set: Values): void {
  const columns = Object.keys(set);
  const sql = remember(
    updateTexts,
    `${table} ${columns.join()}`,
    () => `UPDATE ${table} SET ${columns.map((column) => `${column} = ?`).join(", ")} WHERE ${equal(key)}`,
  );
  prepare(sql).run(...Object.values(set), ...Object.values(key));
}

export function deleteRows(prepare: Prepare, table: TableName, key: Values): void {
  const name = `${table} ${Object.keys(key).join()}`;
  prepare(remember(deleteTexts, name, () => `DELETE FROM ${table} WHERE ${equal(key)}`)).run(
    ...Object.values(key),
  );
}

/** Deletes rows in groups: a removal deletes thousands. */
function deleteAll(prepare: Prepare, table: TableName, keys: readonly Values[]): void {
  const [[column = ""] = []] = keys.map((key) => Object.keys(key));
  const numbers = keys.flatMap((key) => (Object.keys(key).length === 1 ? (key[column] ?? []) : []));
  if (keys.length <= ROWS_AT_ONCE || !isAllNumbers(numbers, keys.length))
    for (const key of keys) deleteRows(prepare, table, key);
  else
    prepare(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`).run(
      JSON.stringify(numbers),
    );
}

const isAllNumbers = (values: readonly unknown[], count: number): boolean =>
  values.length === count && values.every((value) => typeof value === "number");

/** Writes the rows of a change set, inside the caller's transaction. */
export function writeChanges(prepare: Prepare, { parts }: Changes): void {
  for (const part of parts) writePart(prepare, part);
}

function writePart(prepare: Prepare, { deletes, inserts, updates }: ChangePart): void {
  for (const [table, keys] of sortTables(deletes).reverse()) deleteAll(prepare, table, keys);
  for (const [table, rows] of sortTables(inserts)) insertRows(prepare, table, rows);
  for (const [table, rows] of updates)
    for (const { key, set } of rows.values()) updateRow(prepare, table, key, set);
}

const PLACES = Object.fromEntries(TABLE_NAMES.map((table, place) => [table, place]));

/** What is written to each table, referenced ones first. */
const sortTables = (written: ReadonlyMap<TableName, Values[]>): [TableName, Values[]][] =>
  [...written].sort(([a], [b]) => (PLACES[a] ?? 0) - (PLACES[b] ?? 0));

const equal = (key: Values): string =>
  Object.keys(key)
    .map((column) => `${column} = ?`)
    .join(" AND ");

function remember<K, V>(made: Map<K, V>, name: K, make: () => V): V {
  let found = made.get(name);
  if (found === undefined) made.set(name, (found = make()));
  return found;
}
