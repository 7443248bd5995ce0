import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { findDates, isNearDate } from "../../src/text/index.ts";

describe("dates in a question", () => {
  test.each([
    ["signed on 21 May, 2023?", [{ year: 2023, month: 5, day: 21 }]],
    ["on October 13, 2023", [{ year: 2023, month: 10, day: 13 }]],
    ["the 31st of December 2023", [{ year: 2023, month: 12, day: 31 }]],
    ["on 10.01.2024", [{ year: 2024, month: 1, day: 10 }]],
    ["since 2024-03-09", [{ year: 2024, month: 3, day: 9 }]],
    ["2024年4月1日的会议", [{ year: 2024, month: 4, day: 1 }]],
    ["4月1日", [{ month: 4, day: 1 }]],
    ["in June 2022", [{ year: 2022, month: 6 }]],
    ["camping in July", [{ month: 7 }]],
    ["on August 3", [{ month: 8, day: 3 }]],
    ["in 2023", [{ year: 2023 }]],
    ["may I march on?", []],
    ["version 2.10.1 of port 2024", []],
    ["13.13.2024", []],
  ])("%j", (text, dates) => {
    expect(findDates(text)).toEqual(dates);
  });

  test("are near the days on which one writes about them", () => {
    const day = { year: 2024, month: 1, day: 1 };
    expect(isNearDate(day, Date.UTC(2024, 0, 2, 22))).toBe(true);
    expect(isNearDate(day, Date.UTC(2023, 11, 31, 1))).toBe(true);
    expect(isNearDate(day, Date.UTC(2024, 0, 9))).toBe(false);
    expect(isNearDate({ month: 12, day: 31 }, Date.UTC(2024, 0, 1))).toBe(true);
    expect(isNearDate({ month: 1, day: 1 }, Date.UTC(2023, 11, 31, 12))).toBe(true);
    expect(isNearDate({ month: 6 }, Date.UTC(2021, 5, 30))).toBe(true);
    expect(isNearDate({ year: 2021 }, Date.UTC(2022, 0, 1))).toBe(false);
  });

  test("are found in any text without failing", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void findDates(text)));
  });
});
