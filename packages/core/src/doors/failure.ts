/**
 * From any error to what the program says and the status it ends with. Operating errors carry their code; a wrong command line is
 * `usage`; everything else is a bug and is said to be one.
 */
import { EngineError, ERROR_CODES, hintFor } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";
import { SHELL_WORDS } from "./shell-words.ts";

export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string | null;
  readonly exit: number;
}

/** What shells expect of a program that Ctrl-C ended. */
export const EXIT_CANCELLED = 130;

export function describeFailure(error: unknown): Failure {
  if (error instanceof EngineError) {
    const { code, message } = error;
    const exit = code === "aborted" ? EXIT_CANCELLED : ERROR_CODES[code].exit;
    return { code, message, hint: hintFor(error, SHELL_WORDS) ?? null, exit };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    code: "internal",
    message: `internal error: ${message.split("\n", 1)[0]}`,
    hint: "Run it again with LCM_DEBUG=1 to see where, and please report it",
    exit: ERROR_CODES.internal.exit,
  };
}

export function usageError(message: string, hint?: string): EngineError {
  return new EngineError("usage", message, hint === undefined ? {} : { hint });
}
