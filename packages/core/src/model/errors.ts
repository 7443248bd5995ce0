/**
 * The one error type of the engine. Operating errors (a locked file, a bad setting, invalid input) have a code that programs can test, a
 * message that says what failed, and what to do next: a hint that is the same everywhere, or a step that each door words for itself. Bugs
 * are assertions.
 */
import { LIBRARY_WORDS, wordStep, type NextStep, type StepWords } from "./next-step.ts";

/** Every code, with the exit status the command line gives it. `docs/errors.md` is generated from this table. */
export const ERROR_CODES = {
  internal: { exit: 1, when: "an internal error; please report it" },
  aborted: { exit: 1, when: "the caller cancelled the operation" },
  usage: { exit: 2, when: "an argument is missing, unknown or out of range" },
  invalid_input: { exit: 2, when: "the input cannot be read" },
  denied: { exit: 3, when: "a sub-agent has no grant for its request, or its grant has ended" },
  not_found: { exit: 3, when: "no conversation, message, summary or file has this id" },
  model_failed: {
    exit: 1,
    when: "a model that a command needs cannot be reached, or gives no usable answer",
  },
  config: { exit: 4, when: "a setting is unknown or has an invalid value" },
  database_missing: { exit: 5, when: "the database file does not exist and the command does not create one" },
  database_foreign: { exit: 5, when: "the file is not a database, or belongs to another program" },
  database_newer: { exit: 5, when: "the file was written by a newer version of this program" },
  database_unreadable: {
    exit: 5,
    when: "the path is a directory, a device or a pipe, or permissions forbid access",
  },
  database_unreachable: {
    exit: 5,
    when: "the database server cannot be reached, or the connection was lost",
  },
  database_busy: { exit: 5, when: "another process held the write lock longer than the time limit" },
  database_full: { exit: 5, when: "the disk or quota is full" },
  database_corrupt: { exit: 5, when: "SQLite reports that the file is damaged, or the file is empty" },
  database_replaced: { exit: 5, when: "the file was deleted or replaced while it was open" },
  database_closed: { exit: 5, when: "the engine was closed before the call" },
  verification_failed: { exit: 6, when: "stored data does not match its proof" },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface EngineErrorOptions {
  /** What to do next, where the words are the same for every door: no command, no flag, no tool. */
  readonly hint?: string | undefined;
  /** What to do next, where doors differ; it replaces the hint. */
  readonly step?: NextStep | undefined;
  readonly cause?: unknown;
}

export class EngineError extends Error {
  readonly code: ErrorCode;
  /** What the user can do next, in one sentence; a step in the library's words. */
  readonly hint: string | undefined;
  readonly step: NextStep | undefined;

  constructor(code: ErrorCode, message: string, { hint, step, cause }: EngineErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "EngineError";
    this.code = code;
    this.step = step;
    this.hint = step === undefined ? hint : wordStep(step, LIBRARY_WORDS);
  }
}

/** The hint of an error in the words of one door; undefined if it has none. */
export function hintFor({ step, hint }: EngineError, words: StepWords): string | undefined {
  return step === undefined ? hint : wordStep(step, words);
}

const WRITE_FAILURES: Readonly<Record<string, string>> = {
  ENOSPC: "no space left",
  EDQUOT: "no space left",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the disk is read-only",
  ENOENT: "its folder does not exist",
  ENOTDIR: "part of the path is not a folder",
  EISDIR: "it is a folder",
  EIO: "the disk reported an error",
  EFBIG: "the file would be larger than the system allows",
  EEXIST: "something else is there already",
};

/** Converts a system error about a file that cannot be written. Anything else is returned unchanged. */
export function toWriteError(path: string, error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (error instanceof EngineError || typeof code !== "string") return error;
  const reason = WRITE_FAILURES[code];
  if (reason === undefined) return error;
  const isFull = reason === WRITE_FAILURES["ENOSPC"];
  return new EngineError(isFull ? "database_full" : "usage", `cannot write ${path}: ${reason}`, {
    hint: isFull ? "free some space" : "choose another path, or check its permissions",
    cause: error,
  });
}

/** States an invariant. A failure is a bug in this program, never in its input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`);
}

/** Returns a value that the surrounding code has already proven to exist. */
export function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`invariant broken: ${what} is missing`);
  return value;
}
