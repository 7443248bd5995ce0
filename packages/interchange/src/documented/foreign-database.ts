/**
 * A database of another program, opened read-only. Every error has one of our codes and names the file: a foreign database may be damaged, or
 * hold values that we cannot represent.
 */
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { EngineError } from "@lossless/core";

const SQLITE_MAGIC = "SQLite format 3\0";
/** SQLite: another program holds the file. */
const BUSY = 5;

export function isSqliteFile(path: string): boolean {
  if (!existsSync(path) || !statSync(path).isFile()) return false;
  const handle = openSync(path, "r");
  try {
    const head = Buffer.alloc(SQLITE_MAGIC.length);
    return (
      readSync(handle, head, 0, head.length, 0) === head.length && head.toString("latin1") === SQLITE_MAGIC
    );
  } finally {
    closeSync(handle);
  }
}

export type ForeignRow = Record<string, unknown>;

export class ForeignDatabase {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string) {
    this.path = path;
    this.#database = openForReading(path);
  }

  /** All later reads see one snapshot. */
  begin(): void {
    this.#guard(() => this.#database.exec("BEGIN"));
  }

  all(sql: string, ...values: SQLInputValue[]): ForeignRow[] {
    return this.#guard(() => this.#database.prepare(sql).all(...values));
  }

  get(sql: string, ...values: SQLInputValue[]): ForeignRow | undefined {
    return this.#guard(() => this.#database.prepare(sql).get(...values));
  }

  /** Rows one at a time. */
  *iterate(sql: string, ...values: SQLInputValue[]): Generator<ForeignRow> {
    const statement = this.#statements.get(sql) ?? this.#guard(() => this.#database.prepare(sql));
    // A statement that is being read cannot be restarted; nested reads get their own.
    this.#statements.delete(sql);
    const rows = this.#guard(() => statement.iterate(...values));
    for (let next = this.#guard(() => rows.next()); next.done !== true; next = this.#guard(() => rows.next()))
      yield next.value;
    this.#statements.set(sql, statement);
  }

  close(): void {
    this.#database.close();
  }

  #guard<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw toReadError(this.path, error);
    }
  }
}

/**
 * Without a write-ahead log the file is opened as immutable, so that not even lock files appear beside it. With one, the log has to be read, and
 * SQLite creates its shared-memory file as for any reader.
 */
function openForReading(path: string): DatabaseSync {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  const url = pathToFileURL(path);
  if (log === undefined || log.size === 0) url.search = "?immutable=1";
  try {
    return new DatabaseSync(url, { readOnly: true });
  } catch (error) {
    throw new EngineError("database_unreadable", `cannot open ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function toReadError(path: string, error: unknown): unknown {
  const { code, errcode, message } = error as { code?: unknown; errcode?: number; message?: string };
  if (code === "ERR_SQLITE_ERROR" && ((errcode ?? 0) & 0xff) === BUSY)
    return new EngineError("database_busy", `cannot read ${path}: another program is writing to it`, {
      hint: "try again later",
      cause: error,
    });
  if (code !== "ERR_SQLITE_ERROR" && code !== "ERR_OUT_OF_RANGE") return error;
  return new EngineError("database_corrupt", `cannot read ${path}: ${message}`, {
    hint: "the database is damaged or was changed by hand; import a sound copy of it",
    cause: error,
  });
}
