/** How copies of an archive are named: after it, with their purpose and the time they were made. */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError } from "../model/errors.ts";

/** The suffix of a copy that is not complete yet. */
export const PARTIAL = ".partial";

/** A younger unfinished copy may still be in progress. */
export const ABANDONED_MS = 60 * 60_000;

/** Two copies within a second also get different names. */
export function findFreeName(path: string, ending = ""): string {
  for (const name of listNames(path, ending)) if (!existsSync(name)) return name;
  return path;
}

function* listNames(path: string, ending: string): Generator<string> {
  for (let number = 1; ; number++) yield `${path}${number === 1 ? "" : `-${number}`}${ending}`;
}

/** A copy that nobody else writes: its name, and the folder in which it is written until it is complete. */
export interface ReservedCopy {
  readonly target: string;
  readonly partial: string;
  /** The topmost folder that was created. */
  readonly firstMade: string;
}

/** Makes the folder for a copy under the first free name. Programs that copy at the same time get different ones. */
export function reserveFreeName(path: string, ending = ""): ReservedCopy {
  for (const target of listNames(path, ending)) {
    const made = existsSync(target) ? null : makePartial(target);
    if (made !== null) return made;
  }
  throw new Error("there is always a free name");
}

/** The same for a name that a person chose. What a killed program left long ago is removed. */
export function reserveName(target: string, now: number): ReservedCopy {
  if (existsSync(target))
    throw new EngineError("usage", `cannot write the backup ${target}: it already exists`, {
      step: { kind: "choose_output" },
    });
  const partial = `${target}${PARTIAL}`;
  const changedAt = newestChange(partial);
  if (changedAt !== null && Math.abs(now - changedAt) > ABANDONED_MS) rmSync(partial, { recursive: true });
  const made = makePartial(target);
  if (made !== null) return made;
  throw new EngineError("usage", `cannot write the backup ${target}: ${partial} is in the way`, {
    hint: "another backup is being written there, or one was killed: wait for it, or remove that folder",
  });
}

/** Null when it exists. */
function makePartial(target: string): ReservedCopy | null {
  const partial = `${target}${PARTIAL}`;
  const above = mkdirSync(dirname(partial), { recursive: true, mode: 0o700 });
  try {
    mkdirSync(partial, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return null;
    throw error;
  }
  return { target, partial, firstMade: above ?? partial };
}

/** When a copy last changed. Null when it is gone: another program has just finished or removed it. */
export function newestChange(path: string): number | null {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() !== true) return stats?.mtimeMs ?? null;
  const within = readdirSync(path).flatMap(
    (name) => statSync(join(path, name), { throwIfNoEntry: false })?.mtimeMs ?? [],
  );
  return Math.max(stats.mtimeMs, ...within);
}

/** `20260214-110207`, in UTC, so that names sort by time. */
export function formatStamp(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-");
}
