/** Dates and times as summaries write them, in the configured zone. */
import { openZoneFormat, splitMoment } from "../text/zone-format.ts";

export interface ZonedTime {
  /** `2026-02-14` */
  readonly date: string;
  /** `11:02` */
  readonly time: string;
}

export interface ZoneClock {
  /** Short name for headers, for example `UTC` or `Europe/Berlin`. */
  readonly name: string;
  split(at: number): ZonedTime;
}

const clocks = new Map<string, ZoneClock>();

export function zoneClock(timeZone: string): ZoneClock {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const clock = makeClock(timeZone);
  clocks.set(timeZone, clock);
  return clock;
}

function makeClock(timeZone: string): ZoneClock {
  const name = openZoneFormat(timeZone).resolvedOptions().timeZone;
  // Messages come in order and often in the same minute; formatting is the slow part.
  let minute = Number.NaN;
  let answer: ZonedTime = UNKNOWN;
  return {
    name,
    split(at) {
      const asked = Math.floor(at / 60_000);
      if (asked !== minute) {
        minute = asked;
        const field = splitMoment(at, timeZone);
        answer =
          field === null
            ? UNKNOWN
            : { date: `${field.year}-${field.month}-${field.day}`, time: `${field.hour}:${field.minute}` };
      }
      return answer;
    },
  };
}

const UNKNOWN: ZonedTime = { date: "", time: "" };

/** `2026-02-14 11:02 UTC`; an unknown time is stated as such. */
export function formatMoment(at: number | null, timeZone: string): string {
  if (at === null) return "time unknown";
  const clock = zoneClock(timeZone);
  const { date, time } = clock.split(at);
  return date === "" ? "time unknown" : `${date} ${time} ${clock.name}`;
}
