/**
 * Imports and exports whole histories: the API for the command line and for programs. Opens the store itself, because a move works on rows and
 * not through the engine's verbs; agents can keep using the archive meanwhile.
 */

import { copyFileSync, existsSync, linkSync, mkdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

import { EngineError, makeImportId, settleAddress } from "@lossless/core";
import type { Settings } from "@lossless/core";
import { deriveMessage, nameLocally, recordCopy } from "@lossless/core/formats";
import type { SnapshotCounts, SnapshotRequest } from "@lossless/core/repair";
import { filesDirBeside, parseAddress } from "@lossless/core/ports";
import type { OpenStore, Store } from "@lossless/core/ports";

import { createAccessError } from "./transcript/detect.ts";
import { exportDocumented } from "./documented/export.ts";
import { importDocumented } from "./documented/import.ts";
import type { DocumentedImportResult } from "./documented/import.ts";
import { isOpenCodeDatabase } from "./formats/opencode-database.ts";
import { isSqliteFile } from "./documented/foreign-database.ts";
import { exportArchive } from "./archive/export-archive.ts";
import type { ExportOptions, ExportProgress, ExportResult } from "./archive/export-archive.ts";
import { exportText } from "./formats/export-text.ts";
import type { PageOptions, PageResult } from "./page/export-page.ts";
import type { ExportFormat } from "./formats/names.ts";
import { importArchive, isArchive } from "./archive/import-archive.ts";
import { migrateArchive, nameOrigin, planMigration } from "./archive/migrate.ts";
import type { MigrateOptions, MigrateResult } from "./archive/migrate.ts";
import type { ImportProgress } from "./transcript/import-result.ts";
import { exportRemnic } from "./formats/remnic.ts";

/** Where an archive is. */
export interface ArchiveLocation {
  readonly database: string;
  /** By default the folder beside the database. */
  readonly filesDir?: string | undefined;
}

export interface ExportRequest extends ArchiveLocation, ExportOptions, PageOptions {
  readonly format: ExportFormat;
  /** Replaces an existing file; Remnic databases are always appended to. */
  readonly overwrite?: boolean | undefined;
  /** For Remnic and pages: does everything, then rolls back. */
  readonly dryRun?: boolean | undefined;
}

/**
 * Writes conversations to a file.
 *
 * @example
 * await exportConversations({ database: "lcm.db", format: "archive", out: "all.lcmx.zst" });
 */
export async function exportConversations(
  request: ExportRequest,
  openStore: OpenStore,
): Promise<ExportResult & Partial<PageResult>> {
  const { format, out, overwrite = false } = request;
  refuseOwnFiles(request);
  if (format !== "remnic" && !overwrite && existsSync(out)) {
    throw new EngineError("usage", `cannot write ${out}: it exists`, {
      hint: "name another file, or allow overwriting",
    });
  }
  const store = await openLocation(openStore, request, { readOnly: true, create: false });
  try {
    if (request.dryRun !== true) recordCopy(resolve(nameLocally(request.database)), "export", out);
    switch (format) {
      case "archive":
        return await exportArchive(store, request);
      case "lossless-claw":
        return await exportDocumented(store, { ...request, filesDir: filesOf(request) });
      case "remnic":
        return await exportRemnic(store, { ...request, now: Date.now() });
      case "html": {
        const { exportPage } = await import("./page/export-page.ts");
        return await exportPage(store, request);
      }
      default:
        return await exportText(store, format, request);
    }
  } finally {
    await store.close();
  }
}

/** Refuses an export to any of the archive's own files, under any name: the loss could not be undone. */
function refuseOwnFiles(request: ExportRequest): void {
  const { database, out } = request;
  const address = parseAddress(database);
  if (address.kind !== "sqlite") return;
  const own = ["", "-wal", "-shm", ".copies"].map((ending) => `${address.path}${ending}`);
  const isOwn = own.some((path) => isSameFile(path, out)) || isBelow(filesOf(request), out);
  if (isOwn)
    throw new EngineError("usage", `cannot write ${out}: it belongs to the archive that is exported`, {
      hint: "name another file",
    });
}

function isSameFile(one: string, other: string): boolean {
  if (resolve(one) === resolve(other)) return true;
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

function isBelow(folder: string, path: string): boolean {
  const parent = dirname(resolve(path));
  if (!existsSync(folder) || !existsSync(parent)) return false;
  return `${realpathSync(parent)}${sep}`.startsWith(`${realpathSync(folder)}${sep}`);
}

export type HistoryKind = "archive" | "lossless-claw";

/** The kind of a file that holds whole histories rather than one transcript. */
export async function detectHistory(path: string): Promise<HistoryKind | null> {
  try {
    if (isSqliteFile(path)) return isOpenCodeDatabase(path) ? null : "lossless-claw";
    return existsSync(path) && (await isArchive(path)) ? "archive" : null;
  } catch (error) {
    throw error instanceof EngineError ? error : createAccessError(path, error);
  }
}

export interface HistoryRequest extends ArchiveLocation {
  readonly path: string;
  readonly owner?: string | undefined;
  readonly sessionFilter?: readonly string[] | undefined;
  readonly since?: number | undefined;
  readonly largeFileThresholdTokens: number;
  /** Settings whose patterns are used for redaction; archives are copied without redaction. */
  readonly settings?: Settings | undefined;
  /** Shared by files that are imported together. */
  readonly importId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface HistoryResult extends DocumentedImportResult {
  readonly kind: HistoryKind;
}

/** Reads an archive file, or a database of the documented schema, into an archive. */
export async function importHistory(
  kind: HistoryKind,
  request: HistoryRequest,
  openStore: OpenStore,
): Promise<HistoryResult> {
  const store = await openLocation(openStore, request, { readOnly: false, create: true });
  const now = Date.now();
  const { importId = makeImportId() } = request;
  try {
    if (kind === "lossless-claw")
      return { kind, ...(await importDocumented(store, { ...request, importId, now })) };
    return {
      kind,
      revisions: 0,
      ...(await importArchive(store, { ...request, importId, derive: deriveMessage, now })),
    };
  } finally {
    await store.close();
  }
}

export interface MigrateRequest extends Pick<
  MigrateOptions,
  "skipExisting" | "groupRows" | "signal" | "onProgress"
> {
  readonly from: ArchiveLocation;
  readonly to: ArchiveLocation;
  /** Writes nothing. */
  readonly dryRun?: boolean | undefined;
}

/**
 * Copies an archive into another one, in any database, and compares both. Can be repeated: it continues where it stopped.
 *
 * @example await migrate({ from: { database: "lcm.db" }, to: { database: "postgres://lcm@db.example/archive" } });
 */
export async function migrate(request: MigrateRequest, openStore: OpenStore): Promise<MigrateResult> {
  const { from, to, dryRun = false, ...options } = request;
  const name = nameOrigin(from.database);
  if (name === nameOrigin(to.database))
    throw new EngineError("usage", `cannot migrate ${name} into itself`, { hint: "name another target" });
  const source = await openLocation(openStore, from, { readOnly: true, create: false });
  try {
    if (dryRun) {
      const plan = (target: Store | null): Promise<MigrateResult> =>
        planMigration({ ...options, from: source, to: target, name });
      return await withExisting(openStore, to, plan);
    }
    const target = await openLocation(openStore, to, { readOnly: false, create: true });
    try {
      recordCopy(resolve(nameLocally(from.database)), "migrated", settleAddress(to.database));
      return await migrateArchive({ ...options, from: source, to: target, name, now: Date.now() });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** Null where there is no archive yet. */
async function withExisting<T>(
  openStore: OpenStore,
  place: ArchiveLocation,
  work: (store: Store | null) => Promise<T>,
): Promise<T> {
  let store: Store;
  try {
    store = await openLocation(openStore, place, { readOnly: true, create: false });
  } catch (error) {
    if (error instanceof EngineError && error.code === "database_missing") return work(null);
    throw error;
  }
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/**
 * A copy of an archive to try something on, in a folder of the caller: the database page by page, large files as hard links where the disk
 * supports them. The copy of an archive that does not exist yet is empty.
 */
export async function copyForTrial(
  location: ArchiveLocation,
  folder: string,
  openStore: OpenStore,
): Promise<Required<ArchiveLocation>> {
  const copy = { database: join(folder, "lcm.db"), filesDir: join(folder, "files") };
  const isOnServer = parseAddress(location.database).kind !== "sqlite";
  if (!isOnServer && !existsSync(location.database)) return copy;
  const store = await openLocation(openStore, location, { readOnly: true, create: false });
  try {
    if (isOnServer) {
      await copyThroughArchive(
        store,
        await openLocation(openStore, copy, { readOnly: false, create: true }),
        folder,
      );
      return copy;
    }
    await store.backup(copy.database, () => undefined);
    const from = filesOf(location);
    for (const path of await store.listBlobs()) linkOrCopy(join(from, path), join(copy.filesDir, path));
  } finally {
    await store.close();
  }
  return copy as Required<ArchiveLocation>;
}

/** Writes a snapshot of a database as an archive file. A trial import proves the file and is removed afterwards. */
export async function writeSnapshot(request: SnapshotRequest, openStore: OpenStore): Promise<SnapshotCounts> {
  const { database, out, proveIn, onProgress } = request;
  const store = await openLocation(openStore, { database }, { readOnly: true, create: false });
  let written: ExportResult;
  try {
    const onRows = ({ done, total }: ExportProgress): void => onProgress?.("database", done, total);
    written = await exportArchive(store, { out, onProgress: onRows });
  } finally {
    await store.close();
  }
  if (proveIn !== null)
    await importOnTrial(openStore, out, proveIn, (done, total) => onProgress?.("verify", done, total));
  const { messages, conversations, files } = written;
  return { messages, conversations, files };
}

async function importOnTrial(
  openStore: OpenStore,
  path: string,
  folder: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  const trial = { database: join(folder, "trial.db"), filesDir: join(folder, "trial-files") };
  const store = await openLocation(openStore, trial, { readOnly: false, create: true });
  try {
    await importArchive(store, {
      path,
      derive: deriveMessage,
      now: Date.now(),
      onProgress: ({ bytesDone, bytesTotal }) => onProgress(bytesDone, bytesTotal),
    });
  } finally {
    await store.close();
  }
}

/** A server's database has no pages that could be copied. */
async function copyThroughArchive(from: Store, into: Store, folder: string): Promise<void> {
  const path = join(folder, "all.lcmx");
  try {
    await exportArchive(from, { out: path });
    await importArchive(into, { path, derive: deriveMessage, now: Date.now() });
  } finally {
    rmSync(path, { force: true });
    await into.close();
  }
}

function linkOrCopy(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  try {
    linkSync(from, to);
  } catch {
    // Another disk, or one without hard links: copy the content; that reports its own failure.
    copyFileSync(from, to);
  }
}

function openLocation(
  openStore: OpenStore,
  location: ArchiveLocation,
  access: { readOnly: boolean; create: boolean },
): Promise<Store> {
  return openStore(location.database, { filesDir: filesOf(location), derive: deriveMessage, ...access });
}

const filesOf = ({ database, filesDir }: ArchiveLocation): string =>
  resolve(filesDir ?? filesDirBeside(database));
