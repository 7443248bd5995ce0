import { expect, test } from "vitest";
import { resolveThreshold } from "../../src/settings/context-threshold.ts";
import type { ThresholdOverride } from "../../src/settings/setting-types.ts";
import { resolveSettings } from "../../src/settings/settings-resolve.ts";

const withRules = (...rules: readonly ThresholdOverride[]) =>
  resolveSettings({ config: { contextThresholdOverrides: rules } }).settings;

const rule = (match: ThresholdOverride["match"], contextThreshold: number): ThresholdOverride => ({
  match,
  contextThreshold,
});

test("without a rule that matches the general settings hold", () => {
  const settings = withRules(rule({ model: "other" }, 0.2));
  expect(resolveThreshold(settings, { model: "openai/gpt-5" })).toEqual({
    contextThreshold: 0.75,
    freshTailCount: 64,
    leafChunkTokens: 20_000,
    rule: null,
  });
});

test("a rule replaces what it names and leaves the rest", () => {
  const settings = withRules({ match: { model: "gpt-5" }, contextThreshold: 0.2, leafChunkTokens: 9000 });
  expect(resolveThreshold(settings, { model: "openai/gpt-5" })).toEqual({
    contextThreshold: 0.2,
    freshTailCount: 64,
    leafChunkTokens: 9000,
    rule: 0,
  });
});

test.each([
  ["gpt-5", "gpt-5", true],
  ["gpt-5", "openai/gpt-5", true],
  ["openai/gpt-5", "openai/gpt-5", true],
  ["openai/gpt-5", "azure/gpt-5", false],
  ["openai/gpt-5", "gpt-5", false],
  ["gpt-5", "openai/gpt-5-mini", false],
  ["qwen/qwen3", "openrouter/qwen/qwen3", true],
])("a rule for %s meets the model %s: %s", (wanted, model, expected) => {
  const threshold = resolveThreshold(withRules(rule({ model: wanted }, 0.1)), { model });
  expect(threshold.rule === 0).toBe(expected);
});

test("the bounds of a window hold only when the window is known, ends included", () => {
  const settings = withRules(rule({ modelContextWindowMin: 100, modelContextWindowMax: 200 }, 0.1));
  const decidedFor = (contextWindow?: number) => resolveThreshold(settings, { contextWindow }).rule;
  expect(decidedFor(100)).toBe(0);
  expect(decidedFor(200)).toBe(0);
  expect(decidedFor(99)).toBeNull();
  expect(decidedFor(201)).toBeNull();
  expect(decidedFor()).toBeNull();
});

test("all matchers of a rule must hold", () => {
  const settings = withRules(rule({ model: "m", sessionPattern: "agent:*:telegram:**" }, 0.1));
  expect(resolveThreshold(settings, { model: "m", sessionKey: "agent:a:telegram:1:2" }).rule).toBe(0);
  expect(resolveThreshold(settings, { model: "m", sessionKey: "agent:a:discord:1" }).rule).toBeNull();
  expect(resolveThreshold(settings, { sessionKey: "agent:a:telegram:1" }).rule).toBeNull();
});

test("a model outweighs a session pattern, a pattern outweighs a window, and the earlier rule wins a tie", () => {
  const situation = { model: "m", sessionKey: "s", contextWindow: 1000 };
  const windowRule = rule({ modelContextWindowMin: 1, modelContextWindowMax: 2000 }, 0.1);
  const patternRule = rule({ sessionPattern: "*" }, 0.2);
  const modelRule = rule({ model: "m" }, 0.3);
  const patternAndWindow = rule({ sessionPattern: "*", modelContextWindowMax: 2000 }, 0.4);
  const threshold = (...rules: ThresholdOverride[]) =>
    resolveThreshold(withRules(...rules), situation).contextThreshold;

  expect(threshold(windowRule, patternRule)).toBe(0.2);
  expect(threshold(patternAndWindow, modelRule, windowRule)).toBe(0.3);
  expect(threshold(patternRule, patternAndWindow)).toBe(0.4);
  expect(threshold(patternRule, rule({ sessionPattern: "**" }, 0.9))).toBe(0.2);
});
