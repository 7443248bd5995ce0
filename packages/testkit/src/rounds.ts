/**
 * How often a test repeats itself. `npm test` does the minimum that shows a fault of that kind; `npm run test:soak` runs every file that uses
 * this again, with the larger number, times `LCM_SOAK` (1 unless set). So kill loops, simulations and properties with many seeds stay one test
 * with one setting.
 */

const soak = process.env["LCM_SOAK"] === undefined ? null : Number(process.env["LCM_SOAK"]);
if (soak !== null && !(soak > 0)) throw new Error("LCM_SOAK must be a number greater than 0");

/** For tests that are too long for every change, whatever their number of rounds. */
export const isSoak = soak !== null;

export function rounds(count: { readonly test: number; readonly soak: number }): number {
  return soak === null ? count.test : Math.ceil(count.soak * soak);
}

/** A sample spread over a list of cases; all of them in a soak. */
export function someOf<T>(cases: readonly T[], count: number): T[] {
  const step = isSoak ? 1 : Math.max(1, cases.length / count);
  return cases.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}
