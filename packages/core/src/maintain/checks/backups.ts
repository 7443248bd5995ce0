/** Whether there is a backup, and how old the newest is. */
import { listBackups } from "../backup.ts";
import type { CheckInput, Finding } from "../finding.ts";

const OLD_MS = 30 * 24 * 60 * 60_000;

export async function checkBackups({ databasePath, now }: CheckInput): Promise<Finding[]> {
  const newest = listBackups(databasePath)[0];
  if (newest !== undefined && now - newest.createdAt <= OLD_MS) return [];
  const message =
    newest === undefined
      ? "there is no backup beside the database"
      : `the newest backup is from ${new Date(newest.createdAt).toISOString().slice(0, 10)}`;
  return [{ code: "backup_old", severity: "info", id: databasePath, message, mend: "lcm backup" }];
}
