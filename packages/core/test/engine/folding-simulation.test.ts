import { makeTemporaryFolder } from "@lossless/testkit";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

import { Simulation } from "./simulation.ts";

/** One seed to look at, or how many to try. */
const ONLY = process.env["LCM_SEED"] === undefined ? null : Number(process.env["LCM_SEED"]);
const FIRST = Number(process.env["LCM_FIRST_SEED"] ?? 1);
const SEEDS = rounds({ test: 2, soak: 16 });
/** Turns and everything between them in one long run. */
const SOAK_STEPS = rounds({ test: 0, soak: 120 });
const CRASHES = 0.12;

interface Run {
  readonly seed: number;
  readonly steps: number;
  readonly checkEvery: number;
}

async function simulate({ seed, steps, checkEvery }: Run): Promise<Simulation> {
  using folder = makeTemporaryFolder();
  const simulation = new Simulation(seed, folder.file("lcm.db"), { crashes: CRASHES });
  await simulation.open();
  try {
    for (let step = 1; step <= steps; step++) {
      await simulation.step();
      if (step % checkEvery !== 0) continue;
      const faults = await simulation.findFaults();
      expect({ seed, step, faults, after: simulation.trail.slice(-checkEvery) }).toMatchObject({
        faults: [],
      });
    }
    return simulation;
  } catch (error) {
    throw new Error(
      `seed ${seed}, after ${simulation.trail.length} steps (…, ${simulation.trail.slice(-5).join(", ")})`,
      { cause: error },
    );
  } finally {
    await simulation.close();
  }
}

test("whatever happens to a conversation, the archive proves whole and every context stands for it exactly once", async () => {
  const short = { steps: 60, checkEvery: 5 };
  const seeds = ONLY === null ? Array.from({ length: SEEDS }, (_, i) => FIRST + i) : [ONLY];
  let crashed = 0;
  for (const seed of seeds) crashed += (await simulate({ seed, ...short })).crashed;
  if (ONLY === null) expect(crashed).toBeGreaterThan(0);
});

test.runIf(isSoak)(
  "nothing wears out over a long conversation with a process that is killed again and again",
  async () => {
    // One seed has a model that fails at times, the other has none.
    for (const seed of [1_002, 1_003]) {
      const simulation = await simulate({ seed, steps: SOAK_STEPS, checkEvery: Math.ceil(SOAK_STEPS / 10) });
      expect(simulation.crashed).toBeGreaterThan(SOAK_STEPS / 100);
    }
  },
);
