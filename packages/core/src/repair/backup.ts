/**
 * Backups: a folder with a copy of the database and of every large file, proven before it counts. Made while agents keep writing; restored
 * only after the copy has been proven again, and the archive it replaces is kept beside it.
 *
 * Invariant: a folder under its final name is a complete, verified backup that is flushed to disk. An interruption leaves a `.partial`
 * folder, which the doctor reports and removes. Nothing older is removed or replaced before its replacement is flushed.
 */
import {
  chmodSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Engine } from "../engine/engine.ts";
import { isServerAddress } from "../model/address.ts";
import { EngineError, toWriteError } from "../model/errors.ts";
import { filesDirBeside } from "../settings/files-dir.ts";
import { formatMessageId } from "../model/ids.ts";
import { listRecordedCopies, recordCopy, nameAdoptionFolder } from "../store/copies.ts";
import { flushPathSync, flushTreeSync } from "../store/flush-path.ts";
import { BlobFolder } from "../store/blob-folder.ts";
import { nameLocally } from "../settings/local-name.ts";
import type { ArchiveAccess } from "./archive-access.ts";
import { formatStamp, newestChange, PARTIAL, reserveFreeName, reserveName } from "./copy-names.ts";
import type { ReservedCopy } from "./copy-names.ts";
import { copyServer, SNAPSHOT_ENDING } from "./server-backup.ts";
import { listBroughtBack } from "./brought-back.ts";

const DATABASE_NAME = "lcm.db";
const FILES_NAME = "lcm-files";
/** Further forgotten messages are only counted. */
const NAMED_FORGOTTEN = 10;
/** The infix of a copy made before a repair, which is not proven. */
const RAW_COPY = ".before-repair-";
const BACKUP = ".backup-";
const COPY_NAMES = [BACKUP, RAW_COPY];

export interface BackupEntry {
  readonly path: string;
  readonly createdAt: number;
  readonly bytes: number;
}

export interface BackupResult {
  readonly path: string;
  readonly messages: number;
  readonly conversations: number;
  readonly files: number;
  readonly bytes: number;
  /** Older backups that were removed because there were more than `keep`. */
  readonly removed: readonly string[];
}

export interface BackupOptions {
  readonly engine: Engine;
  readonly databasePath: string;
  readonly filesDir: string;
  /** Where to put it; if absent, beside the database, named by the time. */
  readonly target?: string;
  /** How many timestamped backups to keep; all if absent. */
  readonly keep?: number;
  readonly now?: number;
  readonly onProgress?: (step: "database" | "files" | "verify", done: number, total: number) => void;
}

export async function createBackup(options: BackupOptions, access: ArchiveAccess): Promise<BackupResult> {
  const { databasePath, keep, onProgress } = options;
  const prune = (): string[] => (keep === undefined ? [] : pruneBackups(databasePath, keep));
  if (isServerAddress(databasePath))
    return {
      ...(await copyServer(options, { infix: BACKUP, isProven: true }, access)),
      removed: prune(),
    };
  const now = options.now ?? Date.now();
  const reserved = options.target
    ? reserveName(options.target, Date.now())
    : reserveFreeName(`${databasePath}${BACKUP}${formatStamp(now)}`);
  const { target } = reserved;
  const counts = await writeCopy(options, reserved, (copy) =>
    prove(access, copy, (done, total) => onProgress?.("verify", done, total)),
  );
  return { path: target, ...counts, bytes: folderBytes(target), removed: prune() };
}

/**
 * Copies the archive as it is, damage included, before something is removed from it: a backup, which is proven, is impossible for an
 * archive that does not verify. `lcm restore` accepts it if it verifies.
 */
export async function createRawCopy(
  options: Pick<BackupOptions, "engine" | "databasePath" | "filesDir" | "now">,
  access: ArchiveAccess,
): Promise<string> {
  if (isServerAddress(options.databasePath))
    return (await copyServer(options, { infix: RAW_COPY, isProven: false }, access)).path;
  const stamp = formatStamp(options.now ?? Date.now());
  const reserved = reserveFreeName(`${options.databasePath}${RAW_COPY}${stamp}`);
  await writeCopy(options, reserved, () => undefined);
  return reserved.target;
}

/** A server's database cannot be set aside and replaced by a file. */
function refuseServer(databasePath: string): void {
  if (!isServerAddress(databasePath)) return;
  throw new EngineError(
    "usage",
    "cannot restore a database on a server: only archives in files are replaced",
    { step: { kind: "import_backup" } },
  );
}

/** Writes a copy under a temporary name, has it checked, flushes it, and renames it. */
async function writeCopy<T>(
  options: BackupOptions,
  { target, partial, firstMade }: ReservedCopy,
  check: (database: string) => Promise<T> | T,
): Promise<T> {
  const { databasePath, filesDir } = options;
  try {
    for (const path of [partial, target]) recordCopy(databasePath, "backup", path, options.now);
    const copy = join(partial, DATABASE_NAME);
    await options.engine.backup({
      path: copy,
      onProgress: (done, total) => options.onProgress?.("database", done, total),
    });
    chmodSync(copy, 0o600);
    // After the database: a file that the database names was written before its row.
    copyFiles(filesDir, join(partial, FILES_NAME), (done, total) =>
      options.onProgress?.("files", done, total),
    );
    const checked = await check(copy);
    flushTreeSync(partial);
    renameSync(partial, target);
    flushFolders(dirname(target), dirname(firstMade));
    return checked;
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw toWriteError(partial, error);
  }
}

/** Flushes a folder and those above it, up to and including `top`. */
function flushFolders(folder: string, top: string): void {
  flushPathSync(folder);
  if (resolve(folder) !== resolve(top)) flushFolders(dirname(resolve(folder)), top);
}

/** Backups beside a database, newest first; those of a server are in the state directory. */
export function listBackups(databasePath: string): BackupEntry[] {
  const local = nameLocally(databasePath);
  const folder = dirname(local);
  const prefix = `${basename(local)}${BACKUP}`;
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix) && !name.endsWith(PARTIAL))
    .sort()
    .reverse()
    .map((name) => join(folder, name))
    .flatMap((path) => {
      const file = path.endsWith(SNAPSHOT_ENDING) ? path : join(path, DATABASE_NAME);
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) return [];
      return [{ path, createdAt: found.mtimeMs, bytes: file === path ? found.size : folderBytes(path) }];
    });
}

/** Copies that were never finished because their program was killed: backups, and archives being restored. */
export function listUnfinished(databasePath: string): { path: string; changedAt: number }[] {
  const local = nameLocally(databasePath);
  const folder = dirname(local);
  const name = basename(local);
  return readdirSync(folder)
    .filter(
      (entry) =>
        (COPY_NAMES.some((infix) => entry.startsWith(`${name}${infix}`)) && entry.endsWith(PARTIAL)) ||
        entry === `${name}.restoring`,
    )
    .map((entry) => join(folder, entry))
    .flatMap((path) => {
      const changedAt = newestChange(path);
      return changedAt === null ? [] : [{ path, changedAt }];
    });
}

export interface ArchiveCopy {
  readonly path: string;
  /** The database in it and its large files; null for a copy in another format. */
  readonly archive: { readonly database: string; readonly filesDir: string } | null;
  /** False for an unfinished copy: it may contain more than can be read. */
  readonly isWhole: boolean;
}

/** Every copy of the archive beside it, by name, and every recorded one elsewhere; a recorded copy that cannot be found may still exist. */
export function listArchiveCopies(databasePath: string): ArchiveCopy[] {
  const local = nameLocally(databasePath);
  const folder = dirname(local);
  const name = basename(local);
  const folderCopy = (path: string, isWhole: boolean): ArchiveCopy => ({
    path,
    archive: path.includes(SNAPSHOT_ENDING)
      ? null
      : { database: join(path, DATABASE_NAME), filesDir: join(path, FILES_NAME) },
    isWhole,
  });
  const fileCopy = (path: string, isWhole: boolean): ArchiveCopy => ({
    path,
    // Large files are set aside under the same suffix.
    archive: {
      database: path,
      filesDir: `${filesDirBeside(databasePath)}${basename(path).slice(name.length)}`,
    },
    isWhole,
  });
  const foreignCopy = (path: string): ArchiveCopy => ({ path, archive: null, isWhole: true });
  const isLog = (entry: string): boolean => /-(?:wal|shm)$/.test(entry);
  const beside = readdirSync(folder).filter((entry) => !isLog(entry));
  const found = [
    ...listBackups(databasePath).map(({ path }) => folderCopy(path, true)),
    ...beside
      .filter((entry) => entry.startsWith(`${name}${RAW_COPY}`) && !entry.endsWith(PARTIAL))
      .map((entry) => folderCopy(join(folder, entry), true)),
    ...listUnfinished(databasePath).map(({ path }) =>
      path.endsWith(PARTIAL) ? folderCopy(path, false) : fileCopy(path, false),
    ),
    ...beside
      .filter((entry) => entry.startsWith(`${name}.before-restore-`))
      .map((entry) => fileCopy(join(folder, entry), true)),
    // The database that an adoption took over and kept, and its working folder if it was killed.
    ...beside
      .filter(
        (entry) => entry.startsWith(`${name}.before-adoption`) || entry.startsWith(nameAdoptionFolder(name)),
      )
      .map((entry) => foreignCopy(join(folder, entry))),
    ...listRecordedCopies(local).map(({ path, kind }) => {
      if (kind === "replaced") return fileCopy(path, true);
      return kind === "backup" ? folderCopy(path, !path.endsWith(PARTIAL)) : foreignCopy(path);
    }),
  ];
  return [...new Map(found.map((copy) => [resolve(copy.path), copy])).values()];
}

function pruneBackups(databasePath: string, keep: number): string[] {
  const removed = listBackups(databasePath)
    .slice(Math.max(1, keep))
    .map((entry) => entry.path);
  for (const path of removed) rmSync(path, { recursive: true });
  return removed;
}

export interface RestoreResult {
  readonly databasePath: string;
  /** Where the replaced archive is now; null when there was none. */
  readonly keptAt: string | null;
  readonly messages: number;
  readonly conversations: number;
  readonly files: number;
}

export interface RestoreOptions {
  readonly backupPath: string;
  readonly databasePath: string;
  readonly filesDir: string;
  /** Restore even if that brings back messages forgotten since. */
  readonly withForgotten?: boolean;
  readonly now?: number;
  readonly onProgress?: (done: number, total: number) => void;
}

/** Replaces the archive by a backup. No other process may have the database open, or restore the same archive. */
export async function restoreBackup(options: RestoreOptions, access: ArchiveAccess): Promise<RestoreResult> {
  const { backupPath, databasePath } = options;
  refuseServer(databasePath);
  findDatabase(backupPath);
  mkdirSync(dirname(databasePath), { recursive: true, mode: 0o700 });
  return access.withFileLock(`${databasePath}.restore.lock`, 0, () => restoreAlone(options, access));
}

async function restoreAlone(options: RestoreOptions, access: ArchiveAccess): Promise<RestoreResult> {
  const source = findDatabase(options.backupPath);
  const { databasePath, filesDir } = options;
  const incoming = `${databasePath}.restoring`;
  const incomingFiles = `${filesDir}.restoring`;
  for (const path of [incoming, incomingFiles]) rmSync(path, { recursive: true, force: true });
  recordCopy(databasePath, "backup", options.backupPath, options.now);
  try {
    copyFileSync(source, incoming, constants.COPYFILE_FICLONE);
    chmodSync(incoming, 0o600);
    mkdirSync(incomingFiles, { recursive: true, mode: 0o700 });
    copyFiles(join(options.backupPath, FILES_NAME), incomingFiles, () => undefined);
    const counts = await prove(access, incoming, options.onProgress ?? (() => undefined), incomingFiles);
    if (options.withForgotten !== true) await refuseForgotten(access, options, incoming, incomingFiles);
    flushPathSync(incoming);
    flushTreeSync(incomingFiles);
    if (existsSync(databasePath)) await access.claimAlone(databasePath);
    const keptAt = keepPresent(databasePath, filesDir, formatStamp(options.now ?? Date.now()));
    // From here on the folder has the files of both archives, so the one step that swaps the database is safe either way.
    addFiles(incomingFiles, filesDir);
    flushTreeSync(filesDir);
    flushPathSync(dirname(filesDir));
    flushPathSync(dirname(databasePath));
    renameSync(incoming, databasePath);
    flushPathSync(dirname(databasePath));
    dropOthers(filesDir, incomingFiles);
    rmSync(incomingFiles, { recursive: true, force: true });
    return { databasePath, keptAt, ...counts };
  } catch (error) {
    for (const path of [incoming, incomingFiles]) rmSync(path, { recursive: true, force: true });
    throw toWriteError(incoming, error);
  }
}

/** Forgotten messages must not come back by accident. */
async function refuseForgotten(
  access: ArchiveAccess,
  { databasePath, filesDir, backupPath }: RestoreOptions,
  database: string,
  incomingFiles: string,
): Promise<void> {
  const present = { database: databasePath, filesDir };
  const back = await listBroughtBack(access, present, { database, filesDir: incomingFiles });
  if (back.length === 0) return;
  const named = back.slice(0, NAMED_FORGOTTEN).map(formatMessageId).join(", ");
  const more = back.length > NAMED_FORGOTTEN ? ` and ${back.length - NAMED_FORGOTTEN} more` : "";
  throw new EngineError(
    "usage",
    `cannot restore ${backupPath}: it brings back messages that were forgotten since: ${named}${more}`,
    { step: { kind: "restore_forgotten" } },
  );
}

export interface RestorePlan {
  readonly backup: BackupEntry;
  /** The archive that would be set aside; null when there is none. */
  readonly replaces: { readonly path: string; readonly bytes: number } | null;
}

/** What {@link restoreBackup} would do. Checks names and sizes only; the restore itself makes the proof. */
export function planRestore(options: Pick<RestoreOptions, "backupPath" | "databasePath">): RestorePlan {
  const { backupPath, databasePath } = options;
  refuseServer(databasePath);
  const source = findDatabase(backupPath);
  const present = statSync(databasePath, { throwIfNoEntry: false });
  return {
    backup: { path: backupPath, createdAt: statSync(source).mtimeMs, bytes: folderBytes(backupPath) },
    replaces: present === undefined ? null : { path: databasePath, bytes: present.size },
  };
}

function findDatabase(backupPath: string): string {
  const path = join(backupPath, DATABASE_NAME);
  if (existsSync(path)) return path;
  throw new EngineError("not_found", `cannot restore ${backupPath}: not a backup folder`, {
    step: { kind: "list", what: "backups" },
  });
}

/** Gives the present archive a second name, once no other process has it open; null when there is none. */
function keepPresent(databasePath: string, filesDir: string, stamp: string): string | null {
  const suffix = `.before-restore-${stamp}`;
  const isThere = existsSync(databasePath);
  if (existsSync(filesDir)) {
    addFiles(filesDir, `${filesDir}${suffix}`);
    flushTreeSync(`${filesDir}${suffix}`);
  }
  if (!isThere) return null;
  recordCopy(databasePath, "replaced", `${databasePath}${suffix}`);
  linkOrCopy(databasePath, `${databasePath}${suffix}`);
  flushPathSync(`${databasePath}${suffix}`);
  flushPathSync(dirname(databasePath));
  // Everything is in the one file now; a log left beside it would be taken for that of the new one.
  for (const log of ["-wal", "-shm"]) rmSync(`${databasePath}${log}`, { force: true });
  return `${databasePath}${suffix}`;
}

/** Large files are named by their content, so one folder can have the files of two archives. */
function addFiles(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const path of new BlobFolder(from).list()) {
    mkdirSync(dirname(join(to, path)), { recursive: true, mode: 0o700 });
    if (!existsSync(join(to, path))) linkOrCopy(join(from, path), join(to, path));
  }
}

function dropOthers(filesDir: string, wanted: string): void {
  for (const path of new BlobFolder(filesDir).list()) {
    if (!existsSync(join(wanted, path))) rmSync(join(filesDir, path));
  }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "EPERM" && code !== "ENOSYS" && code !== "ENOTSUP" && code !== "EXDEV" && code !== "EMLINK")
      throw error;
    copyFileSync(from, to, constants.COPYFILE_FICLONE);
  }
}

async function prove(
  { openEngine }: ArchiveAccess,
  database: string,
  onProgress: (done: number, total: number) => void,
  filesDir = join(dirname(database), FILES_NAME),
): Promise<{ messages: number; conversations: number; files: number }> {
  const engine = await openEngine({ database, filesDir, create: false, thread: false });
  try {
    const report = await engine.verify({ onProgress });
    const broken = report.problems.filter((problem) => problem.code !== "index");
    if (broken.length > 0) {
      throw new EngineError("verification_failed", `cannot use ${database}: ${broken[0]?.message}`, {
        step: { kind: "verify" },
      });
    }
    const { messages, conversations, files } = report;
    return { messages, conversations, files };
  } finally {
    await engine.close();
  }
}

function copyFiles(from: string, to: string, onProgress: (done: number, total: number) => void): void {
  if (!existsSync(from)) return;
  const folders = readdirSync(from).filter((name) => /^\d+$/.test(name));
  for (const [done, folder] of folders.entries()) {
    onProgress(done, folders.length);
    cpSync(join(from, folder), join(to, folder), {
      recursive: true,
      mode: constants.COPYFILE_FICLONE,
      filter: (path) => !path.endsWith(".tmp"),
    });
  }
  onProgress(folders.length, folders.length);
}

function folderBytes(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}
