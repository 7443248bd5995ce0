/**
 * Dates and times as summaries write them, in the configured zone. An unknown zone falls back to UTC, so that a bad setting
 * can never stop a fold.
 */

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
  const format = makeFormat(timeZone);
  const name = format.resolvedOptions().timeZone;
  // Messages come in order and often in the same minute; formatting is the slow part.
  let minute = Number.NaN;
  let answer: ZonedTime = UNKNOWN;
  return {
    name,
    split(at) {
      if (!Number.isFinite(at) || Math.abs(at) > MAX_TIME) return UNKNOWN;
      const asked = Math.floor(at / 60_000);
      if (asked !== minute) {
        minute = asked;
        answer = formatParts(format, at);
      }
      return answer;
    },
  };
}

const UNKNOWN: ZonedTime = { date: "", time: "" };
/** The last moment a date can hold. */
const MAX_TIME = 8.64e15;

function formatParts(format: Intl.DateTimeFormat, at: number): ZonedTime {
  const field: Record<string, string> = {};
  for (const part of format.formatToParts(at)) field[part.type] = part.value;
  return { date: `${field.year}-${field.month}-${field.day}`, time: `${field.hour}:${field.minute}` };
}

function makeFormat(timeZone: string): Intl.DateTimeFormat {
  const options: Intl.DateTimeFormatOptions = {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  }
}

/** `2026-02-14 11:02 UTC`; an unknown time is said as such. */
export function formatMoment(at: number | null, timeZone: string): string {
  if (at === null) return "time unknown";
  const clock = zoneClock(timeZone);
  const { date, time } = clock.split(at);
  return date === "" ? "time unknown" : `${date} ${time} ${clock.name}`;
}
