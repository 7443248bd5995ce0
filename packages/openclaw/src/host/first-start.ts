/** The message of the plugin when it starts without an archive: once in the log, once in the chat. Pure except for a check of the database. */

import { basename, isAbsolute, relative } from "node:path";
import { hidePassword } from "@lossless/core";
import type { Settings } from "@lossless/core";
import { needsAdoption } from "@lossless/interchange/need";
import { describeEstimate } from "../assemble/fold-estimate.ts";
import type { ProcessMemory } from "./process-memory.ts";

export interface FirstStart {
  readonly settings: Pick<Settings, "databasePath" | "largeFilesDir">;
  /** How many sessions the host already has. */
  readonly sessions: number;
  readonly memory: Pick<ProcessMemory, "earlier">;
  /** Given for a text in a chat: paths are shown relative to it, because the rest does not concern the people there. */
  readonly stateDir?: string;
}

/** What is stored where, what is being read, and what folding that would cost. */
export function describeFirstStart({ settings, sessions, memory, stateDir }: FirstStart): string {
  const { databasePath, largeFilesDir } = settings;
  const { read, folding } = memory.earlier;
  const name = (path: string): string => (stateDir === undefined ? path : nameInside(stateDir, path));
  const older = needsAdoption(databasePath)
    ? " The database of another version there is taken over first; the old file stays beside it."
    : "";
  const progress = read === 0 ? "" : ` (${read} done)`;
  const earlier =
    sessions === 0
      ? ""
      : ` The history of ${sessions} sessions is being read${progress}; no model is called for that. ${describeEstimate(folding)}`;
  return `every message is kept from now on in ${name(hidePassword(databasePath))}, large files in ${name(largeFilesDir)}.${older}${earlier.trimEnd()} Summaries are written only when a conversation outgrows its model; /lcm spend says what they cost.`;
}

/** A path relative to a folder that contains it, else its last name. */
function nameInside(folder: string, path: string): string {
  const inside = relative(folder, path);
  return inside === "" || inside.startsWith("..") || isAbsolute(inside) ? basename(path) : inside;
}
