/**
 * Wall time and processor time, measured together. On a quiet machine wall time is what a user waits, and goals are judged by it; on a busy one
 * it includes other load, and processor time, which also includes background work of the runtime (garbage collection, compilation), is the
 * lesser evil. The measurements themselves show which it was.
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

/** Above this ratio the machine was busy with something else. */
const MAX_QUIET_RATIO = 1.1;

/** Starts a measurement; the returned function ends it. Wall time is read innermost: reading processor time takes time itself. */
export function startTiming(): () => Timing {
  const processor = processorMs();
  const wall = performance.now();
  return () => {
    const wallMs = performance.now() - wall;
    return { wallMs, processorMs: processorMs() - processor };
  };
}

/** `timings`: all measurements. Work that never waits takes as long in wall time as in processor time, or less with several threads. */
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
