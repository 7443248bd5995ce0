/**
 * Turns that a host has stored on this machine because its database could not be written: one file each, in `lcm-spool` beside the
 * archive's local name.
 */
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { nameLocally } from "../settings/local-name.ts";

export interface SpooledTurns {
  readonly folder: string;
  /** When each was last written, ms UTC. */
  readonly times: readonly number[];
}

export function listSpooledTurns(databasePath: string): SpooledTurns {
  const folder = join(dirname(nameLocally(databasePath)), "lcm-spool");
  const isThere = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const names = isThere ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  const times = names.flatMap(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? [],
  );
  return { folder, times };
}
