import { expect, test } from "vitest";
import { findDay } from "../../src/summarize/time-of-day.ts";

const iso = (text: string): number => Date.parse(text);

test.each([
  ["UTC", "2026-02-14T11:02:33Z", "2026-02-14T00:00:00Z", "2026-02-15T00:00:00Z"],
  ["UTC", "2026-02-14T00:00:00Z", "2026-02-14T00:00:00Z", "2026-02-15T00:00:00Z"],
  ["UTC", "2026-02-14T23:59:59.999Z", "2026-02-14T00:00:00Z", "2026-02-15T00:00:00Z"],
  ["Asia/Kolkata", "2026-02-14T20:00:00Z", "2026-02-14T18:30:00Z", "2026-02-15T18:30:00Z"],
  ["Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"],
  ["Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
])("finds the day in %s at %s", (timeZone, at, start, end) => {
  expect(findDay(iso(at), timeZone)).toEqual({ start: iso(start), end: iso(end) });
});
