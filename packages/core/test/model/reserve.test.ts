import { expect, test } from "vitest";

import { POSITION_STEP } from "../../src/model/message.ts";
import { matchLoosely, matchReserve, type ReserveSummary } from "../../src/model/reserve.ts";
import { summary } from "./cover-kit.ts";

const reserve = (from: number, to: number, count = to - from + 1): ReserveSummary => ({
  summaryId: "sum_reserve",
  startPosition: from * POSITION_STEP,
  endPosition: to * POSITION_STEP,
  messages: count,
  tokens: 100,
  depth: 1,
  isRoot: false,
});

const spans = [summary(11, 20), summary(21, 30), summary(31, 40)];

test.each<[string, ReserveSummary, number, { from: number; to: number; messages: number } | null]>([
  ["stands for neighbours whose edges it shares", reserve(11, 30), 0, { from: 0, to: 2, messages: 20 }],
  ["stands for one item", reserve(21, 30), 0, { from: 1, to: 2, messages: 10 }],
  ["is refused where it begins inside an item", reserve(15, 30), 0, null],
  ["is refused where it ends inside an item", reserve(11, 25), 0, null],
  ["is refused where it counts other messages", reserve(11, 30, 19), 0, null],
  ["is refused where it stands for nothing here", reserve(41, 50), 0, null],
  [
    "stands for what was not read if it counts all of it",
    reserve(1, 20),
    10,
    { from: -1, to: 1, messages: 20 },
  ],
  ["is refused where it counts only some of what was not read", reserve(1, 20), 11, null],
  [
    "may begin at a hidden row before the first item",
    reserve(9, 20, 10),
    0,
    { from: 0, to: 1, messages: 10 },
  ],
])("a reserve summary %s", (_, summaryOf, before, expected) => {
  expect(matchReserve(summaryOf, spans, before)).toEqual(expected);
});

test("one that lacks rows that came late, or is stale, matches loosely; one that miscounts without being stale does not", () => {
  expect(matchLoosely(reserve(11, 30, 19), spans, 0)).toEqual({ from: 0, to: 2, messages: 20 });
  expect(matchLoosely({ ...reserve(11, 30), isStale: true }, spans, 0)).toEqual({
    from: 0,
    to: 2,
    messages: 20,
  });
  expect(matchLoosely(reserve(11, 30, 21), spans, 0)).toBeNull();
  // Some of what it tells of was hidden since.
  expect(matchLoosely({ ...reserve(11, 30, 21), isStale: true }, spans, 0)).toEqual({
    from: 0,
    to: 2,
    messages: 20,
  });
});
