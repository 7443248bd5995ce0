import { expect, test } from "vitest";
import { makeTemporaryFolder } from "@lossless/testkit";
import { TABLE_NAMES, tables } from "../../src/archive/tables.ts";
import type { Column, TableName } from "../../src/archive/tables.ts";
import { SqliteStore } from "@lossless/sqlite";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";

const TABLES = `
  SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`;
const COLUMNS = `SELECT name, lower(type) AS type, "notnull" AS is_set, pk FROM pragma_table_info(?) ORDER BY cid`;
const UNIQUE = `
  SELECT group_concat(i.name) AS columns FROM pragma_index_list(?1) l, pragma_index_info(l.name) i
  WHERE l."unique" = 1 AND l.partial = 0 GROUP BY l.name`;
const REFERRED = `SELECT DISTINCT "table" AS name FROM pragma_foreign_key_list(?) WHERE "table" <> ?1`;

interface ColumnInfo {
  name: string;
  type: string;
  is_set: number;
  pk: number;
}

async function withSchema(work: (database: DatabaseSync) => void): Promise<void> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "lcm.db");
  const store = new SqliteStore({ path, filesDir: join(folder.path, "files"), create: true });
  await store.close();
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    work(database);
  } finally {
    database.close();
  }
}

const columnsOf = (database: DatabaseSync, name: string): ColumnInfo[] =>
  database.prepare(COLUMNS).all(name) as unknown as ColumnInfo[];

test("the declarations name every table that migrations make, and no other", () =>
  withSchema((database) => {
    const made = database.prepare(TABLES).all() as unknown as { name: string }[];
    const names = made.map(({ name }) => name);
    expect([...TABLE_NAMES].sort()).toEqual(names);
  }));

test("every column is declared as it was made: name, type, and whether it may be null", () =>
  withSchema((database) => {
    for (const name of TABLE_NAMES) {
      const made = columnsOf(database, name).map(({ name: column, type, is_set, pk }) => [
        column,
        { type, isNullable: is_set === 0 && pk === 0 },
      ]);
      const declared: Readonly<Record<string, Column>> = tables[name].columns;
      const sorted = Object.entries(declared).sort(([a], [b]) => (a < b ? -1 : 1));
      expect(sorted, name).toEqual(made.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)));
    }
  }));

test("every declared key names one row", () =>
  withSchema((database) => {
    const listKeys = (name: TableName): string[] => {
      const primary = columnsOf(database, name).filter(({ pk }) => pk > 0);
      const unique = database.prepare(UNIQUE).all(name) as unknown as { columns: string }[];
      const byPlace = primary.sort((a, b) => a.pk - b.pk).map((column) => column.name);
      return [byPlace.join(), ...unique.map(({ columns }) => columns)];
    };
    for (const name of TABLE_NAMES) expect(listKeys(name), name).toContain(tables[name].key.join());
  }));

test("a table is declared behind those it refers to", () =>
  withSchema((database) => {
    for (const [at, name] of TABLE_NAMES.entries()) {
      const referred = database.prepare(REFERRED).all(name) as unknown as { name: TableName }[];
      for (const other of referred) expect(TABLE_NAMES.slice(0, at), name).toContain(other.name);
    }
  }));
