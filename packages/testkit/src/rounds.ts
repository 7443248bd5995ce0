/**
 * How often a test repeats itself. `npm test` does as little as shows a fault of the kind; `npm run test:soak` runs every file that asks
 * here once more, with the larger number, times `LCM_SOAK` (1 unless set). That is how kill loops, simulations and properties with many
 * seeds stay one test with one setting.
 */

const soak = process.env["LCM_SOAK"] === undefined ? null : Number(process.env["LCM_SOAK"]);
if (soak !== null && !(soak > 0)) throw new Error("LCM_SOAK must be a number greater than 0");

/** For tests that are too long for every change whatever their number of rounds. */
export const isSoak = soak !== null;

export function rounds(count: { readonly test: number; readonly soak: number }): number {
  return soak === null ? count.test : Math.ceil(count.soak * soak);
}

/** Of a list of cases, some that are spread over it; all of them in a soak. */
export function someOf<T>(cases: readonly T[], count: number): T[] {
  const step = isSoak ? 1 : Math.max(1, cases.length / count);
  return cases.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}
