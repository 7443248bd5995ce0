/**
 * The statements that write rows, made from the declared tables: one INSERT for each table, one UPDATE for each set of columns, one DELETE for
 * each front of a key. No other INSERT is needed.
 */
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { TABLE_NAMES, tables } from "../../archive/tables.ts";
import type { TableName } from "../../archive/tables.ts";
import type { Changes, Values } from "../../archive/changes.ts";

type Prepare = (sql: string) => StatementSync;

interface Insert {
  readonly sql: string;
  readonly columns: readonly string[];
}

const inserts = new Map<TableName, Insert>();
const updates = new Map<string, string>();
const deletes = new Map<string, string>();

export function insertRows(prepare: Prepare, table: TableName, rows: readonly Values[]): void {
  const { sql, columns } = remember(inserts, table, () => describeInsert(table));
  const statement = prepare(sql);
  for (const row of rows) statement.run(...columns.map((column) => row[column] as SQLInputValue));
}

function describeInsert(table: TableName): Insert {
  const columns = Object.keys(tables[table].columns);
  return {
    columns,
    sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
  };
}

export function updateRow(prepare: Prepare, table: TableName, key: Values, set: Values): void {
  const columns = Object.keys(set);
  const sql = remember(
    updates,
    `${table} ${columns.join()}`,
    () => `UPDATE ${table} SET ${columns.map((column) => `${column} = ?`).join(", ")} WHERE ${equal(key)}`,
  );
  prepare(sql).run(...Object.values(set), ...Object.values(key));
}

function deleteRows(prepare: Prepare, table: TableName, key: Values): void {
  const name = `${table} ${Object.keys(key).join()}`;
  prepare(remember(deletes, name, () => `DELETE FROM ${table} WHERE ${equal(key)}`)).run(
    ...Object.values(key),
  );
}

/** Writes the rows of a change set, inside the caller's transaction. */
export function writeChanges(prepare: Prepare, changes: Changes): void {
  for (const table of TABLE_NAMES.toReversed())
    for (const key of changes.deletes.get(table) ?? []) deleteRows(prepare, table, key);
  for (const table of TABLE_NAMES) {
    const rows = changes.inserts.get(table);
    if (rows) insertRows(prepare, table, rows);
  }
  for (const [table, rows] of changes.updates)
    for (const { key, set } of rows.values()) updateRow(prepare, table, key, set);
}

const equal = (key: Values): string =>
  Object.keys(key)
    .map((column) => `${column} = ?`)
    .join(" AND ");

function remember<K, V>(made: Map<K, V>, name: K, make: () => V): V {
  let found = made.get(name);
  if (found === undefined) made.set(name, (found = make()));
  return found;
}
