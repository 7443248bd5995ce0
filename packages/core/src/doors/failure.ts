/**
 * Converts any error to the program's message and exit status. Operating errors have their code; a wrong command line is `usage`;
 * everything else is a bug and is reported as one.
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

/** The exit status that shells expect after Ctrl-C. */
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
