import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { resolveSettings } from "../../src/settings/settings-resolve.ts";
import {
  getSetting,
  listSettings,
  SETTING_GROUPS,
  SETTING_KEYS,
  SETTINGS,
} from "../../src/settings/settings.ts";
import type { SettingKey, Settings } from "../../src/settings/settings.ts";

type Row = [
  key: SettingKey,
  byDefault: unknown,
  env: string | null,
  extra?: { alias?: string; env2?: string },
];

const STATE = "/state";

/** The settings as documented, written out by hand: key, default, variable. */
const DOCUMENTED: readonly Row[] = [
  ["enabled", true, "LCM_ENABLED"],
  ["databasePath", "/state/lcm.db", "LCM_DATABASE_PATH", { alias: "dbPath" }],
  ["largeFilesDir", "/state/lcm-files", "LCM_LARGE_FILES_DIR"],
  ["hostFallbackMode", "capture-only", "LCM_HOST_FALLBACK_MODE"],
  ["ignoreSessionPatterns", [], "LCM_IGNORE_SESSION_PATTERNS"],
  ["statelessSessionPatterns", [], "LCM_STATELESS_SESSION_PATTERNS"],
  ["skipStatelessSessions", true, "LCM_SKIP_STATELESS_SESSIONS"],
  ["newSessionRetainDepth", 2, "LCM_NEW_SESSION_RETAIN_DEPTH"],
  ["contextThreshold", 0.75, "LCM_CONTEXT_THRESHOLD"],
  ["contextThresholdOverrides", [], null],
  ["freshTailCount", 64, "LCM_FRESH_TAIL_COUNT"],
  ["freshTailMaxTokens", null, "LCM_FRESH_TAIL_MAX_TOKENS"],
  ["promptAwareEviction", false, "LCM_PROMPT_AWARE_EVICTION_ENABLED"],
  ["stubLargeToolPayloads", false, "LCM_STUB_LARGE_TOOL_PAYLOADS"],
  ["leafMinFanout", 8, "LCM_LEAF_MIN_FANOUT"],
  ["condensedMinFanout", 4, "LCM_CONDENSED_MIN_FANOUT"],
  ["condensedMinFanoutHard", 2, "LCM_CONDENSED_MIN_FANOUT_HARD"],
  [
    "sweepMaxDepth",
    1,
    "LCM_SWEEP_MAX_DEPTH",
    { alias: "incrementalMaxDepth", env2: "LCM_INCREMENTAL_MAX_DEPTH" },
  ],
  ["leafChunkTokens", 20_000, "LCM_LEAF_CHUNK_TOKENS"],
  ["leafTargetTokens", 2400, "LCM_LEAF_TARGET_TOKENS"],
  ["condensedTargetTokens", 2000, "LCM_CONDENSED_TARGET_TOKENS"],
  ["summaryPrefixTargetTokens", null, "LCM_SUMMARY_PREFIX_TARGET_TOKENS"],
  ["maxSweepIterations", 12, "LCM_MAX_SWEEP_ITERATIONS"],
  ["sweepDeadlineMs", 120_000, "LCM_SWEEP_DEADLINE_MS"],
  ["compactUntilUnderDeadlineMs", 300_000, "LCM_COMPACT_UNTIL_UNDER_DEADLINE_MS"],
  ["bootstrapMaxTokens", 6000, "LCM_BOOTSTRAP_MAX_TOKENS"],
  ["summaryMaxOverageFactor", 3, "LCM_SUMMARY_MAX_OVERAGE_FACTOR"],
  ["fallbackMaxTokens", 512, "LCM_FALLBACK_MAX_TOKENS"],
  ["maxExpandTokens", 4000, "LCM_MAX_EXPAND_TOKENS"],
  ["maxAssemblyTokenBudget", null, "LCM_MAX_ASSEMBLY_TOKEN_BUDGET"],
  [
    "largeFileThresholdTokens",
    25_000,
    "LCM_LARGE_FILE_TOKEN_THRESHOLD",
    { alias: "largeFileTokenThreshold" },
  ],
  ["summaryModel", "", "LCM_SUMMARY_MODEL"],
  ["summaryProvider", "", "LCM_SUMMARY_PROVIDER"],
  ["largeFileSummaryModel", "", "LCM_LARGE_FILE_SUMMARY_MODEL"],
  ["largeFileSummaryProvider", "", "LCM_LARGE_FILE_SUMMARY_PROVIDER"],
  ["expansionModel", "", "LCM_EXPANSION_MODEL"],
  ["expansionProvider", "", "LCM_EXPANSION_PROVIDER"],
  ["fallbackProviders", [], "LCM_FALLBACK_PROVIDERS"],
  ["delegationTimeoutMs", 120_000, "LCM_DELEGATION_TIMEOUT_MS"],
  ["summaryTimeoutMs", 60_000, "LCM_SUMMARY_TIMEOUT_MS"],
  ["summaryCallWindowMs", 600_000, "LCM_SUMMARY_CALL_WINDOW_MS"],
  ["summaryMaxTokensPerWindow", 400_000, "LCM_SUMMARY_MAX_TOKENS_PER_WINDOW"],
  ["summaryMaxCallsPerWindow", null, "LCM_SUMMARY_MAX_CALLS_PER_WINDOW"],
  ["summarySpendBackoffMs", 1_800_000, "LCM_SUMMARY_SPEND_BACKOFF_MS"],
  ["circuitBreakerThreshold", 5, "LCM_CIRCUIT_BREAKER_THRESHOLD"],
  ["circuitBreakerCooldownMs", 1_800_000, "LCM_CIRCUIT_BREAKER_COOLDOWN_MS"],
  ["customInstructions", "", "LCM_CUSTOM_INSTRUCTIONS"],
  ["enableSummaryThinking", true, "LCM_ENABLE_SUMMARY_THINKING"],
  ["timezone", new Intl.DateTimeFormat().resolvedOptions().timeZone, "TZ"],
  ["pruneHeartbeatOk", false, "LCM_PRUNE_HEARTBEAT_OK"],
  [
    "stripInjectedContextTags",
    ["active_memory_plugin", "relevant-memories", "relevant_memories", "hindsight_memories"],
    "LCM_STRIP_INJECTED_CONTEXT_TAGS",
  ],
  ["proactiveThresholdCompactionMode", "deferred", "LCM_PROACTIVE_THRESHOLD_COMPACTION_MODE"],
  ["autoRotateSessionFiles.enabled", true, "LCM_AUTO_ROTATE_SESSION_FILES_ENABLED"],
  ["autoRotateSessionFiles.createBackups", false, "LCM_AUTO_ROTATE_SESSION_FILES_CREATE_BACKUPS"],
  ["autoRotateSessionFiles.sizeBytes", 2_097_152, "LCM_AUTO_ROTATE_SESSION_FILES_SIZE_BYTES"],
  ["autoRotateSessionFiles.startup", "warn", "LCM_AUTO_ROTATE_SESSION_FILES_STARTUP"],
  ["autoRotateSessionFiles.runtime", "warn", "LCM_AUTO_ROTATE_SESSION_FILES_RUNTIME"],
  ["independentLogFile.enabled", true, "LCM_LOG_FILE_ENABLED"],
  ["independentLogFile.file", "/state/logs/lossless-claw.log", "LCM_LOG_FILE"],
  ["independentLogFile.maxFileBytes", 104_857_600, "LCM_LOG_MAX_FILE_BYTES"],
];

const ACCEPTED: readonly Row[] = [
  ["transcriptGcEnabled", false, "LCM_TRANSCRIPT_GC_ENABLED"],
  ["replayFloodThresholdExternal", 3, "LCM_REPLAY_FLOOD_THRESHOLD_EXTERNAL"],
  ["replayFloodThresholdInternal", 32, "LCM_REPLAY_FLOOD_THRESHOLD_INTERNAL"],
  ["compactionLoopMaxConsecutiveFailures", 10, "LCM_COMPACTION_LOOP_MAX_CONSECUTIVE_FAILURES"],
  ["cacheAwareCompaction.enabled", true, "LCM_CACHE_AWARE_COMPACTION_ENABLED"],
  ["cacheAwareCompaction.cacheTTLSeconds", 300, "LCM_CACHE_TTL_SECONDS"],
  ["cacheAwareCompaction.maxColdCacheCatchupPasses", 2, "LCM_MAX_COLD_CACHE_CATCHUP_PASSES"],
  ["cacheAwareCompaction.hotCachePressureFactor", 4, "LCM_HOT_CACHE_PRESSURE_FACTOR"],
  ["cacheAwareCompaction.hotCacheBudgetHeadroomRatio", 0.2, "LCM_HOT_CACHE_BUDGET_HEADROOM_RATIO"],
  ["cacheAwareCompaction.coldCacheObservationThreshold", 3, "LCM_COLD_CACHE_OBSERVATION_THRESHOLD"],
  ["cacheAwareCompaction.criticalBudgetPressureRatio", 0.9, "LCM_CRITICAL_BUDGET_PRESSURE_RATIO"],
  ["dynamicLeafChunkTokens.enabled", true, "LCM_DYNAMIC_LEAF_CHUNK_TOKENS_ENABLED"],
  ["dynamicLeafChunkTokens.max", 40_000, "LCM_DYNAMIC_LEAF_CHUNK_TOKENS_MAX"],
];

const OWN: readonly Row[] = [
  ["spendMaxTokensPerDay", null, "LCM_SPEND_MAX_TOKENS_PER_DAY"],
  ["shareAcrossOwners", false, "LCM_SHARE_ACROSS_OWNERS"],
  ["recallCue", true, "LCM_RECALL_CUE"],
  ["redactPatterns", [], null],
  ["redactedValues", "drop", "LCM_REDACTED_VALUES"],
  ["redactionKeyFile", "", "LCM_REDACTION_KEY_FILE"],
  ["embedding.baseUrl", null, "LCM_EMBEDDING_BASE_URL"],
  ["embedding.model", null, "LCM_EMBEDDING_MODEL"],
  ["embedding.folder", null, "LCM_EMBEDDING_FOLDER"],
  ["embedding.loader", null, "LCM_EMBEDDING_LOADER"],
  ["captureOwner", "main", "LCM_CAPTURE_OWNER"],
  ["captureExclude", [], "LCM_CAPTURE_EXCLUDE"],
];

const valueAt = (settings: Settings, key: string): unknown =>
  key.split(".").reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], settings);

test.each([...DOCUMENTED, ...ACCEPTED, ...OWN])(
  "%s has its default and its variable",
  (key, byDefault, env, extra) => {
    const { settings } = resolveSettings({ stateDir: STATE });
    expect(valueAt(settings, key)).toEqual(byDefault);
    expect(getSetting(key).env).toEqual([env, extra?.env2].filter(Boolean));
    expect(getSetting(key).aliases).toEqual(extra?.alias ? [extra.alias] : []);
  },
);

test("documented keys are active, those without effect are accepted, and no other keys exist", () => {
  for (const [key] of [...DOCUMENTED, ...OWN]) expect(getSetting(key).status, key).toBe("active");
  for (const [key] of ACCEPTED) expect(getSetting(key).status, key).toBe("accepted");
  const expected = [...DOCUMENTED, ...ACCEPTED, ...OWN].map(([key]) => key);
  expect([...SETTING_KEYS].sort()).toEqual(expected.sort());
});

test("every key of our own has its reason in ARCHITECTURE.md, not in its help", () => {
  const reasons = readFileSync(new URL("../../../../ARCHITECTURE.md", import.meta.url), "utf8");
  for (const [key] of OWN) {
    expect(reasons, key).toContain(`\`${key}\``);
    expect(getSetting(key).help, key).not.toMatch(/own key/i);
  }
});

test("every key stands in exactly one group and has help", () => {
  expect(SETTING_GROUPS.flatMap((group) => group.keys).sort()).toEqual([...SETTING_KEYS].sort());
  for (const key of SETTING_KEYS) expect(SETTINGS[key].help.length, key).toBeGreaterThan(5);
});

test("no variable and no older name is used twice", () => {
  const names = SETTING_KEYS.flatMap((key) => [key, ...getSetting(key).env, ...getSetting(key).aliases]);
  expect(new Set(names).size).toBe(names.length);
});

test("the list shows older names with the key they stand for", () => {
  const aliases = listSettings().filter((info) => info.status === "alias");
  expect(aliases.map((info) => [info.key, info.aliasOf])).toEqual([
    ["dbPath", "databasePath"],
    ["largeFileTokenThreshold", "largeFileThresholdTokens"],
    ["incrementalMaxDepth", "sweepMaxDepth"],
  ]);
  expect(listSettings()).toHaveLength(SETTING_KEYS.length + aliases.length);
});

test("values are typed as the table says", () => {
  const { settings } = resolveSettings({ stateDir: STATE });
  const count: number = settings.freshTailCount;
  const bytes: number = settings.autoRotateSessionFiles.sizeBytes;
  const limit: number | null = settings.freshTailMaxTokens;
  const mode: "error" | "capture-only" = settings.hostFallbackMode;
  const endpoint: string | null = settings.embedding.baseUrl;
  // @ts-expect-error a limit that may be unset is not a number yet
  const notYet: number = settings.freshTailMaxTokens;
  // @ts-expect-error unknown keys do not exist
  const unknown = settings.freshTailCont as unknown;
  expect([count, bytes, limit, mode, endpoint, notYet, unknown]).toEqual([
    64,
    2_097_152,
    null,
    "capture-only",
    null,
    null,
    undefined,
  ]);
});
