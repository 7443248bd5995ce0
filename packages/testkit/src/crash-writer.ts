/**
 * The program that the store's `crash.test.ts` kills: stores batches of one session like a host, with several concurrent calls, and prints the
 * id of each event once the engine has acknowledged it. The events depend only on seed and index, so that the parent knows every byte.
 */
import { writeSync } from "node:fs";
import { openEngine } from "lossless-claw";
import type { Arrival } from "@lossless/core";
import { makeRandom } from "./random.ts";

export const CRASH_SESSION = { key: "agent:main:crash", id: "crash", owner: "main" };

/** Concurrent calls. */
const LANES = 3;
/** Above the default threshold, so that its payload goes to a file. */
const LARGE_WORDS = 60_000;

/** The event of an index: usually short, sometimes a few pages, rarely large enough for its own file. */
export function makeCrashEvent(seed: number, index: number): Arrival & { eventId: string } {
  const random = makeRandom(seed * 1_000_003 + index);
  const eventId = `event-${index}`;
  const words = random.next() < 0.01 ? LARGE_WORDS : random.next() < 0.2 ? 900 : 1 + random.below(40);
  const text = Array.from({ length: words }, () => random.below(4_000).toString(36)).join(" ");
  if (index % 3 === 1) {
    return {
      eventId,
      message: {
        role: "toolResult",
        toolCallId: `call-${index}`,
        toolName: "bash",
        content: [{ type: "text", text }],
      },
    };
  }
  return { eventId, message: { role: index % 3 === 0 ? "user" : "assistant", content: text } };
}

/** Batches of one to nine events; the same index is always in the same batch. */
export function* listCrashBatches(seed: number): Generator<{ from: number; to: number }, never> {
  const random = makeRandom(seed);
  for (let from = 0; ;) {
    const to = from + 1 + random.below(9);
    yield { from, to };
    from = to;
  }
}

/** Stores every batch that ends after `start`, until killed. */
async function writeUntilKilled(database: string, seed: number, start: number): Promise<never> {
  const engine = await openEngine({ database });
  const batches = listCrashBatches(seed);
  const work = async (): Promise<never> => {
    for (;;) {
      const { from, to } = batches.next().value;
      if (to <= start) continue;
      const messages = Array.from({ length: to - from }, (_, i) => makeCrashEvent(seed, from + i));
      const turn = from % 2 === 0 ? { turn: { advancementKey: `turn-${from}` } } : {};
      await engine.ingest({ session: CRASH_SESSION, messages, ...turn });
      writeSync(1, messages.map((message) => `${message.eventId}\n`).join(""));
    }
  };
  return Promise.race(Array.from({ length: LANES }, work));
}

if (process.argv[1] === import.meta.filename) {
  const [database = "", seed = "0", start = "0"] = process.argv.slice(2);
  await writeUntilKilled(database, Number(seed), Number(start));
}
