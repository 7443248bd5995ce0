/** Dates in a configured zone. An unknown zone counts as UTC, so that a bad setting never stops a turn or a fold. */

const formats = new Map<string, Intl.DateTimeFormat>();

export function openZoneFormat(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = makeFormat(timeZone);
    formats.set(timeZone, format);
  }
  return format;
}

/** The last time a date can represent. */
const MAX_TIME = 8.64e15;

/** Year to second as texts, or null for an invalid time. */
export function splitMoment(at: number, timeZone: string): Record<string, string> | null {
  if (!Number.isFinite(at) || Math.abs(at) > MAX_TIME) return null;
  return Object.fromEntries(
    openZoneFormat(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
}

function makeFormat(timeZone: string): Intl.DateTimeFormat {
  const options: Intl.DateTimeFormatOptions = {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  };
  try {
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
  }
}
