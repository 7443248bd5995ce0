/**
 * Makes a database of the documented schema ours, in place: its history is imported into a new file beside it, the old file is renamed,
 * and the new one takes its name. Nothing is written to the old one, and it is never in use by two programs at once: an exclusive
 * lock is held from before the first read until after the last rename, and adopting is refused while anyone else has it open.
 *
 * Killed at any point: before the renames the old file is where it was; between them the new one is complete under a name of
 * its own, and the next call finishes the renaming.
 */

import { copyFileSync, existsSync, linkSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { deriveMessage } from "../../ingest/prepare.ts";
import { EngineError } from "../../model/errors.ts";
import { SqliteStore } from "../../store/sqlite/sqlite-store.ts";

import { importDocumented, type DocumentedImportOptions, type DocumentedImportReport } from "./import.ts";
import { DocumentedSource, isSqliteFile } from "./source.ts";

/** SQLite's companions of a database file. */
const COMPANIONS = ["", "-wal", "-shm"] as const;

export interface AdoptOptions extends Omit<DocumentedImportOptions, "sessionFilter" | "since"> {
  /** Where the large files of the new archive go. */
  readonly filesDir: string;
}

export type Adoption =
  /** There is no such file, or it is not of the documented schema. */
  | { readonly kind: "not_needed" }
  | { readonly kind: "finished"; readonly path: string }
  | { readonly kind: "adopted"; readonly backup: string; readonly report: DocumentedImportReport };

/** True for a database of the documented schema. */
export function isDocumentedDatabase(path: string): boolean {
  if (!isSqliteFile(path)) return false;
  try {
    new DocumentedSource(path).close();
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.code === "invalid_input") return false;
    throw error;
  }
}

export async function adoptDocumentedDatabase(options: AdoptOptions): Promise<Adoption> {
  const { path } = options;
  const complete = `${path}.adopted`;
  if (!existsSync(path) && existsSync(complete)) {
    renameSync(complete, path);
    return { kind: "finished", path };
  }
  if (!isDocumentedDatabase(path)) return { kind: "not_needed" };
  rmSync(complete, { force: true });
  const folder = mkdtempSync(join(dirname(path), ".lcm-adopt-"));
  try {
    return await adoptInside(folder, complete, options);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function adoptInside(folder: string, complete: string, options: AdoptOptions): Promise<Adoption> {
  const { path, filesDir } = options;
  const source = copyWithLog(path, folder);
  const lock = lockFile(path, folder);
  try {
    if (source !== path) checkUnchanged(path, source);
    const fresh = join(folder, "new.db");
    const report = await importInto(fresh, filesDir, { ...options, path: source });
    renameSync(fresh, complete);
    const backup = chooseBackupName(path);
    for (const companion of COMPANIONS) {
      if (existsSync(`${path}${companion}`)) renameSync(`${path}${companion}`, `${backup}${companion}`);
    }
    renameSync(complete, path);
    return { kind: "adopted", backup, report: { ...report, path } };
  } finally {
    lock.close();
  }
}

async function importInto(
  fresh: string,
  filesDir: string,
  options: AdoptOptions,
): Promise<DocumentedImportReport> {
  const store = new SqliteStore({ path: fresh, filesDir, create: true });
  try {
    const report = await importDocumented(store, options);
    const proof = await store.verify(deriveMessage, () => undefined);
    if (proof.ok) return report;
    throw new EngineError(
      "verification_failed",
      `cannot adopt ${options.path}: what was imported does not prove (${proof.problems[0]?.message ?? ""})`,
      {
        hint: "the old database is where it was; please report this",
      },
    );
  } finally {
    await store.close();
  }
}

/**
 * A database that was not closed cleanly has its newest rows in the write-ahead log, which cannot be read under an exclusive lock. Then
 * both are copied and the copy is read; the copy is checked once the lock is held.
 */
function copyWithLog(path: string, folder: string): string {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  if (log === undefined || log.size === 0) return path;
  const copy = join(folder, "old.db");
  // The log first: a checkpoint between the two copies would otherwise be missed in both.
  copyFileSync(`${path}-wal`, `${copy}-wal`);
  copyFileSync(path, copy);
  return copy;
}

function checkUnchanged(path: string, copy: string): void {
  for (const companion of ["", "-wal"]) {
    const [now, then] = [
      statSync(`${path}${companion}`, { throwIfNoEntry: false }),
      statSync(`${copy}${companion}`),
    ];
    if (now !== undefined && now.size === then.size && now.mtimeMs <= then.mtimeMs) continue;
    throw createBusyError(path);
  }
}

/**
 * Locks are kept by file, not by name: a second name for the same file, with no log beside it, can be locked without SQLite ever
 * touching the log that belongs to the first name.
 */
function lockFile(path: string, folder: string): DatabaseSync {
  const alias = join(folder, "lock.db");
  linkSync(path, alias);
  const database = new DatabaseSync(alias, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw createBusyError(path, error);
  }
}

function createBusyError(path: string, cause?: unknown): EngineError {
  return new EngineError("database_busy", `cannot adopt ${path}: another program has it open`, {
    hint: "stop the program that uses it, then try again; nothing was changed",
    cause,
  });
}

function chooseBackupName(path: string): string {
  const name = `${path}.before-adoption`;
  if (!existsSync(name)) return name;
  for (let number = 2; ; number += 1) if (!existsSync(`${name}-${number}`)) return `${name}-${number}`;
}
