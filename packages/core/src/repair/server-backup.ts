/**
 * Backups of an archive on a server: a snapshot (REPEATABLE READ) as an archive file, which any database can import. They are stored in the
 * state directory of this machine, named after the server and the database.
 *
 * Invariant: as in `backup.ts`, a file under its final name is complete, proven and flushed. It is proven by a trial import into a separate
 * archive.
 */
import { renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { nameLocally } from "../settings/local-name.ts";
import { recordCopy } from "../store/copies.ts";
import { flushPathSync } from "../store/flush-path.ts";
import type { ArchiveAccess, SnapshotCounts, SnapshotRequest } from "./archive-access.ts";
import { formatStamp, reserveFreeName, reserveName } from "./copy-names.ts";

/** The suffix of such backups. */
export const SNAPSHOT_ENDING = ".lcmx.zst";

interface ServerCopy extends SnapshotCounts {
  readonly path: string;
  readonly bytes: number;
}

interface ServerCopyOptions {
  readonly databasePath: string;
  /** If absent: in the state directory, named by the time. */
  readonly target?: string | undefined;
  readonly now?: number | undefined;
  readonly onProgress?: SnapshotRequest["onProgress"];
}

/** `infix` is the purpose of the copy; a copy before a repair may not verify, so it is not tested. */
export async function copyServer(
  { databasePath, target, now = Date.now(), onProgress }: ServerCopyOptions,
  { infix, isProven }: { readonly infix: string; readonly isProven: boolean },
  access: ArchiveAccess,
): Promise<ServerCopy> {
  const local = nameLocally(databasePath);
  const { target: path, partial } = target
    ? reserveName(target, Date.now())
    : reserveFreeName(`${local}${infix}${formatStamp(now)}`, SNAPSHOT_ENDING);
  try {
    for (const copy of [partial, path]) recordCopy(local, "export", copy, now);
    const out = join(partial, basename(path));
    const counts = await access.writeSnapshot({
      database: databasePath,
      out,
      proveIn: isProven ? partial : null,
      onProgress,
    });
    renameSync(out, path);
    flushPathSync(dirname(path));
    return { path, ...counts, bytes: statSync(path).size };
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
