import { resolveSettings } from "@lossless/core";
import { expect, test } from "vitest";
import {
  addEstimates,
  describeEstimate,
  estimateFolding,
  NO_FOLDING,
} from "../src/assemble/fold-estimate.ts";

const { settings } = resolveSettings({ env: {}, config: {} });

test("chats that fit a context cost nothing", () => {
  expect(estimateFolding([{ shownTokens: 10_000 }, { shownTokens: 74_999 }], settings)).toEqual(NO_FOLDING);
  expect(describeEstimate(NO_FOLDING)).toBe("");
});

test("a long chat costs its own length, what is written of it, and the layers above", () => {
  const estimate = estimateFolding([{ shownTokens: 400_000 }, { shownTokens: 50 }], settings);
  expect(estimate.conversations).toBe(1);
  // 20 leaves, 5 summaries of four of them, 1 of four of those.
  expect(estimate.calls).toBe(26);
  expect(estimate.outputTokens).toBe(20 * 2400 + 6 * 2000);
  expect(estimate.inputTokens).toBe(400_000 + 20 * 2400 + 4 * 2000 + 26 * 700);
});

test("what is told is short, and grows with the history", () => {
  const one = estimateFolding([{ shownTokens: 400_000 }], settings);
  expect(describeEstimate(one)).toContain(
    "1 long chat would take about 26 model calls with 474,000 tokens in",
  );
  const many = addEstimates(one, estimateFolding([{ shownTokens: 9_000_000 }], settings));
  expect(describeEstimate(many)).toMatch(/2 long chats .* million tokens in/);
});
