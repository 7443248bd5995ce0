/**
 * Properties start from the same seed in every run, so that a failure is due to the change and not to chance. `LCM_SEED=n` starts from another
 * seed and `LCM_SEED=random` from a new one each time; a failure prints the seed that reproduces it.
 */
import { configureGlobal } from "fast-check";

const DEFAULT_SEED = 1;

const wanted = process.env["LCM_SEED"] ?? String(DEFAULT_SEED);
if (wanted !== "random") {
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error('LCM_SEED must be a whole number or "random"');
  configureGlobal({ seed });
}

export * as fc from "./fewer-runs.ts";
