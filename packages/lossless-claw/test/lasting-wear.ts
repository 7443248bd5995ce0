/** What of a long run is worse in its last third than in its first, in sentences. What a program needs to get going, the first eighth, does not count. */
import type { LastingSample } from "./lasting-program.ts";

const WARM_UP = 1 / 8;

/** How much more of something is no wear: so many times, and so much beyond. */
interface Tolerance {
  readonly times: number;
  readonly plus: number;
}

/** The heap after a collection hardly moves. Memory of the process has caches in it that grow to their limits. */
const HEAP: Tolerance = { times: 1.1, plus: 5 };
const MEMORY: Tolerance = { times: 1.25, plus: 40 };
/** Nothing that is opened stays open. */
const NONE: Tolerance = { times: 1, plus: 0 };
/** The archive grows meanwhile: a search may cost four times at a hundred times the size, all else twice. */
const CALL: Tolerance = { times: 2, plus: 2 };
const CALLS: Readonly<Record<string, Tolerance>> = { search: { times: 4, plus: 5 } };

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const show = (value: number): string => String(Number(value.toFixed(1)));

function takeThirds(samples: readonly LastingSample[]): [first: LastingSample[], last: LastingSample[]] {
  const counted = samples.slice(Math.floor(samples.length * WARM_UP));
  const third = Math.floor(counted.length / 3);
  return [counted.slice(0, third), counted.slice(-third)];
}

interface Measured {
  readonly what: string;
  readonly unit: string;
  readonly first: number;
  readonly last: number;
  readonly tolerance: Tolerance;
}

const listCalls = (samples: readonly LastingSample[], name: string): number[] =>
  samples.flatMap(({ calls }) => calls[name] ?? []);

function measure(samples: readonly LastingSample[]): Measured[] {
  const [first, last] = takeThirds(samples);
  const of = (
    what: string,
    unit: string,
    pick: (sample: LastingSample) => number,
    tolerance: Tolerance,
  ): Measured => ({
    what,
    unit,
    first: median(first.map(pick)),
    last: median(last.map(pick)),
    tolerance,
  });
  const names = [...new Set(samples.flatMap(({ calls }) => Object.keys(calls)))];
  return [
    of("the heap", " MB", ({ heapMb }) => heapMb, HEAP),
    of("the memory of the process", " MB", ({ memoryMb }) => memoryMb, MEMORY),
    of("open files", "", ({ files }) => files, NONE),
    of("what keeps the event loop alive", "", ({ handles }) => handles, NONE),
    ...names.map((name) => ({
      what: `the cost of a call (${name})`,
      unit: " ms",
      first: median(listCalls(first, name)),
      last: median(listCalls(last, name)),
      tolerance: CALLS[name] ?? CALL,
    })),
  ];
}

export function findWear(samples: readonly LastingSample[]): string[] {
  const names = [...new Set(samples.flatMap(({ calls }) => Object.keys(calls)))];
  const [first, last] = takeThirds(samples);
  return [
    ...measure(samples)
      .filter((found) => found.last > found.first * found.tolerance.times + found.tolerance.plus)
      .map(
        (found) =>
          `${found.what} grew from ${show(found.first)}${found.unit} in the first third to ${show(found.last)}${found.unit} in the last`,
      ),
    ...names.flatMap((name) => [
      ...(listCalls(first, name).length === 0 ? [`there was no call (${name}) in the first third`] : []),
      ...(listCalls(last, name).length === 0 ? [`there was no call (${name}) in the last third`] : []),
    ]),
  ];
}

/** For people: how far it came, and first and last third side by side. */
export function renderThirds(samples: readonly LastingSample[]): string {
  const end = samples.at(-1);
  return [
    `${show((end?.seconds ?? 0) / 60)} minutes, ${end?.cycles} cycles, ${end?.messages} messages; first third → last third:`,
    ...measure(samples).map(
      ({ what, unit, first, last }) => `  ${what}: ${show(first)}${unit} → ${show(last)}${unit}`,
    ),
  ].join("\n");
}
