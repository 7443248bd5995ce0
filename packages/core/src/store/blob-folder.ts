/**
 * Blobs as files in a folder: `<conversation_id>/<file_id>.<ext>` below one root. A file is written whole (temporary name, fsync, rename)
 * before the row that names it is committed, so a crash leaves at most an unreferenced file.
 *
 * Invariant: nothing outside the root is ever read or written. Every path is built from checked ids, no component below the root may be a
 * symbolic link, and files are opened with O_NOFOLLOW.
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { readdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { EngineError } from "../model/errors.ts";
import { isFileId } from "../model/ids.ts";
import type { Blobs } from "./blobs.ts";
import { flushPathSync } from "./flush-path.ts";

const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;

export class BlobFolder implements Blobs {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Writes a file unless it already exists with the same content: a damaged one may still have the right size. */
  put(name: string, content: Uint8Array): void {
    const target = this.#locate(name, true);
    try {
      const present = lstatSync(target, { throwIfNoEntry: false });
      if (present?.isFile() && present.size === content.byteLength && holds(target, content)) return;
      const temporary = `${target}.${process.pid}.tmp`;
      const handle = openSync(
        temporary,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | NO_FOLLOW,
        0o600,
      );
      try {
        writeFileSync(handle, content);
        fsyncSync(handle);
      } finally {
        closeSync(handle);
      }
      renameSync(temporary, target);
      flushPathSync(join(target, ".."));
    } catch (error) {
      throw refuse("write", name, error);
    }
  }

  /** Content of a file, or null when it is gone. */
  read(name: string): Buffer | null {
    const target = this.#locate(name, false);
    if (target === null) return null;
    let handle: number;
    try {
      handle = openSync(target, constants.O_RDONLY | NO_FOLLOW);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw refuse("read", name, error);
    }
    try {
      if (!fstatSync(handle).isFile()) throw refuse("read", name, new Error("it is not a file"));
      return readFileSync(handle);
    } finally {
      closeSync(handle);
    }
  }

  /** Also removes an unfinished file. */
  remove(name: string): boolean {
    const match = /^(\d{1,16}\/file_[0-9a-f]{16}\.[a-z0-9]{1,8})(\.\d+\.tmp)?$/.exec(name);
    const target = match ? this.#locate(match[1] ?? "", false) : null;
    if (!match || target === null) return false;
    const unwanted = `${target}${match[2] ?? ""}`;
    if (!lstatSync(unwanted, { throwIfNoEntry: false })) return false;
    unlinkSync(unwanted);
    return true;
  }

  /** Relative paths of every file below the root. */
  list(): string[] {
    const found: string[] = [];
    for (const folder of readFolder(this.root)) {
      if (!/^\d+$/.test(folder)) continue;
      for (const name of readFolder(join(this.root, folder))) found.push(`${folder}/${name}`);
    }
    return found;
  }

  #locate(name: string, create: true): string;
  #locate(name: string, create: false): string | null;
  #locate(name: string, create: boolean): string | null {
    const match = /^(\d{1,16})\/(file_[0-9a-f]{16})\.([a-z0-9]{1,8})$/.exec(name);
    if (!match || !isFileId(match[2] ?? ""))
      throw refuse("use", name, new Error("the path is not one of ours"));
    const folder = join(this.root, match[1] ?? "");
    if (create) makeFolder(folder);
    else if (!lstatSync(folder, { throwIfNoEntry: false })) return null;
    const root = realpathSync(this.root);
    if (realpathSync(folder) !== `${root}${sep}${match[1]}`) {
      throw refuse("use", name, new Error("its folder is a link that leads elsewhere"));
    }
    return join(folder, `${match[2]}.${match[3]}`);
  }
}

/** Flushes a new folder and its name before anything in it counts: if the folder is lost, its files are lost. */
function makeFolder(path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) flushPathSync(dirname(made));
}

/** Also false for a file that cannot be read: it is written again. */
function holds(target: string, content: Uint8Array): boolean {
  let handle: number | null = null;
  try {
    handle = openSync(target, constants.O_RDONLY | NO_FOLLOW);
    return Buffer.compare(readFileSync(handle), content) === 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return false;
  } finally {
    if (handle !== null) closeSync(handle);
  }
}

function readFolder(path: string): string[] {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(path).sort() : [];
}

function refuse(verb: string, name: string, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  const code = (cause as NodeJS.ErrnoException).code;
  const full = code === "ENOSPC" || code === "EDQUOT";
  return new EngineError(
    full ? "database_full" : "database_unreadable",
    `cannot ${verb} the large file ${name}: ${code === "ELOOP" ? "it is a symbolic link" : (cause as Error).message}`,
    { hint: full ? "free some space" : "check the files folder and its permissions", cause },
  );
}
