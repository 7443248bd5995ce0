/**
 * Storing what was paid for. A database that is away for a while, or held by somebody else, must not cost an answer that a model has given: it is
 * tried again until the caller gives up.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../model/errors.ts";

const PAUSE_MS = 1_000;
const PASSING: ReadonlySet<string> = new Set(["database_unreachable", "database_busy"]);

/** What an earlier try has stored must do no harm when it is stored again: an answer can be lost on its way. */
export async function keepTrying<T>(store: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await store();
    } catch (error) {
      if (signal.aborted || !(error instanceof EngineError) || !PASSING.has(error.code)) throw error;
    }
    // Whoever gives up while it waits has one more try.
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}
