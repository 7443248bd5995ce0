/**
 * fast-check with fewer runs per property. A property starts from the same seed each time, so `npm test` repeats the same cases with every
 * change: a quarter of the runs that its test names is enough to show a fault of that kind. A soak runs all of them, times `LCM_SOAK`.
 */
import { assert as assertWith } from "fast-check";
import type { IAsyncProperty, IProperty, Parameters } from "fast-check";
import { rounds } from "./rounds.ts";

export * from "fast-check";

const SHARE = 0.25;
/** The minimum number of runs: tests with fewer runs are expensive because each does much. */
const ALWAYS = 12;
const DEFAULT_RUNS = 100;

function countRuns(named = DEFAULT_RUNS): number {
  return rounds({ test: Math.max(Math.ceil(named * SHARE), Math.min(named, ALWAYS)), soak: named });
}

export function assert<Ts>(property: IAsyncProperty<Ts>, parameters?: Parameters<Ts>): Promise<void>;
export function assert<Ts>(property: IProperty<Ts>, parameters?: Parameters<Ts>): void;
export function assert<Ts>(
  property: IAsyncProperty<Ts> | IProperty<Ts>,
  parameters: Parameters<Ts> = {},
): Promise<void> | void {
  return assertWith(property as IProperty<Ts>, { ...parameters, numRuns: countRuns(parameters.numRuns) });
}
