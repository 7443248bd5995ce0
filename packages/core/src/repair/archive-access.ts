/** How an operator's verbs access archives other than the one in use: copies, backups, what a restore replaces. */
import type { OpenEngine } from "../engine/open-engine.ts";

export interface ArchiveAccess {
  readonly openEngine: OpenEngine;
  /** Fails when another process has the database open; otherwise moves everything written to it into the one file. */
  readonly claimAlone: (database: string) => Promise<void>;
  /** Runs `work` while no other process holds the lock of this name; fails after `waitMs` if one does. */
  readonly withFileLock: <T>(path: string, waitMs: number, work: () => Promise<T>) => Promise<T>;
  /** Writes a snapshot of a database as an archive file, and returns its counts. */
  readonly writeSnapshot: (request: SnapshotRequest) => Promise<SnapshotCounts>;
}

export interface SnapshotRequest {
  readonly database: string;
  /** Compressed when it ends in `.zst`. */
  readonly out: string;
  /** A folder for a trial import of the file, which proves it; null: it is not proven. */
  readonly proveIn: string | null;
  readonly onProgress?: ((step: "database" | "verify", done: number, total: number) => void) | undefined;
}

export interface SnapshotCounts {
  readonly messages: number;
  readonly conversations: number;
  readonly files: number;
}
