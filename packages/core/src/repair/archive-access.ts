/** How an operator's verbs reach archives beside the one in use: copies, backups, what a restore replaces. */
import type { OpenEngine } from "../engine/open-engine.ts";

export interface ArchiveAccess {
  readonly openEngine: OpenEngine;
  /** Fails when another process has the database open; leaves everything written to it in the one file. */
  readonly claimAlone: (database: string) => Promise<void>;
}
