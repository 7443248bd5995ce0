/** Which scripts a test of a store plays: some seeds, or the one script that the environment names. */
import { firstSeed, stepsUpTo } from "@lossless/testkit/shorten-script.ts";
import { expect } from "vitest";

import type { MakeGround } from "./grounds.ts";
import { playOrExplain } from "./simulation-script.ts";
import type { SimulatedProcesses } from "./simulation.ts";

/** `LCM_SEED=random` names none. */
const ONLY = /^\d+$/.test(process.env["LCM_SEED"] ?? "") ? Number(process.env["LCM_SEED"]) : null;
/** Numbers of its steps. */
const STEPS = process.env["LCM_STEPS"]?.split(",").map(Number);
const CRASHES = 0.12;

export interface SeedChoice {
  readonly makeGround: MakeGround;
  /** The test's own, for the command that plays a script again. */
  readonly file: string;
  readonly seeds: number;
  readonly first?: number;
  readonly steps: number;
  readonly proveEvery: number;
  readonly processes?: SimulatedProcesses;
}

export async function playSeeds({
  file,
  seeds,
  first,
  steps,
  proveEvery,
  ...choice
}: SeedChoice): Promise<void> {
  const begin = firstSeed(first);
  let crashed = 0;
  for (const seed of ONLY === null ? Array.from({ length: seeds }, (_, at) => begin + at) : [ONLY]) {
    const script = {
      ...choice,
      seed,
      crashes: CRASHES,
      steps: ONLY === null || STEPS === undefined ? stepsUpTo(steps) : STEPS,
      proveEvery: ONLY === null ? proveEvery : 1,
    };
    crashed += (await playOrExplain(script, file)).crashed;
  }
  if (ONLY === null) expect(crashed).toBeGreaterThan(0);
}
