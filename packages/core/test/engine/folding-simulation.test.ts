import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { stepsUpTo } from "@lossless/testkit/shorten-script.ts";
import { expect, test } from "vitest";

import { makeMemoryGround, makeSqliteGround } from "./grounds.ts";
import type { MakeGround } from "./grounds.ts";
import { playSeeds } from "./simulated-seeds.ts";
import { playOrExplain } from "./simulation-script.ts";

const FILE = "packages/core/test/engine/folding-simulation.test.ts";
/** Turns and everything between them in one long run. */
const SOAK_STEPS = rounds({ test: 0, soak: 120 });
const SHORT = { file: FILE, steps: 60, proveEvery: isSoak ? 1 : 10 };

test("whatever happens to a conversation, the archive proves whole and every context stands for it exactly once", () =>
  playSeeds({ ...SHORT, makeGround: makeSqliteGround, seeds: rounds({ test: 2, soak: 16 }) }));

test("the same holds without a database", () =>
  playSeeds({ ...SHORT, makeGround: makeMemoryGround, seeds: rounds({ test: 1, soak: 8 }), first: 3 }));

test("the same holds with two processes that write in turns", () =>
  playSeeds({
    ...SHORT,
    makeGround: isSoak ? makeSqliteGround : makeMemoryGround,
    processes: "two",
    seeds: rounds({ test: 1, soak: 4 }),
    first: 21,
  }));

test.runIf(isSoak)(
  "the same holds with two programs either of which is killed while the other continues",
  () =>
    playSeeds({
      ...SHORT,
      makeGround: makeSqliteGround,
      processes: "two real",
      seeds: rounds({ test: 0, soak: 4 }),
      first: 31,
    }),
);

test("a script that fails is shortened to what it takes, and named by a command", async () => {
  /** Takes a history that comes again whole for a new one. */
  const makeForgetful: MakeGround = async (folder) => {
    const ground = await makeMemoryGround(folder);
    return {
      ...ground,
      async openStore(options) {
        const store = await ground.openStore(options);
        const append: typeof store.append = (batch) => {
          const isReplay = batch.events.length > 15;
          const events = batch.events.map((event) => ({ ...event, eventId: `${event.eventId}again` }));
          return store.append(isReplay ? { ...batch, events } : batch);
        };
        return { ...store, append };
      },
    };
  };
  const script = { seed: 4, steps: stepsUpTo(60), makeGround: makeForgetful, crashes: 0, proveEvery: 10 };
  const error = await playOrExplain(script, FILE).catch(String);
  expect(error).toMatch(/seed 4 fails after \d\d steps: \d+ events came in, \d+ are stored/);
  expect(error).toMatch(/Shortened to [1-9] steps: .*\d (?:replay|reorder|slice)/);
  expect(error).toMatch(/LCM_SEED=4 LCM_STEPS=[\d,]+ npx vitest run packages\/core/);
});

test.runIf(isSoak)(
  "nothing wears out over a long conversation with a process that is killed again and again",
  // One seed has a model that fails at times, the other has none.
  () =>
    playSeeds({
      file: FILE,
      makeGround: makeSqliteGround,
      seeds: 2,
      first: 1_002,
      steps: SOAK_STEPS,
      proveEvery: Math.ceil(SOAK_STEPS / 10),
    }),
);
