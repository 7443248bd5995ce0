import { expect, test } from "vitest";
import { compareContexts } from "../../src/context-diff.ts";
import { budgetOfSlider, formatShort, sliderOfBudget } from "../../page/format.ts";

const item = (id: string, tokens = 10): Parameters<typeof compareContexts>[0][number] => ({
  kind: "message",
  ids: [id],
  tokens,
});

test("says what came, what went, what stayed, and how much of the front is the same", () => {
  const diff = compareContexts([item("a"), item("b"), item("c")], [item("a"), item("x", 5), item("c")]);
  expect(diff).toEqual({ added: 1, removed: 1, kept: 2, isNew: [false, true, false], sharedTokens: 10 });
});

test("an appended turn leaves the whole front the same", () => {
  const diff = compareContexts([item("a"), item("b")], [item("a"), item("b"), item("c", 7)]);
  expect(diff).toMatchObject({ added: 1, removed: 0, sharedTokens: 20 });
});

test("the slider goes from 2,000 to 1,000,000 tokens, and back", () => {
  expect([0, 1000].map(budgetOfSlider)).toEqual([2_000, 1_000_000]);
  for (const budget of [2_000, 8_000, 32_000, 200_000, 1_000_000]) {
    expect(Math.abs(budgetOfSlider(sliderOfBudget(budget)) / budget - 1)).toBeLessThan(0.02);
  }
});

test("short numbers have three figures", () => {
  expect([0, 7, 999, 1000, 15_730, 184_000, 1_234_567].map(formatShort)).toEqual([
    "0",
    "7",
    "999",
    "1k",
    "15.7k",
    "184k",
    "1.23M",
  ]);
});
