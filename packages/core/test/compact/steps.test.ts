import { describe, expect, test } from "vitest";
import { startsWith } from "../../src/compact/steps.ts";
import { HIDDEN } from "../../src/model/message.ts";
import type { RunItem } from "../../src/store/folding.ts";
import { message, messages, summary } from "../model/cover-kit.ts";

describe("a run begins the conversation", () => {
  const items = [
    message(1, { hidden: HIDDEN.meta }),
    ...messages(3, {}, 2),
    summary(5, 9),
    ...messages(4, {}, 10),
  ];
  const starts = (n: number, boundary?: number): boolean => {
    const at = items.map(({ startPosition }) => startPosition);
    const boundaries = boundary === undefined ? [] : [{ position: at[boundary] ?? 0, retainDepth: 1 }];
    const run = items.slice(n) as unknown as RunItem[];
    return startsWith({ items, facts: { boundaries }, shownTokens: 0 }, run);
  };

  test("where nothing but hidden messages comes before it", () => {
    expect([0, 1, 2].map((n) => starts(n))).toEqual([true, true, false]);
  });

  test("not after messages that are not folded, or a summary", () => {
    expect([3, 5, 6].map((n) => starts(n))).toEqual([false, false, false]);
  });

  test("also where a boundary divides it from what comes before", () => {
    expect([4, 5, 6].map((n) => starts(n, 5))).toEqual([false, true, false]);
  });
});
