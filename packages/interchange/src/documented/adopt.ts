/**
 * Converts a database of the documented schema in place: its history is imported into a new file beside it, the old file is renamed, and the new
 * one takes its place. Nothing is written to the old file, and two programs never use it at once: an exclusive lock is held from before the
 * first read until after the last rename, and adoption is refused while another process has the file open.
 *
 * Invariant: if killed at any point, the path names a complete database, the old or the new one, and the next call starts over or finishes. Only
 * the log of the old database can leave the path before its file does, and then the old database is complete under its other name.
 */

import { copyFileSync, existsSync, linkSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { EngineError } from "@lossless/core";
import { deriveMessage, flushPathSync, recordCopy, nameAdoptionFolder } from "@lossless/core/formats";
import type { OpenStore, Store } from "@lossless/core/ports";

import { importDocumented, type DocumentedImportOptions, type DocumentedImportResult } from "./import.ts";
import { removeLeftovers } from "./need.ts";
import { isSqliteFile } from "./foreign-database.ts";
import { DocumentedSource } from "./source.ts";

/** Files that SQLite keeps beside a database file. */
const LOGS = ["-wal", "-shm"] as const;

export interface AdoptOptions extends Omit<DocumentedImportOptions, "sessionFilter" | "since"> {
  /** Where the large files of the new archive go. */
  readonly filesDir: string;
}

export type Adoption =
  /** There is no such file, or it is not of the documented schema. */
  | { readonly kind: "not_needed" }
  | { readonly kind: "finished"; readonly path: string }
  | { readonly kind: "adopted"; readonly backup: string; readonly report: DocumentedImportResult };

/** True for a database of the documented schema. */
export function isDocumentedDatabase(path: string): boolean {
  return isSqliteFile(path) && isDocumented(path);
}

/** Opens it only through SQLite: closing a file handle of our own would release this process's locks on the file. */
function isDocumented(path: string): boolean {
  try {
    new DocumentedSource(path).close();
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.code === "invalid_input") return false;
    throw error;
  }
}

export async function adoptDocumentedDatabase(
  options: AdoptOptions,
  openStore: OpenStore,
): Promise<Adoption> {
  const { path } = options;
  const complete = `${path}.adopted`;
  if (!existsSync(path)) {
    if (!existsSync(complete)) return { kind: "not_needed" };
    renameSync(complete, path);
    return { kind: "finished", path };
  }
  if (!existsSync(complete) && !isDocumentedDatabase(path)) return { kind: "not_needed" };
  const folder = mkdtempSync(join(dirname(path), nameAdoptionFolder(path)));
  try {
    return await adoptInside(folder, complete, options, openStore);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function adoptInside(
  folder: string,
  complete: string,
  options: AdoptOptions,
  openStore: OpenStore,
): Promise<Adoption> {
  const { path, filesDir } = options;
  const source = copyWithLog(path, folder);
  const lock = lockFile(path, folder);
  try {
    removeLeftovers(path, folder);
    const begun = findBegun(path, complete);
    if (begun !== null) {
      swap(path, begun, complete);
      return { kind: "finished", path };
    }
    rmSync(complete, { force: true });
    // Another process may have adopted it while this call waited for the lock.
    if (!isDocumented(source)) return { kind: "not_needed" };
    if (source !== path) checkUnchanged(path, source);
    const fresh = join(folder, "new.db");
    const store = await openStore(fresh, { filesDir, create: true, derive: deriveMessage });
    const report = await importInto(store, { ...options, path: source });
    flushPathSync(fresh);
    renameSync(fresh, complete);
    const backup = chooseBackupName(path);
    recordCopy(path, "adopted", backup, options.now);
    swap(path, backup, complete);
    return { kind: "adopted", backup, report: { ...report, path } };
  } finally {
    lock.close();
  }
}

/** Gives the old database its second name before anything leaves the first; the new database replaces it in one step. */
function swap(path: string, backup: string, complete: string): void {
  if (!existsSync(backup)) linkSync(path, backup);
  for (const log of LOGS) if (existsSync(`${path}${log}`)) renameSync(`${path}${log}`, `${backup}${log}`);
  renameSync(complete, path);
  flushPathSync(dirname(path));
}

/** The second name of the old database if a call was killed during the swap; null when the adoption has to start over. */
function findBegun(path: string, complete: string): string | null {
  const made = statSync(complete, { throwIfNoEntry: false });
  const backup = listBackupNames(path).find((name) => isSameFile(name, path));
  if (made === undefined || backup === undefined) return null;
  if (existsSync(`${backup}-wal`)) return backup;
  const changes = ["", "-wal"].map(
    (log) => statSync(`${path}${log}`, { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
  if (Math.max(...changes) <= made.mtimeMs) return backup;
  // Its own program continued to write to it: the import is incomplete.
  rmSync(backup);
  return null;
}

function isSameFile(a: string, b: string): boolean {
  const [first, second] = [statSync(a), statSync(b)];
  return first.ino === second.ino && first.dev === second.dev;
}

/** Imports, proves and closes. */
async function importInto(store: Store, options: AdoptOptions): Promise<DocumentedImportResult> {
  try {
    const report = await importDocumented(store, options);
    const proof = await store.verify(deriveMessage, () => undefined);
    if (proof.ok) return report;
    throw new EngineError(
      "verification_failed",
      `cannot adopt ${options.path}: the imported history does not verify (${proof.problems[0]?.message ?? ""})`,
      {
        hint: "the old database is where it was; please report this",
      },
    );
  } finally {
    await store.close();
  }
}

/**
 * A database that was not closed cleanly has its newest rows in the write-ahead log, which cannot be read under an exclusive lock. In that case
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
 * Locks belong to the file, not by name: a second name for the same file, with no log beside it, can be locked without SQLite ever touching the
 * log that belongs to the first name.
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

const nameBackup = (path: string, number: number): string =>
  `${path}.before-adoption${number === 1 ? "" : `-${number}`}`;

function chooseBackupName(path: string): string {
  for (let number = 1; ; number += 1)
    if (!existsSync(nameBackup(path, number))) return nameBackup(path, number);
}

function listBackupNames(path: string): string[] {
  const names: string[] = [];
  for (let number = 1; existsSync(nameBackup(path, number)); number += 1)
    names.push(nameBackup(path, number));
  return names;
}
