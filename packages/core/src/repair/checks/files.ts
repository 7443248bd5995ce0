/** Files in the large-file folder that no message names. A crash between writing a file and its row leaves one; nothing else should. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isServerAddress } from "../../model/address.ts";
import { filesDirBeside } from "../../settings/files-dir.ts";
import { BlobFolder } from "../../store/blob-folder.ts";
import type { CheckInput, Finding } from "../finding.ts";

/** Younger ones may belong to a message that is being stored. */
const MIN_AGE_MS = 60 * 60_000;

export async function checkFiles({ engine, databasePath, filesDir, now }: CheckInput): Promise<Finding[]> {
  // Files in a folder of this machine that a server's archive does not name were never its own.
  if (isServerAddress(databasePath) || hasNeighbour(databasePath, filesDir)) return [];
  const named = new Set(await engine.listBlobs());
  const isOld = (path: string): boolean => {
    const found = statSync(join(filesDir, path), { throwIfNoEntry: false });
    return found !== undefined && now - found.mtimeMs > MIN_AGE_MS;
  };
  return new BlobFolder(filesDir)
    .list()
    .filter((path) => !named.has(path) && isOld(path))
    .map((path) => ({
      code: "file_unreferenced",
      severity: "warning",
      id: path,
      message: `no message names the file ${path}`,
      step: { kind: "fix" },
      fix: { kind: "remove_file", blob: path },
    }));
}

/**
 * Whether another archive may use the same folder, which only a person can have arranged: unnamed files may then belong to the other one,
 * so nothing is reported. Decided by names alone, because opening and closing a database that this process uses would release its locks.
 */
function hasNeighbour(databasePath: string, filesDir: string): boolean {
  if (resolve(filesDir) === filesDirBeside(resolve(databasePath))) return false;
  const folder = dirname(resolve(filesDir));
  if (!existsSync(folder)) return false;
  const own = dirname(resolve(databasePath)) === folder ? basename(databasePath) : null;
  const names = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [entry.name] : [],
  );
  const isDatabase = (name: string): boolean =>
    /\.(?:db|sqlite3?)$/i.test(name) || names.includes(`${name}-wal`);
  return names.some((name) => name !== own && isDatabase(name));
}
