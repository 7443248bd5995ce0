import { expect, test } from "vitest";
import { parseTime } from "../../src/doors/time-words.ts";

/** A Friday. */
const now = Date.UTC(2026, 1, 20, 12);
const at = (text: string, timezone = "UTC"): string =>
  new Date(parseTime(text, { now, timezone, option: "--since" })).toISOString();

test("a time ago is counted from now", () => {
  expect(at("30m")).toBe("2026-02-20T11:30:00.000Z");
  expect(at("12h")).toBe("2026-02-20T00:00:00.000Z");
  expect(at("7d")).toBe("2026-02-13T12:00:00.000Z");
  expect(at("2 weeks ago")).toBe("2026-02-06T12:00:00.000Z");
  expect(at("now")).toBe("2026-02-20T12:00:00.000Z");
});

test("a word for a day is its midnight in the time zone", () => {
  expect(at("today")).toBe("2026-02-20T00:00:00.000Z");
  expect(at("Yesterday")).toBe("2026-02-19T00:00:00.000Z");
  expect(at("yesterday", "Europe/Berlin")).toBe("2026-02-18T23:00:00.000Z");
  expect(at("today", "Pacific/Auckland")).toBe("2026-02-20T11:00:00.000Z");
});

test("a weekday is the last one that has begun, today included", () => {
  expect(at("friday")).toBe("2026-02-20T00:00:00.000Z");
  expect(at("monday")).toBe("2026-02-16T00:00:00.000Z");
  expect(at("saturday")).toBe("2026-02-14T00:00:00.000Z");
  expect(at("saturday", "Pacific/Auckland")).toBe("2026-02-20T11:00:00.000Z");
});

test("a date is its midnight in the time zone, a moment is itself", () => {
  expect(at("2026-02-01", "America/Los_Angeles")).toBe("2026-02-01T08:00:00.000Z");
  expect(at("2026-02-01T10:00:00Z", "America/Los_Angeles")).toBe("2026-02-01T10:00:00.000Z");
});

test("a moment without a zone is one of the time zone, also where the clock is changed", () => {
  expect(at("2026-02-01T10:00", "America/Los_Angeles")).toBe("2026-02-01T18:00:00.000Z");
  expect(at("2026-02-01 10:00:30", "Asia/Kathmandu")).toBe("2026-02-01T04:15:30.000Z");
  expect(at("2026-03-29T01:59", "Europe/Berlin")).toBe("2026-03-29T00:59:00.000Z");
  expect(at("2026-03-29T03:00", "Europe/Berlin")).toBe("2026-03-29T01:00:00.000Z");
  expect(at("2026-02-01T10:00+05:45", "Europe/Berlin")).toBe("2026-02-01T04:15:00.000Z");
});

test.each([
  "2026-02-31T10:00Z",
  "2026-02-01T25:00",
  "2026-02-01 foo",
  "",
  "soon",
  "7",
  "2026-02-31",
  "2026-13-01",
  "someday",
])("refuses %j", (text) => {
  expect(() => at(text)).toThrow(`cannot read --since ${text}`);
});
