/**
 * A database of the documented lossless-claw schema, opened read-only. Generations differ in their columns, so every row is read completely, and
 * a missing column reads as null.
 */

import type { SQLInputValue } from "node:sqlite";

import { EngineError } from "@lossless/core";
import { APPLICATION_ID } from "@lossless/core/formats";

import { ForeignDatabase } from "./foreign-database.ts";

export type SourceValue = string | number | null | { readonly base64: string };
/** A row with every column it has, in the order of the table. */
export type SourceRow = Readonly<Record<string, SourceValue>>;

/** Tables whose rows are imported; for all others the report gives the number of rows. */
const IMPORTED_TABLES = [
  "conversations",
  "messages",
  "message_parts",
  "summaries",
  "summary_messages",
  "summary_parents",
  "context_items",
  "large_files",
] as const;

type ImportedTable = (typeof IMPORTED_TABLES)[number];

/** The columns that identify a row. */
const UNIQUE_COLUMNS: readonly (readonly [ImportedTable, readonly string[]])[] = [
  ["conversations", ["conversation_id"]],
  ["messages", ["message_id"]],
  ["message_parts", ["part_id"]],
  ["summaries", ["summary_id"]],
  ["summary_messages", ["summary_id", "message_id"]],
  ["summary_parents", ["summary_id", "parent_summary_id"]],
  ["large_files", ["file_id"]],
];

export class DocumentedSource {
  readonly path: string;
  readonly #database: ForeignDatabase;
  readonly #tables: ReadonlySet<string>;
  readonly #columns = new Map<string, ReadonlySet<string>>();

  constructor(path: string) {
    this.path = path;
    this.#database = new ForeignDatabase(path);
    try {
      this.#tables = this.#readTables();
      this.#check();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  has(table: string): boolean {
    return this.#tables.has(table);
  }

  /** Rows of a table, one at a time; none when the generation has no such table. Missing columns are left out of the order. */
  *rows(
    table: ImportedTable,
    { where, order }: { where?: string; order: readonly string[] },
    ...values: SQLInputValue[]
  ): Generator<SourceRow> {
    if (!this.has(table)) return;
    const columns = order.filter((column) => this.#hasColumn(table, column));
    const clauses = [
      where === undefined ? "" : `WHERE ${where}`,
      columns.length === 0 ? "" : `ORDER BY ${columns.join(", ")}`,
    ];
    const sql = `SELECT * FROM ${table} ${clauses.join(" ")}`;
    for (const row of this.#database.iterate(sql, ...values)) yield toSourceRow(row);
  }

  #hasColumn(table: ImportedTable, column: string): boolean {
    const known = this.#columns.get(table) ?? new Set(this.#readColumns(table));
    this.#columns.set(table, known);
    return known.has(column);
  }

  #readColumns(table: string): string[] {
    return this.#database
      .all("SELECT name FROM pragma_table_info(?)", table)
      .map((row) => String(row["name"]));
  }

  count(table: string): number {
    const row = this.#database.get(`SELECT count(*) AS n FROM "${table.replaceAll('"', '""')}"`);
    return Number(row?.["n"] ?? 0);
  }

  countMessages(conversationId: number): number {
    const sql = "SELECT count(*) AS n FROM messages WHERE conversation_id = ?";
    return Number(this.#database.get(sql, conversationId)?.["n"] ?? 0);
  }

  /** Tables with rows that no import reads; those of the full-text index hold only derived data. */
  listOtherTables(): { table: string; rows: number }[] {
    const isOther = (name: string): boolean =>
      !IMPORTED_TABLES.some((table) => table === name) &&
      !name.startsWith("sqlite_") &&
      !/_fts(?:_|$)/u.test(name);
    return [...this.#tables]
      .filter(isOther)
      .map((table) => ({ table, rows: this.count(table) }))
      .filter(({ rows }) => rows > 0);
  }

  close(): void {
    this.#database.close();
  }

  #readTables(): Set<string> {
    const rows = this.#database.all("SELECT name FROM sqlite_schema WHERE type = 'table'");
    return new Set(rows.map((row) => String(row["name"])));
  }

  #check(): void {
    const own = this.#database.get("PRAGMA application_id")?.["application_id"];
    if (own === APPLICATION_ID) {
      throw new EngineError("invalid_input", `cannot import ${this.path}: it is an archive of this program`, {
        step: { kind: "export_archive" },
      });
    }
    const missing = ["conversations", "messages", "summaries"].filter((table) => !this.#tables.has(table));
    if (missing.length > 0)
      throw new EngineError(
        "invalid_input",
        `cannot import ${this.path}: it is a database, but not of lossless-claw (no ${missing.join(", ")})`,
      );
    this.#checkRows();
  }

  /** The documented schema forbids these rows. In a table without its constraints, one of two rows with the same id would be lost. */
  #checkRows(): void {
    for (const [table, columns] of UNIQUE_COLUMNS) {
      if (!this.has(table) || !columns.every((column) => this.#hasColumn(table, column))) continue;
      const names = columns.join(", ");
      const row = this.#database.get(
        `SELECT ${names}, count(*) AS n FROM ${table} GROUP BY ${names} HAVING n > 1 LIMIT 1`,
      );
      if (row === undefined) continue;
      const id = columns.map((column) => `${column} ${String(row[column])}`).join(", ");
      throw this.#refuseRows(`${table} has ${String(row["n"])} rows with ${id}`);
    }
    if (!this.has("summary_parents")) return;
    const own = this.#database.get(
      "SELECT summary_id FROM summary_parents WHERE summary_id = parent_summary_id LIMIT 1",
    );
    if (own !== undefined) throw this.#refuseRows(`${String(own["summary_id"])} is made from itself`);
  }

  #refuseRows(reason: string): EngineError {
    return new EngineError("invalid_input", `cannot import ${this.path}: ${reason}`, {
      hint: "the database was changed or damaged; nothing of it was stored; remove these rows from a copy and import the copy",
    });
  }
}

function toSourceRow(row: Record<string, unknown>): SourceRow {
  const result: Record<string, SourceValue> = {};
  for (const [column, value] of Object.entries(row)) {
    result[column] =
      value instanceof Uint8Array
        ? { base64: Buffer.from(value).toString("base64") }
        : (value as SourceValue);
  }
  return result;
}

export function textOf(row: SourceRow, column: string): string | null {
  const value = row[column];
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : null;
}

export function numberOf(row: SourceRow, column: string): number | null {
  const value = row[column];
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+$/u.test(value) ? Number(value) : null;
}

/** ms UTC. Text without a zone is UTC, as SQLite writes it. */
export function timeOf(row: SourceRow, column: string): number | null {
  const text = textOf(row, column);
  if (text === null || text.trim() === "") return null;
  if (/^\d{10,}$/u.test(text)) return Number(text) < 1e11 ? Number(text) * 1000 : Number(text);
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/iu.test(text);
  const time = Date.parse(hasZone ? text : `${text.replace(" ", "T")}Z`);
  return Number.isNaN(time) ? null : time;
}
