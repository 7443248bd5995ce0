/**
 * The record of copies: every place to which this program wrote messages of an archive (backups, exports, what an adoption, a restore or a
 * rotation set aside), one JSON object per line in `<database>.copies`. It is beside the database and not in it, because a restore puts
 * back a database that does not know copies made since.
 *
 * Invariant: a copy is recorded, and the record flushed, before its first byte is written.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { hidePassword, isServerAddress } from "../model/address.ts";
import { toWriteError } from "../model/errors.ts";
import { flushPathSync } from "./flush-path.ts";

/** `backup`: a folder with a database of ours; `replaced`: a database that a restore set aside; `migrated`: another archive; the others are files of other formats. */
export type CopyKind = "backup" | "replaced" | "adopted" | "export" | "migrated" | "transcript";
const KINDS: readonly string[] = [
  "backup",
  "replaced",
  "adopted",
  "export",
  "migrated",
  "transcript",
] satisfies CopyKind[];

export interface RecordedCopy {
  readonly path: string;
  readonly kind: CopyKind;
  readonly at: number;
  /** The device of its folder. */
  readonly device: string;
}

/** The prefix of the working folder for adopting this database. */
export const nameAdoptionFolder = (path: string): string => `.lcm-adopt-${basename(path)}-`;

const fileOf = (databasePath: string): string => `${databasePath}.copies`;

/** A process that may not write beside the database cannot forget anything in it either: nothing is recorded then. */
const UNWRITABLE = new Set(["EROFS", "EACCES", "EPERM"]);

export function recordCopy(databasePath: string, kind: CopyKind, copyPath: string, now = Date.now()): void {
  // A server's database has no folder beside it.
  if (isServerAddress(databasePath)) return;
  const file = fileOf(databasePath);
  const path = isServerAddress(copyPath) ? hidePassword(copyPath) : resolve(copyPath);
  const line = JSON.stringify({ path, kind, at: now, device: findDevice(path) } satisfies RecordedCopy);
  try {
    const isNew = !existsSync(file);
    const handle = openSync(file, "a", 0o600);
    try {
      // In one write, and on a new line even if a crash truncated the previous one.
      writeFileSync(handle, `${isNew ? "" : "\n"}${line}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    if (isNew) flushPathSync(dirname(file));
  } catch (error) {
    if (!UNWRITABLE.has((error as NodeJS.ErrnoException).code ?? "")) throw toWriteError(file, error);
  }
}

/** Recorded copies that exist, or may exist: those deleted from a device that is still present are omitted. */
export function listRecordedCopies(databasePath: string): RecordedCopy[] {
  const file = fileOf(databasePath);
  if (!existsSync(file)) return [];
  const copies = new Map<string, RecordedCopy>();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const copy = parseRecord(line);
    if (copy !== null) copies.set(copy.path, copy);
  }
  const mayExist = ({ path, device }: RecordedCopy): boolean =>
    isServerAddress(path) || existsSync(path) || findDevice(path) !== device;
  return [...copies.values()].filter(mayExist);
}

/** Null for an empty line, and for one truncated by a crash. */
function parseRecord(line: string): RecordedCopy | null {
  try {
    const { path, kind, at, device } = JSON.parse(line) as Partial<RecordedCopy>;
    if (typeof path !== "string" || typeof at !== "number" || !KINDS.includes(kind ?? "")) return null;
    return { path, kind: kind as CopyKind, at, device: String(device) };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The device of the nearest existing folder above; a backup creates missing folders. */
function findDevice(path: string): string {
  if (isServerAddress(path)) return "server";
  const folder = dirname(path);
  const found = statSync(folder, { bigint: true, throwIfNoEntry: false });
  return found === undefined && folder !== path ? findDevice(folder) : String(found?.dev);
}
