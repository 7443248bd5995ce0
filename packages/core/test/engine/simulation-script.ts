/** Plays scripts of the simulation: a seed and the numbers of its steps, on some ground. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { playOrExplain as explainScript } from "@lossless/testkit/shorten-script.ts";
import type { PlayedSteps, StepScript } from "@lossless/testkit/shorten-script.ts";

import type { MakeGround } from "./grounds.ts";
import { Simulation } from "./simulation.ts";
import type { SimulatedProcesses } from "./simulation.ts";

export interface Script extends StepScript {
  readonly makeGround: MakeGround;
  readonly crashes: number;
  /** One unless named. */
  readonly processes?: SimulatedProcesses;
  /** The whole archive is proven and contexts are made after every so many steps; a second process reads after each. */
  readonly proveEvery: number;
}

export interface Played extends PlayedSteps {
  readonly crashed: number;
}

export async function play(script: Script): Promise<Played> {
  using folder = makeTemporaryFolder();
  const { seed, crashes, steps, proveEvery, processes = "one" } = script;
  const ground = await script.makeGround(folder.path);
  const simulation = new Simulation({ seed, crashes, processes, ground, folder: folder.path });
  const end = (faults: readonly string[]): Played => ({
    crashed: simulation.crashed,
    trail: simulation.trail,
    faults,
  });
  try {
    await simulation.open();
    for (const [at, number] of steps.entries()) {
      await simulation.step(number);
      const faults = await simulation.findLosses();
      const isProven = (at + 1) % proveEvery === 0 || at + 1 === steps.length;
      if (isProven && faults.length === 0) faults.push(...(await simulation.findFaults()));
      if (faults.length > 0) return end(faults);
    }
    return end([]);
  } catch (error) {
    return end([error instanceof Error ? (error.stack ?? error.message) : String(error)]);
  } finally {
    await simulation.close();
  }
}

/** Plays a script; one that fails ends in an error with its shortened form and the command for it. */
export const playOrExplain = (script: Script, file: string): Promise<Played> =>
  explainScript(script, file, play, (shorter) => play({ ...shorter, proveEvery: 1 }));
