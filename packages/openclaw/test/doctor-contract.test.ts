import { expect, test } from "vitest";
import {
  findRefusedModels,
  legacyConfigRules,
  normalizeCompatibilityConfig,
  readHostModels,
} from "../src/doctor-contract.ts";

const configure = (entry: Record<string, unknown>) => ({
  gateway: { mode: "local" },
  plugins: { allow: ["lossless-claw"], entries: { "lossless-claw": entry, other: { enabled: true } } },
});

test("a configuration without models of its own needs nothing", () => {
  const cfg = configure({ enabled: true, config: { contextThreshold: 0.8 } });
  expect(normalizeCompatibilityConfig({ cfg })).toEqual({ config: cfg, changes: [] });
  expect(normalizeCompatibilityConfig({ cfg: {} })).toEqual({ config: {}, changes: [] });
});

test("exactly the configured models are allowed, and everything else stays as it is", () => {
  const config = {
    summaryModel: "small-1",
    summaryProvider: "acme",
    expansionModel: "other/big-1",
    fallbackProviders: [{ provider: "acme", model: "small-1" }],
  };
  const cfg = configure({ enabled: true, config, llm: { allowedModels: ["x/y"] } });
  const { config: repaired, changes } = normalizeCompatibilityConfig({ cfg });
  const llm = { allowModelOverride: true, allowedModels: ["x/y", "acme/small-1", "other/big-1"] };
  const subagent = { allowModelOverride: true, allowedModels: ["other/big-1"] };
  expect(repaired).toEqual(configure({ enabled: true, config, llm, subagent }));
  expect(changes).toHaveLength(2);
  expect(findRefusedModels(repaired)).toEqual([]);
});

test("the rule matches only while something is refused", () => {
  const [rule] = legacyConfigRules;
  expect(rule!.match({ config: { summaryModel: "a/b" } })).toBe(true);
  expect(rule!.match({ config: { summaryModel: "a/b" }, llm: { allowModelOverride: true } })).toBe(false);
  expect(rule!.match(undefined)).toBe(false);
});

test("the host's compaction model is known, and needs permission like any other", () => {
  const cfg = {
    ...configure({ enabled: true, llm: { allowModelOverride: true, allowedModels: ["a/b"] } }),
    agents: { defaults: { compaction: { model: "acme/compact-1" } } },
  };
  expect(findRefusedModels(cfg)).toEqual(["acme/compact-1"]);
  const { config: repaired } = normalizeCompatibilityConfig({ cfg });
  expect(readHostModels(cfg).compaction).toEqual({ provider: "acme", model: "compact-1" });
  expect([cfg, repaired].map((one) => readHostModels(one).isAllowed("acme/compact-1"))).toEqual([
    false,
    true,
  ]);
  expect(readHostModels({}).compaction).toBeUndefined();
});
