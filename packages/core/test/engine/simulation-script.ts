/**
 * Runs scripts of a simulation: a seed and the numbers of its steps. A script that fails is shortened, by leaving out steps for as long as it
 * still fails, and reported with the command that plays it again.
 */
import { makeTemporaryFolder } from "@lossless/testkit";

import type { MakeGround } from "./grounds.ts";
import { Simulation } from "./simulation.ts";

export interface Script {
  readonly seed: number;
  readonly steps: readonly number[];
  readonly makeGround: MakeGround;
  readonly crashes: number;
  /** The whole archive is proven and contexts are made after every so many steps; a second process reads after each. */
  readonly proveEvery: number;
}

export interface Played {
  readonly crashed: number;
  readonly trail: readonly string[];
  /** Empty: all went well. */
  readonly faults: readonly string[];
}

/** A shortened script need not be the shortest. */
const MAX_TRIES = 60;

export const stepsUpTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

async function play(script: Script): Promise<Played> {
  using folder = makeTemporaryFolder();
  const { seed, crashes, steps, proveEvery } = script;
  const ground = await script.makeGround(folder.path);
  const simulation = new Simulation({ seed, crashes, ground, folder: folder.path });
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

/** What a fault is told apart by while a script is shortened: numbers in it change with the steps. */
const kindOf = (played: Played): string =>
  (played.faults[0] ?? "").split("\n")[0]?.replaceAll(/\d+/g, "#") ?? "";

/** Leaves out runs of steps, ever shorter ones, while the first fault stays the same. */
async function shorten(script: Script, failed: Played): Promise<{ script: Script; played: Played }> {
  let best = { script: { ...script, steps: script.steps.slice(0, failed.trail.length) }, played: failed };
  let tries = 0;
  for (
    let size = Math.ceil(best.script.steps.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < best.script.steps.length && tries < MAX_TRIES;) {
      const steps = best.script.steps.toSpliced(at, size);
      if (steps.length === 0) break;
      tries += 1;
      const shorter = { ...script, steps, proveEvery: 1 };
      const played = await play(shorter);
      if (kindOf(played) === kindOf(failed))
        best = { script: { ...shorter, steps: steps.slice(0, played.trail.length) }, played };
      else at += size;
    }
  }
  return best;
}

/** Plays a script; one that fails ends in an error with its shortened form and the command for it. */
export async function playOrExplain(script: Script, file: string): Promise<Played> {
  const played = await play(script);
  if (played.faults.length === 0) return played;
  const short = await shorten(script, played);
  throw new Error(
    [
      `seed ${script.seed} fails after ${played.trail.length} steps: ${played.faults[0] ?? ""}`,
      `Shortened to ${short.played.trail.length} steps: ${short.played.trail.join(", ")}`,
      ...short.played.faults.slice(0, 10),
      `Play it again: LCM_SEED=${script.seed} LCM_STEPS=${short.script.steps.join(",")} npx vitest run ${file}`,
    ].join("\n"),
  );
}
