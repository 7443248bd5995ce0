/**
 * A lock between processes that ends with its holder, however that ends: SQLite's own file lock, on a file that holds nothing. Used where a
 * file that is no database is read, changed and replaced.
 */
import { DatabaseSync } from "node:sqlite";
import { EngineError } from "../../model/errors.ts";

/** Runs `work` while no other process holds the same lock. The file stays behind, empty: removing it would take it from under a waiter. */
export async function withFileLock<T>(path: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  const database = new DatabaseSync(path, { timeout: waitMs });
  try {
    takeLock(database, path);
    return await work();
  } finally {
    database.close();
  }
}

function takeLock(database: DatabaseSync, path: string): void {
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    throw new EngineError("database_busy", `cannot lock ${path}: another program holds it`, {
      hint: "try again in a moment",
      cause,
    });
  }
}
