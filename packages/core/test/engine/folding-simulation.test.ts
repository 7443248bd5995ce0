import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

import { Simulation } from "./simulation.ts";

/** One seed to look at, or how many to try. */
const ONLY = process.env.LCM_SEED === undefined ? null : Number(process.env.LCM_SEED);
const FIRST = Number(process.env.LCM_FIRST_SEED ?? 1);
const SEEDS = Number(process.env.LCM_SEEDS ?? 16);
const STEPS = 60;
const CHECK_EVERY = 5;

async function simulate(seed: number): Promise<void> {
  using folder = makeTemporaryFolder();
  const simulation = new Simulation(seed, folder.file("lcm.db"));
  await simulation.open();
  try {
    for (let step = 1; step <= STEPS; step++) {
      await simulation.step();
      if (step % CHECK_EVERY !== 0) continue;
      const faults = await simulation.findFaults();
      expect({ seed, step, faults, after: simulation.trail.slice(-CHECK_EVERY) }).toMatchObject({
        faults: [],
      });
    }
  } catch (error) {
    throw new Error(
      `seed ${seed}, after ${simulation.trail.length} steps (…, ${simulation.trail.slice(-5).join(", ")})`,
      { cause: error },
    );
  } finally {
    await simulation.close();
  }
}

const TIMEOUT_MS = 20_000 * (ONLY === null ? SEEDS : 1);

test(
  "whatever happens to a conversation, the archive proves whole and every context stands for it exactly once",
  { timeout: TIMEOUT_MS },
  async () => {
    if (ONLY !== null) return simulate(ONLY);
    for (let seed = FIRST; seed < FIRST + SEEDS; seed++) await simulate(seed);
  },
);
