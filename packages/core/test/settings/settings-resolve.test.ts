import { homedir } from "node:os";
import { join } from "node:path";
import { fc } from "@lossless/testkit/properties.ts";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../src/model/errors.ts";
import {
  explainSetting,
  readSetting,
  resolveSettings,
  setInConfig,
  unsetInConfig,
} from "../../src/settings/settings-resolve.ts";
import type { ResolveInput } from "../../src/settings/settings-resolve.ts";
import { getSetting, SETTING_KEYS } from "../../src/settings/settings.ts";

const HOME = "/home/ada";

const resolve = (input: ResolveInput) => resolveSettings({ ...input, env: { HOME, ...input.env } });

function refusalOf(act: () => unknown): EngineError {
  try {
    act();
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const linesOf = (input: ResolveInput): string[] =>
  refusalOf(() => resolve(input))
    .message.split("\n")
    .slice(1)
    .map((line) => line.replace(/^ {2}- /, ""));

describe("precedence", () => {
  test("an option beats the environment, that the first config, that the second, that the default", () => {
    const options = { source: "--tail", config: { freshTailCount: 1 } };
    const env = { LCM_FRESH_TAIL_COUNT: "2" };
    const config = { freshTailCount: 3 };
    const layers = [{ source: "openclaw.json", config: { freshTailCount: 4 } }];
    const sourceOf = (input: ResolveInput) => {
      const resolved = resolve({ ...input, configSource: "lcm.json" });
      return [resolved.settings.freshTailCount, explainSetting("freshTailCount", resolved).source];
    };
    expect(sourceOf({ options, env, config, layers })).toEqual([1, "option --tail"]);
    expect(sourceOf({ env, config, layers })).toEqual([2, "environment LCM_FRESH_TAIL_COUNT"]);
    expect(sourceOf({ config, layers })).toEqual([3, "config lcm.json"]);
    expect(sourceOf({ layers })).toEqual([4, "config openclaw.json"]);
    expect(sourceOf({})).toEqual([64, "default"]);
  });

  test("parts of an object come from different places", () => {
    const { settings } = resolve({
      env: { LCM_AUTO_ROTATE_SESSION_FILES_RUNTIME: "off" },
      config: { autoRotateSessionFiles: { sizeBytes: 5 } },
      layers: [{ source: "host", config: { autoRotateSessionFiles: { sizeBytes: 6, startup: "rotate" } } }],
    });
    expect(settings.autoRotateSessionFiles).toEqual({
      enabled: true,
      createBackups: false,
      sizeBytes: 5,
      startup: "rotate",
      runtime: "off",
    });
  });

  test("a variable set to nothing counts as not set", () => {
    const { settings } = resolve({
      env: { LCM_LARGE_FILES_DIR: "", LCM_FRESH_TAIL_COUNT: " " },
      stateDir: "/s",
    });
    expect(settings.largeFilesDir).toBe("/s/lcm-files");
    expect(settings.freshTailCount).toBe(64);
  });

  test("an empty list of injected tags means none", () => {
    expect(
      resolve({ env: { LCM_STRIP_INJECTED_CONTEXT_TAGS: "" } }).settings.stripInjectedContextTags,
    ).toEqual([]);
    expect(
      resolve({ env: { LCM_STRIP_INJECTED_CONTEXT_TAGS: "a, b" } }).settings.stripInjectedContextTags,
    ).toEqual(["a", "b"]);
  });
});

describe("older names", () => {
  test("the key wins over its older name in one config, whatever their order, and a notice says so", () => {
    const { settings, notices } = resolve({
      config: { dbPath: "/old.db", databasePath: "/new.db" },
      configSource: "lcm.json",
    });
    expect(settings.databasePath).toBe("/new.db");
    expect(notices).toEqual([
      "dbPath (config lcm.json) is an older name of databasePath: ignored, because databasePath is set too",
    ]);
  });

  test("an older name in a stronger place wins over the key in a weaker one", () => {
    const resolved = resolve({
      config: { dbPath: "/old.db" },
      configSource: "lcm.json",
      layers: [{ source: "host", config: { databasePath: "/new.db" } }],
    });
    expect(resolved.settings.databasePath).toBe("/old.db");
    expect(explainSetting("databasePath", resolved).source).toBe("config lcm.json (as dbPath)");
  });

  test("both variables of sweepMaxDepth beat both config keys, the newer variable first", () => {
    const config = { sweepMaxDepth: 7, incrementalMaxDepth: 8 };
    const older = { LCM_INCREMENTAL_MAX_DEPTH: "5" };
    expect(resolve({ env: older, config }).settings.sweepMaxDepth).toBe(5);
    expect(resolve({ env: { ...older, LCM_SWEEP_MAX_DEPTH: "4" }, config }).settings.sweepMaxDepth).toBe(4);
    expect(resolve({ config }).settings.sweepMaxDepth).toBe(7);
    expect(resolve({ config: { incrementalMaxDepth: 8 } }).settings.sweepMaxDepth).toBe(8);
  });

  test("a key without effect gives one notice, however often it is set in one place", () => {
    const { notices } = resolve({
      config: { transcriptGcEnabled: true, cacheAwareCompaction: { enabled: false } },
      configSource: "lcm.json",
    });
    expect(notices).toHaveLength(2);
    expect(notices[0]).toMatch(/^transcriptGcEnabled \(config lcm\.json\) has no effect: /);
    expect(notices[1]).toMatch(/^cacheAwareCompaction\.enabled \(config lcm\.json\) has no effect/);
  });

  test("nothing set gives no notices", () => {
    expect(resolve({}).notices).toEqual([]);
  });
});

describe("reading the environment", () => {
  test.each([
    ["true", true],
    ["1", true],
    ["YES", true],
    [" on ", true],
    ["false", false],
    ["0", false],
    ["No", false],
    ["off", false],
  ])("the flag %j is %j", (text, expected) => {
    expect(resolve({ env: { LCM_PROMPT_AWARE_EVICTION_ENABLED: text } }).settings.promptAwareEviction).toBe(
      expected,
    );
  });

  test("numbers, lists and providers are read from text", () => {
    const { settings } = resolve({
      env: {
        LCM_CONTEXT_THRESHOLD: ".5",
        LCM_NEW_SESSION_RETAIN_DEPTH: "-1",
        LCM_IGNORE_SESSION_PATTERNS: "agent:*:cron:**, probe,,",
        LCM_FALLBACK_PROVIDERS: "openai/gpt-5, openrouter/qwen/qwen3",
      },
    });
    expect(settings.contextThreshold).toBe(0.5);
    expect(settings.newSessionRetainDepth).toBe(-1);
    expect(settings.ignoreSessionPatterns).toEqual(["agent:*:cron:**", "probe"]);
    expect(settings.fallbackProviders).toEqual([
      { provider: "openai", model: "gpt-5" },
      { provider: "openrouter", model: "qwen/qwen3" },
    ]);
  });

  test("a time zone of the system that we cannot use is passed over with a notice", () => {
    const resolved = resolve({ env: { TZ: ":/etc/localtime" }, config: { timezone: "Asia/Tokyo" } });
    expect(resolved.settings.timezone).toBe("Asia/Tokyo");
    expect(resolved.notices).toHaveLength(1);
    expect(
      resolve({ env: { TZ: "Europe/Paris" }, config: { timezone: "Asia/Tokyo" } }).settings.timezone,
    ).toBe("Europe/Paris");
  });

  test("a misspelt variable is pointed out, a foreign one is not", () => {
    const { notices } = resolve({
      env: { LCM_FRESH_TAIL_COUN: "3", LCM_TUI_WIDTH: "4", LCM_OPENCLAW_DIR: "/x" },
    });
    expect(notices).toEqual([
      "environment LCM_FRESH_TAIL_COUN is not a setting; did you mean LCM_FRESH_TAIL_COUNT?",
    ]);
  });
});

describe("refusals", () => {
  test("all problems are reported at once, each with its place", () => {
    const refusal = refusalOf(() =>
      resolve({
        env: { LCM_FRESH_TAIL_COUNT: "-5" },
        config: { freshTailCont: 3, contextThreshold: 7 },
        configSource: "/a/lcm.json",
      }),
    );
    expect(refusal.code).toBe("config");
    expect(refusal.hint).toBeDefined();
    expect(refusal.message).toBe(
      [
        "cannot read the settings:",
        '  - freshTailCount = "-5" (environment LCM_FRESH_TAIL_COUNT): must be a whole number, at least 1 (default: 64)',
        "  - freshTailCont (config /a/lcm.json): unknown setting; did you mean freshTailCount?",
        "  - contextThreshold = 7 (config /a/lcm.json): must be a number, greater than 0 and at most 1 (default: 0.75)",
      ].join("\n"),
    );
  });

  test.each([
    [{ contextTreshold: 0.5 }, "contextThreshold"],
    [{ FRESHTAILCOUNT: 5 }, "freshTailCount"],
    [{ dbpath: "/x" }, "dbPath"],
    [{ autoRotateSessionFile: {} }, "autoRotateSessionFiles"],
    [{ autoRotateSessionFiles: { sizeByte: 1 } }, "autoRotateSessionFiles.sizeBytes"],
  ])("an unknown key is refused with the nearest known one: %j", (config, nearest) => {
    expect(linesOf({ config })).toEqual([expect.stringContaining(`did you mean ${nearest}?`)]);
  });

  test("a key that resembles nothing is refused without a guess, also a dangerous one", () => {
    expect(linesOf({ config: { zzzzzzzzzz: 1 } })).toEqual(["zzzzzzzzzz (config config): unknown setting"]);
    const hostile = JSON.parse('{"__proto__": 1, "constructor": 2}') as unknown;
    expect(linesOf({ config: hostile })).toHaveLength(2);
  });

  test.each([
    [{ freshTailCount: 0 }],
    [{ freshTailCount: "64" }],
    [{ freshTailCount: 1.5 }],
    [{ freshTailCount: null }],
    [{ freshTailCount: 2 ** 53 }],
    [{ contextThreshold: 0 }],
    [{ contextThreshold: 1.01 }],
    [{ leafMinFanout: 1 }],
    [{ sweepMaxDepth: -2 }],
    [{ fallbackMaxTokens: 63 }],
    [{ maxAssemblyTokenBudget: 999 }],
    [{ largeFileThresholdTokens: 999 }],
    [{ largeFileTokenThreshold: 999 }],
    [{ summaryMaxOverageFactor: 0.9 }],
    [{ enabled: "true" }],
    [{ largeFilesDir: "" }],
    [{ databasePath: " " }],
    [{ hostFallbackMode: "Error" }],
    [{ ignoreSessionPatterns: "a" }],
    [{ ignoreSessionPatterns: [1] }],
    [{ timezone: "Mars/Olympus" }],
    [{ fallbackProviders: [{ provider: "x" }] }],
    [{ fallbackProviders: [{ provider: "x", model: "y", key: "z" }] }],
    [{ redactPatterns: ["("] }],
    [{ redactPatterns: ["@keys", "@key"] }],
    [{ redactPatterns: ["@"] }],
    [{ freshTailMaxTokens: 0 }],
    [{ largeFilesDir: "files" }],
    [{ embedding: { baseUrl: "ftp://x" } }],
    [{ embedding: { model: "" } }],
    [{ autoRotateSessionFiles: true }],
    [{ autoRotateSessionFiles: { startup: "maybe" } }],
    [{ "autoRotateSessionFiles.sizeBytes": 1 }],
    [[]],
    ["text"],
    [null],
  ])("is refused in a config: %j", (config) => {
    expect(linesOf({ config })).toHaveLength(1);
  });

  test.each([
    ["LCM_ENABLED", "maybe"],
    ["LCM_FRESH_TAIL_COUNT", "0x10"],
    ["LCM_FRESH_TAIL_COUNT", "many"],
    ["LCM_FRESH_TAIL_COUNT", "2.5"],
    ["LCM_CONTEXT_THRESHOLD", "Infinity"],
    ["LCM_CONTEXT_THRESHOLD", "7"],
    ["LCM_HOST_FALLBACK_MODE", "none"],
    ["LCM_FALLBACK_PROVIDERS", "gpt-5"],
    ["LCM_EMBEDDING_BASE_URL", "localhost:11434"],
  ])("is refused in the environment: %s=%s", (name, value) => {
    const lines = linesOf({ env: { [name]: value } });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`(environment ${name})`);
  });

  test.each([
    [{}, 2],
    [{ match: {}, contextThreshold: 0.5 }, 1],
    [{ match: { model: "m" } }, 1],
    [{ match: { model: "m" }, contextThreshold: 1.5 }, 1],
    [{ match: { model: "" }, contextThreshold: 0.5 }, 1],
    [{ match: { modl: "m", model: "m" }, contextThreshold: 0.5 }, 1],
    [{ match: { modelContextWindowMin: 9, modelContextWindowMax: 3 }, contextThreshold: 0.5 }, 1],
    [{ match: { model: "m" }, contextThreshold: 0.5, freshTailCount: 0, leafChunkTokens: 0 }, 2],
    [{ match: { model: "m" }, contextThreshold: 0.5, freshTail: 3 }, 1],
    ["rule", 1],
  ])("a threshold rule is checked strictly: %j has %i problems", (rule, count) => {
    const lines = linesOf({ config: { contextThresholdOverrides: [rule] } });
    expect(lines).toHaveLength(count);
    for (const line of lines) expect(line).toMatch(/^contextThresholdOverrides\[0\]/);
  });

  test("passwords in addresses are not repeated", () => {
    const config = { embedding: { baseUrl: "ftp://ada:secret@host" } };
    expect(linesOf({ config })[0]).not.toContain("secret");
  });
});

test("settings that contradict each other are named where nobody asked to replace them", () => {
  const config = { leafChunkTokens: 600, condensedMinFanout: 2, condensedMinFanoutHard: 3 };
  const { settings, notices } = resolveSettings({ env: {}, config, stateDir: "/s" });
  expect(settings).toMatchObject(config);
  expect(notices).toEqual([
    expect.stringContaining("leafChunkTokens = 600: must be greater than leafTargetTokens, 2400"),
    expect.stringContaining("condensedMinFanout = 2: must be at least condensedMinFanoutHard, 3"),
  ]);
});

describe("where a host has to start", () => {
  const tolerate = (config: object, env: Record<string, string> = {}) =>
    resolveSettings({
      env,
      config,
      configSource: "host",
      stateDir: "/s",
      tolerant: true,
      replaceConflicts: true,
    });

  test("what cannot be used is replaced by the default, and each is reported with what is allowed", () => {
    const { settings, defaults, replaced, notices } = tolerate(
      { freshTailMaxTokens: 0, freshTailcount: 9, largeFilesDir: "files", leafMinFanout: "8" },
      { LCM_FRESH_TAIL_COUNT: "many" },
    );
    expect(settings).toEqual(defaults);
    expect(replaced.map(({ key }) => key).sort()).toEqual(
      ["freshTailCount", "freshTailMaxTokens", "freshTailcount", "largeFilesDir", "leafMinFanout"].sort(),
    );
    for (const { message } of replaced) expect(notices).toContain(message);
    expect(replaced.find(({ key }) => key === "freshTailMaxTokens")?.message).toBe(
      "freshTailMaxTokens = 0 (config host): must be a whole number, at least 1 (default: unset); the default is used",
    );
  });

  test("of settings that cannot work together, those that were set go back to their defaults", () => {
    const chunk = tolerate({ leafChunkTokens: 1000, freshTailCount: 9 });
    expect(chunk.settings).toMatchObject({
      leafChunkTokens: 20_000,
      bootstrapMaxTokens: 6000,
      freshTailCount: 9,
    });
    expect(chunk.replaced.map(({ key }) => key)).toEqual(["leafChunkTokens"]);
    const both = tolerate({ leafChunkTokens: 1000, leafTargetTokens: 1000, condensedMinFanoutHard: 5 });
    expect(both.settings).toEqual(both.defaults);
    expect(both.replaced).toHaveLength(3);
    const rule = { match: { model: "m" }, contextThreshold: 0.5, leafChunkTokens: 2400 };
    const rules = tolerate({ contextThresholdOverrides: [rule] });
    expect(rules.settings.contextThresholdOverrides).toEqual([]);
    expect(rules.replaced[0]?.message).toContain(
      "contextThresholdOverrides[0].leafChunkTokens = 2400 (config host): must be greater than leafTargetTokens, 2400",
    );
  });

  test("redaction that cannot work is no matter of defaults", () => {
    const { storingProblems, replaced } = tolerate({ redactPatterns: ["@key"], redactedValues: "never" });
    expect(storingProblems).toHaveLength(2);
    expect(storingProblems[0]).toContain("@keys, @tokens, @cards");
    expect(replaced).toEqual([]);
  });

  test("what a person typed is refused all the same", () => {
    const options = { source: "--db", config: { databasePath: "" } };
    expect(() => resolveSettings({ options, tolerant: true })).toThrow("must be a path, not empty");
  });
});

describe("derived defaults", () => {
  test("the state directory is OPENCLAW_STATE_DIR, else LCM_OPENCLAW_DIR, else ~/.openclaw", () => {
    const both = { OPENCLAW_STATE_DIR: "~/a", LCM_OPENCLAW_DIR: "/b" };
    expect(resolve({ env: both }).stateDir).toBe(join(HOME, "a"));
    expect(resolve({ env: { LCM_OPENCLAW_DIR: "/b", OPENCLAW_STATE_DIR: "" } }).stateDir).toBe("/b");
    expect(resolve({}).stateDir).toBe(join(HOME, ".openclaw"));
    expect(resolveSettings().stateDir).toBe(join(homedir(), ".openclaw"));
    const explained = explainSetting("databasePath", resolve({ env: both }));
    expect(explained).toMatchObject({
      value: join(HOME, "a/lcm.db"),
      source: "derived from OPENCLAW_STATE_DIR",
    });
  });

  test("payload files live beside a database that was put elsewhere", () => {
    const resolved = resolve({ config: { databasePath: "~/kept/x.db" }, stateDir: "/s" });
    expect(resolved.settings.databasePath).toBe(join(HOME, "kept/x.db"));
    expect(resolved.settings.largeFilesDir).toBe(join(HOME, "kept/x-files"));
    expect(explainSetting("largeFilesDir", resolved).source).toBe("derived from databasePath");
    expect(resolved.settings.independentLogFile.file).toBe("/s/logs/lossless-claw.log");
  });

  test("a folder that was set stays where it was set", () => {
    const env = { LCM_DATABASE_PATH: "/w/x.db", LCM_LARGE_FILES_DIR: "~/files" };
    expect(resolve({ env }).settings.largeFilesDir).toBe(join(HOME, "files"));
  });

  test.each(["postgres://ada:secret@host:5432/lcm", ":memory:"])(
    "%s has no folder beside it and is left alone",
    (path) => {
      const { settings } = resolve({ env: { LCM_DATABASE_PATH: path }, stateDir: "/s" });
      expect(settings.databasePath).toBe(path);
      expect(settings.largeFilesDir).toBe("/s/lcm-files");
    },
  );

  test("sizes follow leafChunkTokens", () => {
    const { settings } = resolve({ config: { leafChunkTokens: 30_001 } });
    expect(settings.bootstrapMaxTokens).toBe(9000);
    expect(settings.dynamicLeafChunkTokens.max).toBe(60_002);
    expect(resolve({ config: { leafChunkTokens: 1000 } }).settings.bootstrapMaxTokens).toBe(6000);
  });

  test("a default that was handed out can be changed without changing the next one", () => {
    (resolve({}).settings.ignoreSessionPatterns as string[]).push("x");
    expect(resolve({}).settings.ignoreSessionPatterns).toEqual([]);
  });
});

describe("explain", () => {
  test("shows value, default, source, limits and help", () => {
    const resolved = resolve({ config: { leafChunkTokens: 5 }, configSource: "/a/lcm.json" });
    expect(explainSetting("leafChunkTokens", resolved)).toEqual({
      key: "leafChunkTokens",
      value: 5,
      default: 20_000,
      source: "config /a/lcm.json",
      status: "active",
      help: getSetting("leafChunkTokens").help,
      limits: "a whole number, at least 1",
      env: ["LCM_LEAF_CHUNK_TOKENS"],
      aliases: [],
    });
    expect(explainSetting("bootstrapMaxTokens", resolved)).toMatchObject({
      value: 6000,
      source: "derived from leafChunkTokens",
    });
  });

  test("understands older names and masks passwords", () => {
    const resolved = resolve({ env: { LCM_DATABASE_PATH: "postgres://ada:secret@host/lcm" } });
    expect(explainSetting("dbPath", resolved)).toMatchObject({
      key: "databasePath",
      value: "postgres://ada:***@host/lcm",
    });
  });

  test("refuses an unknown key with the nearest one", () => {
    const refusal = refusalOf(() => explainSetting("freshTailCnt", resolve({})));
    expect(refusal).toMatchObject({ code: "config", hint: "Did you mean freshTailCount?" });
  });

  test("resolving the explained values again gives the same settings", () => {
    const given = fc.record(
      {
        leafChunkTokens: fc.integer({ min: 1, max: 1e9 }),
        contextThreshold: fc.double({ min: 0.01, max: 1, noNaN: true }),
        databasePath: fc.constantFrom("/x/y.db", "~/y.db", ":memory:"),
        freshTailMaxTokens: fc.integer({ min: 1 }),
        ignoreSessionPatterns: fc.array(fc.constantFrom("a:*", "**", "b")),
        recallCue: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(given, (config) => {
        const first = resolve({ config });
        let explained: object = {};
        for (const key of SETTING_KEYS) {
          const { value } = explainSetting(key, first);
          if (value !== null) explained = setInConfig({ ...explained }, key, asText(value));
        }
        expect(resolve({ config: explained }).settings).toEqual(first.settings);
      }),
      { numRuns: 50 },
    );
  });

  test("resolving the explained defaults again gives the same settings", () => {
    const first = resolve({});
    const defaults: Record<string, unknown> = {};
    for (const key of SETTING_KEYS) {
      const [section = key, rest] = key.split(".");
      const { default: value } = explainSetting(key, first);
      if (value === null) continue;
      if (rest === undefined) defaults[key] = value;
      else defaults[section] = { ...(defaults[section] as object), [rest]: value };
    }
    expect(resolve({ config: defaults }).settings).toEqual(first.settings);
  });
});

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

describe("changing a config", () => {
  test.each([
    ["freshTailCount", "32", { freshTailCount: 32 }],
    ["recallCue", "off", { recallCue: false }],
    ["summaryModel", "openai/gpt-5", { summaryModel: "openai/gpt-5" }],
    ["summaryModel", '"openai/gpt-5"', { summaryModel: "openai/gpt-5" }],
    ["summaryModel", "", { summaryModel: "" }],
    ["hostFallbackMode", "error", { hostFallbackMode: "error" }],
    ["ignoreSessionPatterns", "a:*, b", { ignoreSessionPatterns: ["a:*", "b"] }],
    ["ignoreSessionPatterns", '["a,b"]', { ignoreSessionPatterns: ["a,b"] }],
    ["ignoreSessionPatterns", "", { ignoreSessionPatterns: [] }],
    ["redactPatterns", "sk-[a-z]{3,5}", { redactPatterns: ["sk-[a-z]{3,5}"] }],
    ["fallbackProviders", "a/b", { fallbackProviders: [{ provider: "a", model: "b" }] }],
    [
      "fallbackProviders",
      '[{"provider":"a","model":"b"}]',
      { fallbackProviders: [{ provider: "a", model: "b" }] },
    ],
    ["autoRotateSessionFiles.startup", "off", { autoRotateSessionFiles: { startup: "off" } }],
    ["dbPath", "/x.db", { databasePath: "/x.db" }],
    [
      "contextThresholdOverrides",
      '[{"match":{"model":"m"},"contextThreshold":0.5}]',
      { contextThresholdOverrides: [{ match: { model: "m" }, contextThreshold: 0.5 }] },
    ],
  ])("sets %s from the text %j", (key, text, expected) => {
    expect(setInConfig({}, key, text)).toEqual(expected);
  });

  test("keeps what else is there, drops older names, and leaves the given object alone", () => {
    const config = { dbPath: "/old.db", recallCue: false, autoRotateSessionFiles: { sizeBytes: 5 } };
    const copy = structuredClone(config);
    expect(setInConfig(config, "databasePath", "/new.db")).toEqual({
      databasePath: "/new.db",
      recallCue: false,
      autoRotateSessionFiles: { sizeBytes: 5 },
    });
    expect(setInConfig(config, "autoRotateSessionFiles.runtime", "off")).toMatchObject({
      autoRotateSessionFiles: { sizeBytes: 5, runtime: "off" },
    });
    expect(config).toEqual(copy);
  });

  test("refuses an impossible value with the allowed range, an unknown key, and a section that is no object", () => {
    expect(refusalOf(() => setInConfig({}, "freshTailCount", "0")).message).toContain(
      "must be a whole number, at least 1",
    );
    expect(refusalOf(() => setInConfig({}, "contextThresholdOverrides", "x")).message).toContain("as JSON");
    expect(refusalOf(() => setInConfig({}, "freshTail", "1")).hint).toContain("freshTailCount");
    expect(refusalOf(() => setInConfig({ embedding: 3 }, "embedding.model", "m")).message).toContain(
      "not an object",
    );
  });

  test("unsetting removes the key, its older names, and an object left empty", () => {
    const config = { dbPath: "/a", databasePath: "/b", embedding: { model: "m" }, enabled: true };
    expect(unsetInConfig(config, "databasePath")).toEqual({ embedding: { model: "m" }, enabled: true });
    expect(unsetInConfig(config, "embedding.model")).toEqual({
      dbPath: "/a",
      databasePath: "/b",
      enabled: true,
    });
    expect(unsetInConfig({}, "embedding.model")).toEqual({});
    expect(refusalOf(() => unsetInConfig({}, "nope")).code).toBe("config");
  });

  test("what was set is what is read", () => {
    const config = setInConfig({}, "independentLogFile.maxFileBytes", "7");
    expect(readSetting(resolve({ config }).settings, "independentLogFile.maxFileBytes")).toBe(7);
  });
});
