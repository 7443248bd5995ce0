/** Whether there is a backup, how old the newest is, and which unfinished copies killed programs left. */
import { isServerAddress } from "../../model/address.ts";
import { listBackups, listUnfinished } from "../backup.ts";
import { ABANDONED_MS } from "../copy-names.ts";
import type { CheckInput, Finding } from "../finding.ts";

const OLD_MS = 30 * 24 * 60 * 60_000;

export async function checkBackups(input: CheckInput): Promise<Finding[]> {
  // The operator of a server may back it up there, which is not visible from here.
  const old = isServerAddress(input.databasePath) ? [] : findOld(input);
  return [...findUnfinished(input), ...old];
}

function findUnfinished({ databasePath, now }: CheckInput): Finding[] {
  return listUnfinished(databasePath)
    .filter(({ changedAt }) => now - changedAt > ABANDONED_MS)
    .map(({ path }) => ({
      code: "copy_unfinished",
      severity: "warning",
      id: path,
      message: "a copy of the archive was never finished; it may contain messages forgotten since",
      step: { kind: "fix" },
      fix: { kind: "remove_copy", path },
    }));
}

function findOld({ databasePath, now }: CheckInput): Finding[] {
  const newest = listBackups(databasePath)[0];
  if (newest !== undefined && now - newest.createdAt <= OLD_MS) return [];
  const message =
    newest === undefined
      ? "there is no backup beside the database"
      : `the newest backup is from ${new Date(newest.createdAt).toISOString().slice(0, 10)}`;
  return [{ code: "backup_old", severity: "info", id: databasePath, message, step: { kind: "backup" } }];
}
