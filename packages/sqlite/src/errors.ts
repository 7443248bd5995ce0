/** Translates failures of SQLite or the system: what happened, and what to do next. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EngineError } from "@lossless/core/adapter";
import type { ErrorCode, NextStep } from "@lossless/core/adapter";

/** SQLite's primary result codes that we handle. */
const RESULT = {
  error: 1,
  permission: 3,
  busy: 5,
  locked: 6,
  readOnly: 8,
  disk: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  constraint: 19,
  notADatabase: 26,
} as const;

interface SqliteError extends Error {
  errcode?: number;
  errstr?: string;
}

const primaryCode = (error: unknown): number => ((error as SqliteError)?.errcode ?? 0) & 0xff;

/** Whether a row was refused because of others, even if the error has been translated since. */
export const isConstraint = (error: unknown): boolean =>
  primaryCode(error) === RESULT.constraint || (error instanceof EngineError && isConstraint(error.cause));

export const isBusy = (error: unknown): boolean =>
  primaryCode(error) === RESULT.busy || primaryCode(error) === RESULT.locked;

/** Whether a statement refers to something that does not exist. */
export const isStatementFault = (error: unknown): boolean => primaryCode(error) === RESULT.error;

export const cannotOpen = (error: unknown): boolean => primaryCode(error) === RESULT.cannotOpen;

interface Reason {
  readonly code: ErrorCode;
  readonly why: string;
  readonly hint?: string;
  readonly step?: NextStep;
}

const DENIED: Reason = {
  code: "database_unreadable",
  why: "permission denied",
  hint: "check the permissions of the file and of its folder",
};
const NO_FOLDER: Reason = {
  code: "database_unreadable",
  why: "a file is in the way of its folder",
  hint: "choose a path whose folder can be created",
};
const FULL: Reason = {
  code: "database_full",
  why: "no space left",
  hint: "free some space; nothing of the failed call was stored",
};
const BUSY: Reason = {
  code: "database_busy",
  why: "another process is holding it",
  hint: "retry when the other process has finished",
};
const READ_ONLY: Reason = {
  code: "database_unreadable",
  why: "it is read-only",
  hint: "reading also needs to write beside it: check the permissions of the file and of its folder, or copy it elsewhere",
};
const damaged = (why: string): Reason => ({
  code: "database_corrupt",
  why,
  step: { kind: "restore", backup: null },
});

/** By system error code. */
const SYSTEM_REASONS: Readonly<Record<string, Reason>> = {
  EACCES: DENIED,
  EPERM: DENIED,
  EROFS: DENIED,
  EEXIST: NO_FOLDER,
  ENOTDIR: NO_FOLDER,
  ENOSPC: FULL,
  EDQUOT: FULL,
};

const RESULT_REASONS: Readonly<Record<number, Reason>> = {
  [RESULT.busy]: BUSY,
  [RESULT.locked]: BUSY,
  [RESULT.full]: FULL,
  [RESULT.readOnly]: READ_ONLY,
  [RESULT.permission]: READ_ONLY,
  [RESULT.corrupt]: damaged("the file is damaged"),
  [RESULT.notADatabase]: {
    code: "database_foreign",
    why: "it is not a database",
    step: { kind: "choose_database" },
  },
  [RESULT.cannotOpen]: {
    code: "database_unreadable",
    why: "it cannot be opened",
    hint: "check that its folder exists and may be written",
  },
};

/** Our statements match our schema: what they do not find was removed. */
const MISSING = /no such (?:table|column|index)|has no column/;

function findReason(error: SqliteError, path: string): Reason {
  const result = primaryCode(error);
  const known = RESULT_REASONS[result];
  if (known) return known;
  if (result === RESULT.disk && isDiskFull(path)) return FULL;
  const { message, errstr = message } = error;
  if (result === RESULT.error && MISSING.test(message)) return damaged(`its schema is damaged (${message})`);
  return result === RESULT.disk
    ? {
        code: "database_unreadable",
        why: `the disk reported an error (${errstr})`,
        hint: "check the disk, then verify the archive",
      }
    : { code: "internal", why: `${message} (${errstr})` };
}

/** On a full disk even reading fails, with a mere I/O error: SQLite cannot create the index of the log beside the database. */
function isDiskFull(path: string): boolean {
  try {
    return statfsSync(dirname(path)).bavail === 0;
  } catch {
    // Then the disk has another problem.
    return false;
  }
}

/** Translates an error of SQLite or the system. Anything else passes through unchanged. */
export function translate(error: unknown, verb: string, path: string): unknown {
  if (error instanceof EngineError || !(error instanceof Error)) return error;
  const { code = "" } = error as NodeJS.ErrnoException;
  const reason = code === "ERR_SQLITE_ERROR" ? findReason(error, path) : SYSTEM_REASONS[code];
  if (!reason) return error;
  const { code: ours, why, hint, step } = reason;
  return new EngineError(ours, `cannot ${verb} the database ${path}: ${why}`, { hint, step, cause: error });
}
