/** Files of other programs: read without loss, replaced atomically, with the same permissions. */
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { EngineError } from "@lossless/core";

/** Null when there is no such file. A file that cannot be written back byte for byte is refused. */
export function readIfThere(path: string): string | null {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (error) {
    const reason = error instanceof TypeError ? "it is not UTF-8" : messageOf(error);
    throw new EngineError("invalid_input", `cannot change ${path}: ${reason}`, { cause: error });
  }
}

/** Replaces it atomically, with the same permissions; a link stays a link. */
export function replaceFile(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const target = existsSync(path) ? realpathSync(path) : path;
    const mode = existsSync(target) ? statSync(target).mode & 0o777 : 0o600;
    writeAside(target, text, mode);
  } catch (error) {
    throw new EngineError("invalid_input", `cannot change ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function writeAside(target: string, text: string, mode: number): void {
  const unfinished = `${target}.${process.pid}.lcm-new`;
  try {
    writeFileSync(unfinished, text, { mode, flush: true });
    renameSync(unfinished, target);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Folders that have to be created before these files can be written. */
export function listMissingFolders(paths: readonly string[]): string[] {
  const missing = new Set<string>();
  for (const path of paths)
    for (let folder = dirname(path); !existsSync(folder) && !missing.has(folder); folder = dirname(folder))
      missing.add(folder);
  return [...missing];
}

/** Removes the empty ones, innermost first. */
export function removeIfEmpty(folders: readonly string[]): void {
  for (const folder of folders.toSorted((a, b) => b.length - a.length))
    if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
}

export const hashText = (text: string): string => createHash("sha256").update(text).digest("hex");

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
