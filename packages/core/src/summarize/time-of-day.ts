/** Start and end of a day in a time zone, days of 23 and 25 hours included. */
import { zoneClock } from "./time.ts";

const MINUTE_MS = 60_000;
/** Longer than any day. */
const REACH_MINUTES = 26 * 60;

/** The day that contains `at`: from `start` up to, not including, `end`. */
export function findDay(at: number, timeZone: string): { readonly start: number; readonly end: number } {
  const clock = zoneClock(timeZone);
  const today = clock.split(at).date;
  const minute = Math.floor(at / MINUTE_MS);
  const isToday = (candidate: number): boolean => clock.split(candidate * MINUTE_MS).date === today;
  return {
    start: findEdge(minute, minute - REACH_MINUTES, isToday) * MINUTE_MS,
    end: (findEdge(minute, minute + REACH_MINUTES, isToday) + 1) * MINUTE_MS,
  };
}

/** The last number on the way from `inside` to `outside` for which `isInside` holds. */
function findEdge(inside: number, outside: number, isInside: (candidate: number) => boolean): number {
  let near = inside;
  let far = outside;
  while (Math.abs(far - near) > 1) {
    const middle = Math.trunc((near + far) / 2);
    if (isInside(middle)) near = middle;
    else far = middle;
  }
  return near;
}
