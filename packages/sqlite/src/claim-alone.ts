/** Makes sure that no other process has a database open, before its file is replaced. */
import { DatabaseSync } from "node:sqlite";
import { EngineError } from "@lossless/core/adapter";

/** Fails when another process has the database open; otherwise moves everything written to it into the one file. */
export function claimAlone(path: string): void {
  const database = new DatabaseSync(path, { timeout: 500 });
  try {
    database.exec(
      "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
    );
  } catch (cause) {
    throw new EngineError(
      "database_busy",
      `cannot replace the database ${path}: another process has it open`,
      {
        step: { kind: "stop_other_programs" },
        cause,
      },
    );
  } finally {
    database.close();
  }
}
