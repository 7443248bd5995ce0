/**
 * Decides what must not be stored, before anything is: by patterns of the settings, and by `.lcmignore` files in projects.
 *
 * Invariant: a session whose folder is not known yet is not stored while its file is being written: the folder may be an excluded one.
 */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, matchesGlob, relative } from "node:path";
import { findProject } from "@lossless/interchange";
import type { ExcludeSession } from "@lossless/interchange";
import { NO_MEMORY } from "./ignored-folders.ts";
import type { IgnoredFolders } from "./ignored-folders.ts";

const IGNORE_FILE = ".lcmignore";
/** A host names the folder with the first prompt; a file that has not changed for this long and names none never will. */
export const RESTED_MS = 10_000;
/** The reason such a file is left out until then; the watcher checks again. */
export const WAITING = "waits until its folder is known";

/** Patterns are globs for folders (including subfolders), transcript files, or session ids. */
export function makeExclusion(
  patterns: readonly string[],
  now: () => number = Date.now,
  ignored: IgnoredFolders = NO_MEMORY,
): ExcludeSession {
  const globs = patterns.map((pattern) => pattern.replace(/^~(?=\/|$)/u, homedir()));
  return ({ path, sessionId, folder }) => {
    const locations = [path, ...(typeof folder === "string" ? [folder] : [])].flatMap(withTarget);
    const isNamed = (glob: string): boolean => locations.some((location) => covers(glob, location));
    const named = globs.find((glob) => glob === sessionId || withTarget(glob).some(isNamed));
    if (named !== undefined) return `excluded by the setting captureExclude (${named})`;
    if (folder === undefined) return isResting(path, now()) ? null : WAITING;
    if (folder === null) return null;
    const project = followLinks(folder);
    const file = findIgnoring(project);
    const before = file === null && !existsSync(project) ? ignored.find(project) : null;
    if (before !== null) return `excluded by ${before}, which was removed with its folder`;
    ignored.note(project, file);
    return file === null ? null : `excluded by ${file}`;
  };
}

/** The file's clock may differ a little from ours; a time far in the future is ignored. */
const isResting = (path: string, now: number): boolean => Math.abs(now - statSync(path).mtimeMs) >= RESTED_MS;

/** Agents name a folder by its real path, people may use links: both are matched. */
const withTarget = (path: string): string[] => (isAbsolute(path) ? [path, followLinks(path)] : [path]);

/** Resolves links as far as the path exists: the rest may be a pattern, or gone. */
function followLinks(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const above = dirname(path);
  return above === path ? path : join(followLinks(above), basename(path));
}

/** Whether a pattern matches a path or one of its parent folders, including hidden ones and those with glob characters in their names. */
function covers(glob: string, path: string): boolean {
  const wanted = glob.replace(/(?:\/(?:\*\*)?)+$/u, "");
  for (let at = path; ; at = dirname(at)) {
    if (at === wanted || matchesGlob(at, wanted) || matchesGlob(showDots(at), showDots(wanted))) return true;
    if (at === dirname(at)) return false;
  }
}

/** A star does not match the dot of a hidden folder; it does match this replacement. */
const showDots = (path: string): string => path.replace(/(?<=^|\/)\.(?=[^./])/gu, "\uE000");

/** The file that excludes a folder: in it, or above it up to the root of its project; for a worktree also that of its repository. */
function findIgnoring(folder: string): string | null {
  const project = findProject(folder);
  for (let at = folder; ; at = dirname(at)) {
    const isRoot = at === project || existsSync(join(at, ".git"));
    for (const location of isRoot ? [at, project] : [at]) {
      const file = join(location, IGNORE_FILE);
      if (existsSync(file) && isIgnored(readFileSync(file, "utf8"), relative(at, folder))) return file;
    }
    if (isRoot || at === dirname(at)) return null;
  }
}

/** A file without patterns excludes everything; otherwise each line is a glob for folders below the file. */
function isIgnored(text: string, below: string): boolean {
  const lines = text.split("\n").map((line) => line.trim());
  const globs = lines.filter((line) => line !== "" && !line.startsWith("#"));
  const names = globs.map((glob) => glob.replace(/^(?:\.?\/)+(?=.)/u, ""));
  return names.length === 0 || names.some((glob) => glob === "*" || glob === "." || covers(glob, below));
}
