/** Every column of every table: an edit by hand is noticed by `verify`, or the column is in the list of what is not proven, with a reason. */
import { openEngine } from "lossless-claw";
import type { Problem } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { renderTakeBack } from "@lossless/testkit/older-archive.ts";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deriveMessage, isUnproven, UNPROVEN } from "@lossless/core/testing";
import { BlobFolder, BodyCache } from "@lossless/core/adapter";
import { Connection } from "../src/connection.ts";
import type { StoreContext } from "../src/store-context.ts";
import { FullTextIndex } from "../src/full-text-index.ts";
import { allowWrites } from "../src/seals.ts";
import { verify } from "../src/verify.ts";
import { buildProvenArchive } from "./proven-archive.ts";

/** As an archive from before there were seals. */
const BACK_TO_15 = renderTakeBack(15);

interface Column {
  readonly name: string;
  readonly pk: number;
}

/** The archive as it was built, of which every test gets a copy. */
const built = makeTemporaryFolder();

function copyArchive(to: string): string {
  cpSync(built.path, to, { recursive: true });
  return join(to, "lcm.db");
}

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;
let context: StoreContext;
const tables = new Map<string, readonly Column[]>();

beforeAll(async () => {
  folder = makeTemporaryFolder();
  await buildProvenArchive(built.path);
  path = copyArchive(folder.path);
  // Opened as another program would: nothing seals what is changed here.
  const connection = new Connection({ path, create: false, readOnly: false, busyLimitMs: 1_000 });
  allowWrites(connection.database);
  connection.exec("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
  // One message waits for the index, so that every table has a row.
  connection.exec("DELETE FROM messages_fts_1 WHERE rowid = 1; INSERT INTO index_pending VALUES (1)");
  context = {
    connection,
    files: new BlobFolder(folder.file("lcm-files")),
    index: new FullTextIndex(connection),
    bodies: new BodyCache(),
    codes: new Map(),
    derive: deriveMessage,
  };
  const names = connection.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '*_fts_*' AND name NOT LIKE 'sqlite_%'",
  );
  for (const { name } of names)
    tables.set(name, connection.all<{ name: string; pk: number }>(`PRAGMA table_info(${name})`));
});

afterAll(() => {
  context.connection.close();
  folder[Symbol.dispose]();
  built[Symbol.dispose]();
});

const UNDO = Symbol("undo");

/** What `verify` finds after a change that is undone afterwards; null when the schema does not allow the change. */
function findAfter(change: (connection: Connection) => void): readonly Problem[] | null {
  let found: readonly Problem[] | null = null;
  try {
    context.connection.write(() => {
      try {
        change(context.connection);
      } catch (error) {
        if (/constraint|cannot store|mismatch/i.test((error as Error).message)) throw UNDO;
        throw error;
      }
      found = verify(context, deriveMessage, () => undefined).problems;
      throw UNDO;
    });
  } catch (error) {
    if (error !== UNDO) throw error;
  }
  return found;
}

function edit(value: unknown): SQLInputValue {
  if (typeof value === "number") return value + 1;
  if (typeof value === "string") return `${value}x`;
  if (!(value instanceof Uint8Array)) return 1;
  const copy = Uint8Array.from(value.byteLength === 0 ? [0] : value);
  copy[copy.length >> 1] = (copy[copy.length >> 1] ?? 0) ^ 1;
  return copy;
}

/** The first and the last row. */
const pickTwo = <T>(rows: readonly T[]): T[] => [...new Set([...rows.slice(0, 1), ...rows.slice(-1)])];

describe("verify", () => {
  test("finds nothing wrong in the archive that is edited below", () => {
    expect(verify(context, deriveMessage, () => undefined).problems).toEqual([]);
  });

  test("has a reason only for tables and columns that there are", () => {
    const unknown = Object.entries(UNPROVEN).flatMap(([table, columns]) =>
      Object.keys(columns).filter(
        (name) =>
          !tables.has(table) || (name !== "*" && !tables.get(table)?.some((column) => column.name === name)),
      ),
    );
    expect(unknown).toEqual([]);
  });

  test("notices an edit of every column, an emptied column and a removed row, or says why not", () => {
    const unnoticed: string[] = [];
    for (const [table, columns] of tables) {
      const proven = columns.filter(({ name }) => !isUnproven(table, name));
      if (proven.length === 0) continue;
      const rows = context.connection.all<Record<string, SQLInputValue>>(`SELECT * FROM ${table}`);
      if (rows.length === 0) unnoticed.push(`${table} has no row that could be edited`);
      const keys = columns.filter(({ pk }) => pk > 0).map(({ name }) => name);
      const where = keys.map((name) => `${name} = ?`).join(" AND ");
      for (const row of pickTwo(rows)) {
        const values = keys.map((name) => row[name] ?? null);
        const check = (what: string, sql: string, ...bound: SQLInputValue[]): void => {
          const found = findAfter((connection) => connection.run(sql, ...bound));
          if (found?.length === 0) unnoticed.push(`${what} (${values.join("/")})`);
        };
        for (const { name } of proven) {
          const set = `UPDATE ${table} SET ${name} = ? WHERE ${where}`;
          check(`${table}.${name} edited`, set, edit(row[name]), ...values);
          if (row[name] !== null) check(`${table}.${name} emptied`, set, null, ...values);
        }
        check(`${table} removed`, `DELETE FROM ${table} WHERE ${where}`, ...values);
      }
    }
    expect(unnoticed).toEqual([]);
  });

  test("notices postings of the index that name another message, or another place in it", () => {
    const { connection, index } = context;
    const read = (row: number): string[] =>
      ["words", "idents", "scope"].map((column) =>
        connection
          .all<{ term: string }>(
            "SELECT term FROM temp.spy WHERE doc = ? AND col = ? ORDER BY offset",
            row,
            column,
          )
          .map(({ term }) => term)
          .join(" "),
      );
    const write = (row: number, texts: readonly string[]): void => {
      connection.run(`DELETE FROM ${index.readHead().tables.message} WHERE rowid = ?`, row);
      connection.run(
        `INSERT INTO ${index.readHead().tables.message} (rowid, words, idents, scope) VALUES (?, ?, ?, ?)`,
        row,
        ...texts,
      );
    };
    connection.exec(
      `CREATE VIRTUAL TABLE temp.spy USING fts5vocab (main, ${index.readHead().tables.message}, 'instance')`,
    );
    // Two messages with as many terms each.
    const [first, second] = [20, 22];
    expect(read(first).map((text) => text.split(" ").length)).toEqual(
      read(second).map((text) => text.split(" ").length),
    );
    const exchange = (): void => {
      const [a, b] = [read(first), read(second)];
      write(first, b);
      write(second, a);
    };
    const reverse = (): void => {
      const [words = "", ...others] = read(first);
      write(first, [words.split(" ").reverse().join(" "), ...others]);
    };
    const rewrite = (): void => write(first, read(first));
    expect(findAfter(rewrite)).toEqual([]);
    for (const change of [exchange, reverse]) {
      const found = findAfter(change);
      expect(
        found?.map(({ code }) => code),
        change.name,
      ).toEqual(["index"]);
    }
    connection.forgetStatements();
    connection.exec("DROP TABLE temp.spy");
  });

  test("reports a damaged record of a fork, and one that is not JSON", () => {
    for (const body of ["{}", "not json", '{"sessionId":7}', "[]", "null"]) {
      const found = findAfter((connection) =>
        connection.run("UPDATE ledger SET body = ? WHERE kind = 'fork'", body),
      );
      expect(
        found?.map(({ code }) => code),
        body,
      ).toContain("chain");
    }
    for (const body of ["{}", "null", '{"seqs":3}'])
      for (const kind of ["forget", "hide", "file", "relabel", "boundary"]) {
        const found = findAfter((connection) =>
          connection.run("UPDATE ledger SET body = ? WHERE kind = ?", body, kind),
        );
        const codes = found?.map(({ code }) => code);
        expect(codes, `${kind} ${body}`).toContain("chain");
        // The rest of the conversation is proven all the same.
        expect(codes, `${kind} ${body}`).not.toContain("unreadable");
      }
  });

  test("reports a schema that lacks a table, an index or a column, or has a trigger of somebody else", () => {
    const { connection } = context;
    const objects = connection.all<{ type: string; name: string }>(
      "SELECT type, name FROM sqlite_schema WHERE name NOT GLOB '*_fts_*' AND name NOT LIKE 'sqlite_%'",
    );
    const changes = [
      ...objects.map(({ type, name }) => [name, `DROP ${type} ${name}`] as const),
      ["archive_cause", "ALTER TABLE conversations DROP COLUMN archive_cause"],
      ["surprise", "CREATE TRIGGER surprise AFTER INSERT ON messages BEGIN DELETE FROM messages; END"],
    ] as const;
    for (const [name, sql] of changes) {
      connection.forgetStatements();
      const found = findAfter(() => connection.exec(sql));
      const schema = found?.filter(({ code }) => code === "schema") ?? [];
      expect(schema.length, name).toBeGreaterThan(0);
    }
    connection.forgetStatements();
  });

  test("proves an archive from before there were seals as it is, and notices what is edited since", async () => {
    using old = makeTemporaryFolder();
    const database = copyArchive(old.path);
    const edit = (sql: string): void => {
      const connection = new DatabaseSync(database);
      connection.exec(sql);
      connection.close();
    };
    edit(`${BACK_TO_15} UPDATE summaries SET earliest_at = earliest_at - 1`);
    const verifyNow = async (): Promise<string[]> => {
      const engine = await openEngine({ database, thread: false, create: false });
      const { problems } = await engine.verify();
      await engine.close();
      return problems.map(({ code, message }) => `${code} ${message}`);
    };
    expect(await verifyNow()).toEqual([]);
    edit("UPDATE sessions SET owner = 'somebody' WHERE session_ref = 1");
    expect(await verifyNow()).toEqual(["seal session 1 is not what was stored: its id or owner was changed"]);
  });

  test("stays true while a program is running that was started before there were seals: it can store nothing", async () => {
    using old = makeTemporaryFolder();
    const database = copyArchive(old.path);
    const older = new DatabaseSync(database);
    older.exec(BACK_TO_15);
    const append = older.prepare("UPDATE conversations SET head_seq = head_seq + 1");
    const fold = older.prepare("UPDATE conversations SET fold_revision = fold_revision + 1");
    older.exec("BEGIN");
    append.run();
    fold.run();
    older.exec("ROLLBACK");
    const engine = await openEngine({ database, thread: false });
    older.exec("BEGIN IMMEDIATE");
    older.exec("INSERT INTO sessions (owner, session_id) VALUES ('main', 'new')");
    expect(() => append.run()).toThrow("no such function: needs_newer_lossless_claw");
    expect(() => fold.run()).toThrow("no such function: needs_newer_lossless_claw");
    older.exec("ROLLBACK");
    older.close();
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });
});
