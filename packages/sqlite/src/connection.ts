/**
 * One SQLite connection: opening with the pragmas we rely on, prepared statements, transactions with retries. The connection is only used
 * from the thread that opened it.
 *
 * Invariant: every write happens inside `write`, which begins IMMEDIATE, so it waits for the lock before reading anything and no
 * transaction is ever upgraded half-way. A write returns only if the file it was committed to is still the file at the path.
 */
import { EngineError } from "@lossless/core/adapter";
import type { Key, RowWriter } from "@lossless/core/adapter";
import type { Changes, Row as TableRow, TableName, Values } from "@lossless/core/ports";
import { accessSync, chmodSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { cannotOpen, isBusy, isStatementFault, translate } from "./errors.ts";
import { deleteRows, insertRows, updateRow, writeChanges } from "./write-rows.ts";

/**
 * The only place where an SQL value gets a type. Every table is STRICT, so a column has its declared type; the type of a row is made from
 * the declared tables, or from what the statement computes.
 */
export const allRows = <T>(statement: StatementSync, ...values: SQLInputValue[]): T[] =>
  statement.all(...values) as T[];

export const eachRow = <T>(statement: StatementSync, ...values: SQLInputValue[]): Iterable<T> =>
  statement.iterate(...values) as Iterable<T>;

export interface ConnectionOptions {
  readonly path: string;
  readonly create: boolean;
  readonly readOnly: boolean;
  /** How long a call retries while another process holds the lock. */
  readonly busyLimitMs: number;
  /** Called once when a call has been waiting for another process for a while. */
  readonly onBusy?: () => void;
}

const BUSY_SLICE_MS = 2_000;
/** Shorter waits are normal and not reported. */
const TELL_BUSY_AFTER_MS = 1_500;
const BEGIN_WRITE = "BEGIN IMMEDIATE";

const sleepCell = new Int32Array(new SharedArrayBuffer(4));
/** Sleeps this thread; only ever called off the host's thread, or in a command-line process. */
const sleepMs = (ms: number): void => void Atomics.wait(sleepCell, 0, 0, ms);

export class Connection implements RowWriter {
  readonly path: string;
  readonly readOnly: boolean;
  #database: DatabaseSync | null;
  #busyLimitMs: number;
  #onBusy: () => void;
  #statements = new Map<string, StatementSync>();
  #inTransaction = false;
  #afterCommit: (() => void)[] = [];
  readonly #afterRollback: (() => void)[] = [];
  #onCommit: { readonly before: () => void; readonly ended: () => void } | null = null;
  /** The newest schema that this program knows; null until the file has proven to be an archive. */
  #newestSchema: number | null = null;
  /** The files that commits go to, with the identity of each. */
  #files = new Map<string, string | null>();

  constructor(options: ConnectionOptions) {
    this.path = options.path;
    this.readOnly = options.readOnly;
    this.#busyLimitMs = options.busyLimitMs;
    this.#onBusy = options.onBusy ?? (() => undefined);
    this.#database = openFile(options);
    try {
      this.retry(() => this.#configure(), "open");
    } catch (error) {
      this.#database.close();
      this.#database = null;
      if (!options.readOnly || !isOnReadOnlyFolder(options.path, error)) throw error;
      this.#database = openImmutable(options.path);
      this.retry(() => this.#configure(), "open");
    }
    this.#files.set(this.path, identifyFile(this.path));
  }

  #configure(): void {
    const database = this.database;
    // Read the header first: a file that is not a database must be refused before any pragma could change it.
    database.prepare("PRAGMA schema_version").get();
    database.exec(`
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -16384;
      PRAGMA secure_delete = FAST;
      -- A turn writes the same two dozen pages as the previous one: a checkpoint every 16 MB instead of 4 writes them less often.
      PRAGMA wal_autocheckpoint = 4000;
    `);
  }

  /** Switches to write-ahead logging, which changes the file: only after it has proven to be ours. */
  enableWal(): void {
    if (this.readOnly) return;
    this.retry(() => this.exec("PRAGMA journal_mode = WAL"), "open");
    // Any read opens the log, which then stays the same file as long as this connection is open.
    this.retry(() => this.get("PRAGMA user_version"), "open");
    const log = `${this.path}-wal`;
    const identity = identifyFile(log);
    // A folder that cannot have a log (no shared memory) uses a rollback journal instead.
    if (identity !== null) this.#files.set(log, identity);
  }

  /** Without a log, whoever reads for long keeps others from writing. */
  get hasLog(): boolean {
    return this.#files.size > 1;
  }

  /** From now on, a schema newer than this one is an error: another program may upgrade the file while this one has it open. */
  refuseNewerThan(version: number): void {
    this.#newestSchema = version;
    this.checkSchemaVersion();
  }

  checkSchemaVersion(): void {
    const known = this.#newestSchema;
    const { user_version: version = 0 } = this.get<{ user_version?: number }>("PRAGMA user_version") ?? {};
    if (known === null || version <= known) return;
    throw new EngineError(
      "database_newer",
      `cannot use the database ${this.path}: it has schema version ${version}, this program knows up to ${known}`,
      {
        hint: "close this program and install the newer version of lossless-claw; the file was not changed",
      },
    );
  }

  /**
   * Throws when the database or its log is no longer the file that was opened: it was deleted or replaced, and SQLite kept writing to an
   * unlinked file.
   */
  #checkFiles(): void {
    for (const [path, identity] of this.#files) {
      if (identifyFile(path) === identity) continue;
      throw new EngineError(
        "database_replaced",
        `cannot write the database ${this.path}: ${path} was deleted or replaced while it was open`,
        { hint: "nothing of this call is in the archive; open the database again, then repeat the call" },
      );
    }
  }

  get isOpen(): boolean {
    return this.#database !== null;
  }

  get database(): DatabaseSync {
    if (!this.#database) {
      throw new EngineError("database_closed", `cannot use the database ${this.path}: it is closed`);
    }
    return this.#database;
  }

  statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  readonly #prepare = (sql: string): StatementSync => this.statement(sql);

  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.statement(sql).run(...values).lastInsertRowid);
  }

  /** Runs a statement and returns how many rows it changed. */
  change(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.statement(sql).run(...values).changes);
  }

  insert<T extends TableName>(table: T, row: TableRow<T>): void {
    insertRows(this.#prepare, table, [row]);
  }

  update<T extends TableName>(table: T, key: Key<T>, set: Partial<TableRow<T>>): void {
    updateRow(this.#prepare, table, key, set as Values);
  }

  delete<T extends TableName>(table: T, key: Partial<Key<T>>): void {
    deleteRows(this.#prepare, table, key as Values);
  }

  /** Everything is written in the order in which it comes. */
  divide(): void {}

  writeChanges(changes: Changes): void {
    writeChanges(this.#prepare, changes);
  }

  get<T>(sql: string, ...values: SQLInputValue[]): T | undefined {
    return this.statement(sql).get(...values) as T | undefined;
  }

  getNamed<T>(sql: string, named: Readonly<Record<string, SQLInputValue>>): T | undefined {
    return this.statement(sql).get(named) as T | undefined;
  }

  all<T>(sql: string, ...values: SQLInputValue[]): T[] {
    return allRows<T>(this.statement(sql), ...values);
  }

  /** Rows one by one, as long as the caller asks for more. */
  each<T>(sql: string, ...values: SQLInputValue[]): Iterable<T> {
    return eachRow<T>(this.statement(sql), ...values);
  }

  /** Rows as arrays, in column order: for many rows, half the cost of objects. */
  walk<T extends readonly unknown[]>(sql: string, ...values: SQLInputValue[]): Iterable<T> {
    const statement = this.statement(sql);
    statement.setReturnArrays(true);
    return statement.iterate(...values) as unknown as Iterable<T>;
  }

  /** All rows as arrays. */
  list<T extends readonly unknown[]>(sql: string, ...values: SQLInputValue[]): T[] {
    const statement = this.statement(sql);
    statement.setReturnArrays(true);
    return statement.all(...values) as unknown as T[];
  }

  exec(sql: string): void {
    this.database.exec(sql);
  }

  /** Drops prepared statements; needed before a table they name is dropped. */
  forgetStatements(): void {
    this.#statements.clear();
  }

  /** Checkpoints the log and truncates it; false when others kept it in use for as long as a call may wait. */
  emptyLog(): boolean {
    const deadline = Date.now() + this.#busyLimitMs;
    for (let attempt = 0; ; attempt++) {
      const row = this.retry(
        () => this.database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { busy: number },
        "empty the log of",
      );
      if (row.busy === 0) return true;
      if (Date.now() >= deadline) return false;
      sleepMs(Math.min(50, 1 + attempt));
    }
  }

  /** One read transaction: everything inside sees the same snapshot. */
  read<T>(work: () => T): T {
    return this.#transact("BEGIN DEFERRED", work, "read");
  }

  /** One read transaction around asynchronous work. Nothing else may use the connection meanwhile. */
  async readThroughout<T>(work: () => Promise<T>): Promise<T> {
    this.exec("BEGIN DEFERRED");
    this.#inTransaction = true;
    try {
      return await work();
    } finally {
      this.#inTransaction = false;
      this.exec("COMMIT");
    }
  }

  /** One write transaction; all or nothing. */
  write<T>(work: () => T): T {
    return this.#transact(BEGIN_WRITE, work, "write");
  }

  /** One write transaction around `work`, which every call joins meanwhile: all is kept, or nothing, even if the commit fails. */
  async writeThroughout<T>(work: () => Promise<T>): Promise<T> {
    this.retry(() => this.#begin(BEGIN_WRITE), "write");
    this.#inTransaction = true;
    let result: T;
    try {
      result = await work();
    } catch (error) {
      this.#endHeld(false);
      throw error;
    }
    try {
      this.#endHeld(true);
    } catch (error) {
      throw this.explain(error, "write");
    }
    return result;
  }

  #endHeld(isKept: boolean): void {
    const follow = this.#afterCommit.splice(0);
    const undo = this.#afterRollback.splice(0);
    let isCommitted = false;
    try {
      if (isKept) {
        this.#onCommit?.before();
        this.exec("COMMIT");
        isCommitted = true;
      }
    } finally {
      this.#inTransaction = false;
      if (!isCommitted) this.#undoHeld(undo);
      this.#onCommit?.ended();
    }
    if (!isCommitted) return;
    this.#checkFiles();
    for (const work of follow) work();
  }

  /** While nobody else can write: what is removed now cannot have just been stored by another program. */
  #undoHeld(undo: readonly (() => void)[]): void {
    try {
      for (const work of undo) work();
    } finally {
      // SQLite itself rolls back when the disk is full.
      if (this.database.isTransaction) this.exec("ROLLBACK");
    }
  }

  /** `before` runs as the last work inside every transaction; `ended` after it, whether it was committed or not. */
  onCommit(work: { readonly before: () => void; readonly ended: () => void }): void {
    this.#onCommit = work;
  }

  /** Runs `work` after the current transaction has been committed; never, if it fails. */
  afterCommit(work: () => void): void {
    this.#afterCommit.push(work);
  }

  /** Runs `work` if what {@link writeThroughout} groups is rolled back. */
  afterRollback(work: () => void): void {
    this.#afterRollback.push(work);
  }

  /** One write transaction that waits for a lock only briefly, and returns a failure as a result. Never inside another. */
  tryWrite<T>(
    work: () => T,
  ): { kind: "done"; value: T } | { kind: "busy" } | { kind: "failed"; error: unknown } {
    if (this.#inTransaction) return { kind: "busy" };
    try {
      return { kind: "done", value: this.#transactOnce(BEGIN_WRITE, work) };
    } catch (error) {
      return isBusy(error) ? { kind: "busy" } : { kind: "failed", error };
    }
  }

  /** Runs `work` so that its failure undoes only itself. Must be called inside `write`. */
  savepoint<T>(work: () => T): { kind: "done"; value: T } | { kind: "failed"; error: unknown } {
    this.exec("SAVEPOINT attempt");
    try {
      const value = work();
      this.exec("RELEASE attempt");
      return { kind: "done", value };
    } catch (error) {
      this.exec("ROLLBACK TO attempt; RELEASE attempt");
      return { kind: "failed", error };
    }
  }

  #transact<T>(begin: string, work: () => T, verb: string): T {
    if (this.#inTransaction) return work();
    return this.retry(() => this.#transactOnce(begin, work), verb);
  }

  /** A program that does not know the schema would omit rows that a newer one relies on, so the version is read inside the lock. */
  #begin(begin: string): void {
    this.run(begin);
    if (begin !== BEGIN_WRITE) return;
    try {
      this.checkSchemaVersion();
    } catch (error) {
      this.exec("ROLLBACK");
      throw error;
    }
  }

  #transactOnce<T>(begin: string, work: () => T): T {
    this.#begin(begin);
    this.#inTransaction = true;
    let result: T;
    try {
      result = work();
      this.#onCommit?.before();
      this.run("COMMIT");
    } catch (error) {
      this.#afterCommit.length = 0;
      if (this.database.isTransaction) this.exec("ROLLBACK");
      throw error;
    } finally {
      this.#inTransaction = false;
      this.#onCommit?.ended();
    }
    const follow = this.#afterCommit.splice(0);
    if (begin === BEGIN_WRITE) this.#checkFiles();
    for (const work of follow) work();
    return result;
  }

  /** Repeats `work` while another process holds the lock; any other failure is translated and thrown. */
  retry<T>(work: () => T, verb: string): T {
    const startedAt = Date.now();
    let isTold = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return work();
      } catch (error) {
        const waitedMs = Date.now() - startedAt;
        if (!isBusy(error) || waitedMs >= this.#busyLimitMs) throw this.explain(error, verb);
        if (!isTold && waitedMs >= TELL_BUSY_AFTER_MS) {
          isTold = true;
          this.#onBusy();
        }
        sleepMs(Math.min(50, 1 + attempt));
      }
    }
  }

  /** Translates the error; a statement that fails because another program has upgraded the schema says so. */
  explain(error: unknown, verb: string): unknown {
    if (isStatementFault(error) && this.isOpen) {
      try {
        this.checkSchemaVersion();
      } catch (newer) {
        if (newer instanceof EngineError) return newer;
      }
    }
    return translate(error, verb, this.path);
  }

  close(): void {
    if (!this.#database) return;
    const database = this.#database;
    this.#database = null;
    this.#statements.clear();
    database.close();
  }
}

/** An identity for the file at a path that no other file there has; null when there is none. */
function identifyFile(path: string): string | null {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

/** Whether opening a database failed because SQLite has to write beside it, to share it with writers, and cannot. */
function isOnReadOnlyFolder(path: string, error: unknown): boolean {
  if (!(error instanceof EngineError) || !cannotOpen(error.cause)) return false;
  try {
    accessSync(dirname(path), constants.W_OK);
    return false;
  } catch {
    return mayRead(path);
  }
}

/**
 * Opens a database in a read-only folder. A writer would have a log beside it; without one the file cannot change, and is read as it is. A
 * log with content and no -shm file cannot be read there: its rows must not be omitted silently.
 */
function openImmutable(path: string): DatabaseSync {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0) {
    throw new EngineError(
      "database_unreadable",
      `cannot open the database ${path}: its log ${path}-wal contains rows that cannot be read from a read-only folder`,
      { hint: "copy the database and its -wal file to a folder that can be written, and open the copy" },
    );
  }
  const url = pathToFileURL(path);
  url.search = "immutable=1";
  return new DatabaseSync(url, { readOnly: true, allowExtension: false });
}

function openFile(options: ConnectionOptions): DatabaseSync {
  const { path } = options;
  const exists = existsSync(path);
  if (exists) refuseOther(path);
  if (!exists && !options.create) {
    throw new EngineError("database_missing", `cannot open the database ${path}: there is no such file`, {
      step: { kind: "create_database" },
    });
  }
  if (exists) refuseEmpty(path, options.create);
  const oldMask = exists ? null : changeUmask(0o077);
  try {
    if (!exists) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const database = new DatabaseSync(path, {
      readOnly: options.readOnly,
      timeout: Math.min(BUSY_SLICE_MS, options.busyLimitMs),
      allowExtension: false,
    });
    // SQLite gives -wal and -shm the mode of the database, so this one file decides for all three. A worker thread cannot set the umask;
    // there the empty, just created file is chmod-ed by name, never through a second descriptor.
    if (!exists && existsSync(path)) chmodSync(path, 0o600);
    return database;
  } catch (error) {
    if (exists && !mayRead(path)) {
      throw new EngineError("database_unreadable", `cannot open the database ${path}: permission denied`, {
        hint: "check the permissions of the file and of its folder",
        cause: error,
      });
    }
    throw translate(error, "open", path);
  } finally {
    if (oldMask !== null) changeUmask(oldMask);
  }
}

/** A device or a pipe would be written to, or waited for. */
function refuseOther(path: string): void {
  const stats = statSync(path);
  if (stats.isFile()) return;
  const [what, hint] = stats.isDirectory()
    ? ["it is a directory", "name a file, for example lcm.db inside that directory"]
    : ["it is not a regular file", "name a file, for example lcm.db"];
  throw new EngineError("database_unreadable", `cannot open the database ${path}: ${what}`, { hint });
}

/** An archive is never zero bytes long: one that is was cut off, and SQLite would take it for a new one and drop its log. */
function refuseEmpty(path: string, create: boolean): void {
  if (statSync(path).size > 0) return;
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (create && log === 0) return;
  throw new EngineError("database_corrupt", `cannot open the database ${path}: the file is empty (0 bytes)`, {
    hint: "restore a backup; or, if nothing was ever stored there, delete the file and store something to create it",
  });
}

function mayRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return false;
    throw error;
  }
}

/** Worker threads may not change the umask; the file's mode is then set right after creation. */
function changeUmask(mask: number): number | null {
  try {
    return process.umask(mask);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_WORKER_UNSUPPORTED_OPERATION") return null;
    throw error;
  }
}
