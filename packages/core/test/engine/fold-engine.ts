/** An engine for the folding tests: a model that answers by the sources it is shown, a clock that can be ahead, closed with its test. */
import { onTestFinished } from "vitest";
import { openEngine } from "lossless-claw";
import type { CompleteResult, Engine } from "../../src/index.ts";
import { answerCall, foldSettings } from "./fold-program.ts";

export interface OpenOptions {
  readonly skewMs?: number;
  readonly onCall?: (key: string) => unknown;
}

export async function openFolding(
  database: string,
  { skewMs = 0, onCall }: OpenOptions = {},
): Promise<Engine> {
  const engine = await openEngine({
    database,
    thread: false,
    settings: foldSettings(database),
    complete: async (request): Promise<CompleteResult> => {
      const { key, answer } = answerCall(request);
      await onCall?.(key);
      return answer;
    },
    clock: { now: () => Date.now() + skewMs, random: (size) => crypto.getRandomValues(new Uint8Array(size)) },
  });
  onTestFinished(() => engine.close());
  return engine;
}
