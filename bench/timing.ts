/**
 * Time on the wall and of the processor, taken together. On a quiet machine the wall is what a user waits, and goals are judged by it; on
 * a busy one it counts the others' work too, and the processor's time, which also counts what the runtime does beside (collecting
 * garbage, compiling), is the lesser evil. Which it was is decided by work that waits for nothing and so takes as long on both.
 */
import { median, processorMs, round } from "./history.ts";

export interface Timing {
  readonly wallMs: number;
  readonly processorMs: number;
}

export interface Clock {
  readonly of: keyof Timing;
  readonly note: string;
}

/** Above this the machine was doing something else. */
const MAX_QUIET_RATIO = 1.15;

/** Starts a measurement; the function it returns ends it. */
export function startTiming(): () => Timing {
  const [wall, processor] = [performance.now(), processorMs()];
  return () => ({ wallMs: performance.now() - wall, processorMs: processorMs() - processor });
}

/** `steady`: measurements of work that neither waits nor leaves anything to other threads. */
export function chooseClock(steady: readonly Timing[]): Clock {
  const ratio = median(steady.map(({ wallMs, processorMs: busyMs }) => wallMs / busyMs));
  const isQuiet = ratio <= MAX_QUIET_RATIO;
  return {
    of: isQuiet ? "wallMs" : "processorMs",
    note: isQuiet
      ? `Goals by the time on the wall: the machine was quiet (the floor took ${round(ratio, 2)} of its processor time).`
      : `Goals by processor time: the machine was busy (the floor took ${round(ratio, 2)} times its processor time).`,
  };
}
