/**
 * Time on the wall and of the processor, taken together. On a quiet machine the wall is what a user waits, and goals are judged by it; on
 * a busy one it counts the others' work too, and the processor's time, which also counts what the runtime does beside (collecting
 * garbage, compiling), is the lesser evil. Which it was is told by the measurements themselves.
 */
import { processorMs, round } from "./history.ts";

export interface Timing {
  readonly wallMs: number;
  readonly processorMs: number;
}

export interface Clock {
  readonly of: keyof Timing;
  readonly note: string;
}

/** Above this the machine was doing something else. */
const MAX_QUIET_RATIO = 1.1;

/** Starts a measurement; the function it returns ends it. The wall is looked at inside: asking for processor time takes time itself. */
export function startTiming(): () => Timing {
  const processor = processorMs();
  const wall = performance.now();
  return () => {
    const wallMs = performance.now() - wall;
    return { wallMs, processorMs: processorMs() - processor };
  };
}

/** `timings`: everything that was measured. Work that never waits takes as long on the wall as on the processor, or less where threads help. */
export function chooseClock(timings: readonly Timing[]): Clock {
  const total = (of: keyof Timing): number => timings.reduce((sum, timing) => sum + timing[of], 0);
  const ratio = total("wallMs") / total("processorMs");
  const isQuiet = ratio <= MAX_QUIET_RATIO;
  const found = `all measurements together took ${round(ratio, 2)} times their processor time`;
  return {
    of: isQuiet ? "wallMs" : "processorMs",
    note: isQuiet
      ? `Goals by the time on the wall: the machine was quiet (${found}).`
      : `Goals by processor time: the machine was busy (${found}).`,
  };
}
