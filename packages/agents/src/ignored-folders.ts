/**
 * Folders that a `.lcmignore` excluded, in a small file beside the database: when a project is deleted, its `.lcmignore` is deleted
 * with it, but its sessions are stored elsewhere and must stay excluded. If the folder exists again without that file, its sessions are stored.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { nameLocally, parseObject } from "@lossless/core/formats";

export interface IgnoredFolders {
  /** The file that excluded a folder when that was last seen; null when none did. */
  find(folder: string): string | null;
  note(folder: string, file: string | null): void;
}

/** For callers that check once. */
export const NO_MEMORY: IgnoredFolders = { find: () => null, note: () => undefined };

export function openIgnoredFolders(database: string): IgnoredFolders {
  const path = `${nameLocally(database)}.ignored.json`;
  const known = readKnown(path);
  return {
    find: (folder) => known.get(folder) ?? null,
    note(folder, file) {
      if ((known.get(folder) ?? null) === file) return;
      if (file === null) known.delete(folder);
      else known.set(folder, file);
      writeFileSync(`${path}.new`, `${JSON.stringify(Object.fromEntries(known))}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
  };
}

/** Empty for a file that a crash of the machine damaged: existing folders are noted again. */
function readKnown(path: string): Map<string, string> {
  const known = existsSync(path) ? (parseObject(readFileSync(path, "utf8")) ?? {}) : {};
  return new Map(
    Object.entries(known).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
