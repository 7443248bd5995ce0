/**
 * A lock between processes that ends with its holder, however that ends: SQLite's own file lock, on an empty file. Used where a file that
 * is not a database is read, changed and replaced.
 */
import { DatabaseSync } from "node:sqlite";
import { EngineError } from "@lossless/core/adapter";
import type { ErrorCode } from "@lossless/core/adapter";
import { translate } from "./errors.ts";

/** Runs `work` while no other process holds the same lock. The empty file stays: removing it would break the lock for a waiter. */
export async function withFileLock<T>(path: string, waitMs: number, work: () => Promise<T>): Promise<T> {
  const database = takeLock(path, waitMs);
  try {
    return await work();
  } finally {
    database.close();
  }
}

function takeLock(path: string, waitMs: number): DatabaseSync {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, { timeout: waitMs });
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database?.close();
    throw describe(path, error);
  }
}

const REASONS: Partial<Record<ErrorCode, { why: string; hint: string }>> = {
  database_busy: { why: "another program holds it", hint: "retry in a moment" },
  database_full: { why: "no space left", hint: "free some space" },
  database_unreadable: { why: "its folder is not writable", hint: "check the permissions of the folder" },
};

/** To the reader of the message, the lock is not a database. */
function describe(path: string, cause: unknown): unknown {
  const known = translate(cause, "lock", path);
  const reason = known instanceof EngineError ? REASONS[known.code] : undefined;
  if (!(known instanceof EngineError) || reason === undefined) return known;
  return new EngineError(known.code, `cannot lock ${path}: ${reason.why}`, { hint: reason.hint, cause });
}
