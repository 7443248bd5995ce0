/**
 * Whether anybody else on the machine can read the archive: only its owner may read the database, large files, waiting turns and backups.
 */
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isServerAddress } from "../../model/address.ts";
import { nameLocally } from "../../settings/local-name.ts";
import { BlobFolder } from "../../store/blob-folder.ts";
import { listBackups } from "../backup.ts";
import type { CheckInput, Finding } from "../finding.ts";

const OTHERS = 0o077;

export async function checkPermissions({ databasePath, filesDir }: CheckInput): Promise<Finding[]> {
  // Windows keeps a profile private by other means; modes say nothing there.
  if (process.platform === "win32") return [];
  const spool = join(dirname(nameLocally(databasePath)), "lcm-spool");
  // Of an archive on a server, this machine has only waiting turns and copies.
  const own = isServerAddress(databasePath)
    ? []
    : [databasePath, `${databasePath}-wal`, `${databasePath}-shm`, filesDir, ...listBelow(filesDir)];
  const backups = listBackups(databasePath).flatMap(({ path }) => [path, join(path, "lcm.db")]);
  return [...own, spool, ...listBelow(spool), ...backups].flatMap(checkPath);
}

function listBelow(folder: string): string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const folders = readdirSync(folder).map((name) => join(folder, name));
  return [...folders, ...new BlobFolder(folder).list().map((path) => join(folder, path))];
}

function checkPath(path: string): Finding[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.mode & OTHERS) === 0) return [];
  const mode = found.isDirectory() ? 0o700 : 0o600;
  return [
    {
      code: "permissions_wide",
      severity: "warning",
      id: path,
      message: `others on this machine can access ${path} (mode ${(found.mode & 0o777).toString(8).padStart(4, "0")})`,
      step: { kind: "make_private", path, mode },
      fix: { kind: "make_private", path, mode },
    },
  ];
}
