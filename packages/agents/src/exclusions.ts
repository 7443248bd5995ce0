/**
 * What must not be stored, decided before anything is: by patterns of the settings, and by `.lcmignore` files in projects.
 *
 * Invariant: a session whose folder is not known yet is not stored while its file is being written: the folder may be an excluded one.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, matchesGlob, relative } from "node:path";
import { findProject } from "@lossless/interchange";
import type { ExcludeSession } from "@lossless/interchange";

const IGNORE_FILE = ".lcmignore";
/** A host names the folder with the first prompt; a file that has rested this long without one never will. */
export const RESTED_MS = 10_000;

/** Patterns are globs for folders (with all below), transcript files, or session ids. */
export function makeExclusion(patterns: readonly string[]): ExcludeSession {
  const globs = patterns.map((pattern) => pattern.replace(/^~(?=\/|$)/u, homedir()));
  return ({ path, sessionId, folder }) => {
    const named = globs.find((glob) => covers(glob, path) || glob === sessionId || covers(glob, folder));
    if (named !== undefined) return `excluded by the setting captureExclude (${named})`;
    if (folder === undefined)
      return Date.now() - statSync(path).mtimeMs < RESTED_MS ? "waits until its folder is known" : null;
    if (folder === null) return null;
    const file = findIgnoring(folder);
    return file === null ? null : `excluded by ${file}`;
  };
}

const covers = (glob: string, path: string | null | undefined): boolean =>
  typeof path === "string" &&
  (matchesGlob(path, glob) || matchesGlob(path, `${glob.replace(/\/$/u, "")}/**`));

/** The file that excludes a folder: in it, or above it up to the root of its project. */
function findIgnoring(folder: string): string | null {
  const project = findProject(folder);
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, IGNORE_FILE);
    if (existsSync(file) && isIgnored(readFileSync(file, "utf8"), relative(at, folder))) return file;
    if (at === project || at === dirname(at)) return null;
  }
}

/** A file without patterns means everything; otherwise each line is a glob for folders below the file. */
function isIgnored(text: string, below: string): boolean {
  const lines = text.split("\n").map((line) => line.trim());
  const globs = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return globs.length === 0 || globs.some((glob) => glob === "*" || glob === "." || covers(glob, below));
}
