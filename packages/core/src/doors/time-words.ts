/**
 * Points in time as people type them: a time ago, a word for a day, a date, or a time to the second. A day begins at its midnight in the
 * configured time zone, even on days with 23 or 25 hours.
 */
import { findDay } from "../summarize/time-of-day.ts";
import { usageError } from "./failure.ts";
import { formatTime } from "./format.ts";

export interface TimeContext {
  readonly now: number;
  readonly timezone: string;
  /** Named if the text cannot be parsed. */
  readonly option: string;
}

const UNITS_MS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const HALF_DAY_MS = 43_200_000;
const AGO = /^(\d{1,5})\s*(m|min|minutes?|h|hours?|d|days?|w|weeks?)(?:\s+ago)?$/;
const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** ms UTC of what was typed. */
export function parseTime(typed: string, { now, timezone, option }: TimeContext): number {
  const text = typed.trim().toLowerCase();
  const found =
    readAgo(text, now) ??
    readDayWord(text, now, timezone) ??
    readDate(text, timezone) ??
    readMoment(text, timezone);
  if (found !== null) return found;
  throw usageError(
    `cannot read ${option} ${typed}: it is neither a time ago nor a date`,
    "Try 7d, 12h, yesterday, monday, 2026-02-01 or 2026-02-01T10:00",
  );
}

function readAgo(text: string, now: number): number | null {
  const [, count, unit = ""] = AGO.exec(text) ?? [];
  return count === undefined ? null : Math.max(0, now - Number(count) * (UNITS_MS[unit.charAt(0)] ?? 0));
}

/** `monday` is the last one that has begun, so today counts. */
function readDayWord(text: string, now: number, timezone: string): number | null {
  if (text === "now") return now;
  const today = findDay(now, timezone).start;
  if (text === "today") return today;
  if (text === "yesterday") return findDay(today - 1, timezone).start;
  const wanted = WEEKDAYS.indexOf(text);
  if (wanted < 0) return null;
  let day = today;
  while (weekdayOf(day, timezone) !== wanted) day = findDay(day - 1, timezone).start;
  return day;
}

function weekdayOf(at: number, timezone: string): number {
  return new Date(`${formatTime(at, timezone).slice(0, 10)}T00:00:00Z`).getUTCDay();
}

function readDate(text: string, timezone: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const noon = Date.parse(`${text}T12:00:00Z`);
  // Noon in Greenwich may be the day before or after elsewhere.
  const inside = [noon - HALF_DAY_MS, noon, noon + HALF_DAY_MS].find(
    (at) => Number.isFinite(at) && formatTime(at, timezone).startsWith(text),
  );
  return inside === undefined ? null : findDay(inside, timezone).start;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(z|[+-]\d\d:\d\d)?$/;

/** A time without a zone is in the configured zone, like a date. */
function readMoment(text: string, timezone: string): number | null {
  const [, day = "", clock = "", zone] = MOMENT.exec(text) ?? [];
  if (readDate(day, "UTC") === null) return null;
  const at = Date.parse(`${day}T${clock}${(zone ?? "z").toUpperCase()}`);
  if (!Number.isFinite(at)) return null;
  if (zone !== undefined) return at;
  // If the clock changes between the two, the second lookup decides.
  return at - offsetOf(at - offsetOf(at, timezone), timezone);
}

/** How far a zone is ahead of UTC at an instant. */
function offsetOf(at: number, timezone: string): number {
  const minute = Math.floor(at / 60_000) * 60_000;
  return Date.parse(`${formatTime(minute, timezone).replace(" ", "T")}Z`) - minute;
}
