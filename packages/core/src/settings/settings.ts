/**
 * Every setting, once. The reader of environment and config, `lcm config`, the plugin's schema and docs/configuration.md all come from this
 * table: key, value type, default, environment names, older names, status and one line of help. The type `Settings` is inferred from it, so
 * that a key cannot be in one and missing from the other.
 */
import { join } from "node:path";
import { filesDirBeside } from "./files-dir.ts";
import {
  absolutePathType,
  booleanType,
  choiceType,
  expressionsType,
  filledTextType,
  integerType,
  listType,
  numberType,
  overridesType,
  pathType,
  providersType,
  textType,
  timezoneType,
  urlType,
} from "./setting-types.ts";
import type { NumberLimits, ProviderModel, ThresholdOverride, ValueType } from "./setting-types.ts";

/** What derived defaults are computed from. */
export interface DeriveContext {
  readonly stateDir: string;
  /** The source of the state directory: a variable's name, or words. */
  readonly stateDirFrom: string;
  /** The database path if it was set; null when it is itself a default. */
  readonly givenDatabasePath: string | null;
  readonly leafChunkTokens: number;
  /** Whether `summaryMaxCallsPerWindow` was set. */
  readonly limitsSummaryCalls: boolean;
  readonly systemTimezone: string;
}

export interface Derived<T> {
  readonly text: string;
  readonly compute: (context: DeriveContext) => { readonly value: T; readonly from: string };
}

export type SettingDefault<T> =
  | { readonly kind: "fixed"; readonly value: T }
  /** The value is null: no limit, or decided where it is used, as `text` says. */
  | { readonly kind: "unset"; readonly text: string }
  | ({ readonly kind: "derived" } & Derived<T>);

export interface Setting<T> {
  readonly type: ValueType<NonNullable<T>>;
  readonly default: SettingDefault<T>;
  /** Environment variables, the preferred one first. */
  readonly env: readonly string[];
  /** Older names of the key. */
  readonly aliases: readonly string[];
  /** `accepted` keys are read so that older configurations load; they do nothing. */
  readonly status: "active" | "accepted";
  readonly help: string;
  /** Initially hidden in the host's settings page. */
  readonly advanced: boolean;
  /** An empty variable means an empty list here; everywhere else it means "not set". */
  readonly emptyEnvironmentMeansNone: boolean;
  /** The variable belongs to the system: a value we cannot use is skipped with a notice, not refused. */
  readonly environmentIsShared: boolean;
}

interface RowOptions {
  readonly env?: string | readonly string[];
  readonly aliases?: readonly string[];
  readonly accepted?: true;
  readonly basic?: true;
  readonly emptyEnvironmentMeansNone?: true;
  readonly environmentIsShared?: true;
  readonly help: string;
}

type DefaultArgument<T> = T | Derived<T>;

function row<T>(
  type: ValueType<NonNullable<T>>,
  byDefault: SettingDefault<T>,
  options: RowOptions,
): Setting<T> {
  return {
    type,
    default: byDefault,
    env: typeof options.env === "string" ? [options.env] : (options.env ?? []),
    aliases: options.aliases ?? [],
    status: options.accepted ? "accepted" : "active",
    help: options.help,
    advanced: !options.basic,
    emptyEnvironmentMeansNone: options.emptyEnvironmentMeansNone ?? false,
    environmentIsShared: options.environmentIsShared ?? false,
  };
}

const fixed = <T>(value: T): SettingDefault<T> => ({ kind: "fixed", value });
const unset = (text = "unset"): SettingDefault<never> => ({ kind: "unset", text });

function isDerived<T>(value: DefaultArgument<T>): value is Derived<T> {
  return typeof value === "object" && value !== null && "compute" in value;
}

const toDefault = <T>(value: DefaultArgument<T>): SettingDefault<T> =>
  isDerived(value) ? { kind: "derived", ...value } : fixed(value);

const flag = (value: boolean, options: RowOptions): Setting<boolean> =>
  row(booleanType(), fixed(value), options);

const whole = (value: DefaultArgument<number>, options: RowOptions & NumberLimits): Setting<number> =>
  row(integerType(options), toDefault(value), options);

const optionalWhole = (options: RowOptions & NumberLimits & { unset?: string }): Setting<number | null> =>
  row<number | null>(integerType(options), unset(options.unset), options);

const number = (value: number, options: RowOptions & NumberLimits): Setting<number> =>
  row(numberType(options), fixed(value), options);

const text = (options: RowOptions): Setting<string> => row(textType(), fixed(""), options);

const path = (
  value: Derived<string>,
  options: RowOptions,
  type: ValueType<string> = pathType(),
): Setting<string> => row(type, toDefault(value), options);

const choice = <const C extends string>(
  choices: readonly C[],
  value: NoInfer<C>,
  options: RowOptions,
): Setting<C> => row<C>(choiceType(choices) as ValueType<NonNullable<C>>, fixed<C>(value), options);

const list = (value: readonly string[], options: RowOptions): Setting<readonly string[]> =>
  row(listType(), fixed(value), options);

const inStateDir = (...names: readonly string[]): Derived<string> => ({
  text: `\`<state>/${names.join("/")}\``,
  compute: ({ stateDir, stateDirFrom }) => ({ value: join(stateDir, ...names), from: stateDirFrom }),
});

/** Payload files stay beside a database that was moved, so that moving one folder moves the archive. */
const besideDatabase: Derived<string> = {
  text: "`<state>/lcm-files`; for a database whose path is set, a folder of its own beside it (`notes-files` for `notes.db`)",
  compute(context) {
    const database = context.givenDatabasePath;
    if (database === null || !isDatabaseFile(database)) return inStateDir("lcm-files").compute(context);
    return { value: filesDirBeside(database), from: "databasePath" };
  },
};

/** False for a server's address and for an in-memory database: neither has a folder beside it. */
function isDatabaseFile(databasePath: string): boolean {
  return !/^[a-z][a-z0-9+.-]+:\/\//i.test(databasePath) && databasePath !== ":memory:";
}

const FORK_SHOWS_AT_LEAST_TOKENS = 6000;
const FORK_SHARE_OF_CHUNK = 0.3;

/** About twenty full chunks: more than a busy chat folds in ten minutes, little enough to stop a loop. */
const SUMMARY_TOKENS_PER_WINDOW = 400_000;

const GENERAL = {
  enabled: flag(true, {
    env: "LCM_ENABLED",
    basic: true,
    help: "Store messages and manage the context. Off: nothing is stored, and the host compacts.",
  }),
  databasePath: path(inStateDir("lcm.db"), {
    env: "LCM_DATABASE_PATH",
    aliases: ["dbPath"],
    basic: true,
    help: "Path of the archive, a SQLite file; or its address, such as sqlite:/folder/lcm.db or postgres://user@host/database.",
  }),
  largeFilesDir: path(
    besideDatabase,
    {
      env: "LCM_LARGE_FILES_DIR",
      help: "Folder for payloads too large for the database. For an archive on a server they are in the database, or in the folder that its address names (`files=`).",
    },
    absolutePathType(),
  ),
  largeFileThresholdTokens: whole(25_000, {
    min: 1000,
    env: "LCM_LARGE_FILE_TOKEN_THRESHOLD",
    aliases: ["largeFileTokenThreshold"],
    help: "Store payloads of at least this many tokens as files, with a short description in the message.",
  }),
  hostFallbackMode: choice(["error", "capture-only"], "capture-only", {
    env: "LCM_HOST_FALLBACK_MODE",
    help: "On a host without context engines: `error` refuses to start, `capture-only` only stores messages.",
  }),
  timezone: row(
    timezoneType(),
    toDefault<string>({
      text: "the system's",
      compute: ({ systemTimezone }) => ({ value: systemTimezone, from: "the system" }),
    }),
    {
      env: "TZ",
      environmentIsShared: true,
      basic: true,
      help: "Time zone for times in summaries and command output.",
    },
  ),
  redactPatterns: row<readonly string[]>(expressionsType(), fixed<readonly string[]>([]), {
    help: "Regular expressions. Matching text is replaced before it is stored. There is no environment variable, because expressions may contain commas.",
  }),
  redactedValues: choice(["drop", "seal", "seal-or-drop"], "drop", {
    env: "LCM_REDACTED_VALUES",
    help: "What to do with redacted text: `drop` discards it, `seal` encrypts it in the vault and refuses to store without a key, `seal-or-drop` drops it without a key.",
  }),
  redactionKeyFile: text({
    env: "LCM_REDACTION_KEY_FILE",
    help: "File with the vault key, readable only by you: 32 bytes in hexadecimal or base64. If unset, the key is read from `LCM_REDACTION_KEY`.",
  }),
} as const;

const SESSIONS = {
  ignoreSessionPatterns: list([], {
    env: "LCM_IGNORE_SESSION_PATTERNS",
    basic: true,
    help: "Sessions that are not stored at all.",
  }),
  statelessSessionPatterns: list([], {
    env: "LCM_STATELESS_SESSION_PATTERNS",
    basic: true,
    help: "Sessions that may read the archive but never write to it.",
  }),
  captureOwner: row<string>(filledTextType(), fixed("main"), {
    env: "LCM_CAPTURE_OWNER",
    help: "Owner of what `lcm watch` stores.",
  }),
  captureExclude: list([], {
    env: "LCM_CAPTURE_EXCLUDE",
    help: "What `lcm watch` must not store: globs for folders (with all below) or transcript files, or session ids.",
  }),
  skipStatelessSessions: flag(true, {
    env: "LCM_SKIP_STATELESS_SESSIONS",
    help: "Apply `statelessSessionPatterns`. Off: those sessions are stored like any other.",
  }),
  newSessionRetainDepth: whole(2, {
    min: -1,
    env: "LCM_NEW_SESSION_RETAIN_DEPTH",
    help: "After `/new`, keep summaries of this depth and deeper visible; 0 keeps every summary, −1 keeps everything.",
  }),
  bootstrapMaxTokens: whole(
    {
      text: "30 % of `leafChunkTokens`, at least 6000",
      compute: ({ leafChunkTokens }) => ({
        value: Math.max(FORK_SHOWS_AT_LEAST_TOKENS, Math.floor(FORK_SHARE_OF_CHUNK * leafChunkTokens)),
        from: "leafChunkTokens",
      }),
    },
    {
      min: 1,
      env: "LCM_BOOTSTRAP_MAX_TOKENS",
      help: "Tokens of the parent's history that a forked session shows at its start. All of the history is stored.",
    },
  ),
  pruneHeartbeatOk: flag(false, {
    env: "LCM_PRUNE_HEARTBEAT_OK",
    help: "Hide heartbeat turns that reported nothing. Nothing is deleted.",
  }),
  shareAcrossOwners: flag(false, {
    env: "LCM_SHARE_ACROSS_OWNERS",
    help: "Let every agent search what other agents stored.",
  }),
} as const;

const CONTEXT = {
  contextThreshold: number(0.75, {
    above: 0,
    max: 1,
    env: "LCM_CONTEXT_THRESHOLD",
    basic: true,
    help: "Share of the token budget at which older messages are folded into summaries.",
  }),
  contextThresholdOverrides: row<readonly ThresholdOverride[]>(
    overridesType(),
    fixed<readonly ThresholdOverride[]>([]),
    {
      help: "Other thresholds for some models, sessions or window sizes; the most specific matching rule wins.",
    },
  ),
  freshTailCount: whole(64, {
    min: 1,
    env: "LCM_FRESH_TAIL_COUNT",
    basic: true,
    help: "Number of newest messages that are never folded, up to `freshTailMaxTokens`.",
  }),
  freshTailMaxTokens: row<number | null>(
    // Hosts check the schema before they start; the 0 of an older configuration must not prevent that.
    { ...integerType({ min: 1 }), schema: integerType({ min: 0 }).schema },
    unset(),
    {
      env: "LCM_FRESH_TAIL_MAX_TOKENS",
      help: "Maximum tokens of these newest messages. Unset: 30 % of the budget, or of the target where one is given. A context may show more of them if there is room.",
    },
  ),
  maxAssemblyTokenBudget: optionalWhole({
    min: 1000,
    env: "LCM_MAX_ASSEMBLY_TOKEN_BUDGET",
    help: "Maximum tokens of an assembled context, whatever the host's budget.",
  }),
  promptAwareEviction: flag(false, {
    env: "LCM_PROMPT_AWARE_EVICTION_ENABLED",
    help: "When the budget is short, prefer older summaries that match the newest user message before the anchor.",
  }),
  stubLargeToolPayloads: flag(false, {
    env: "LCM_STUB_LARGE_TOOL_PAYLOADS",
    help: "Show large tool results as a short reference that can be opened.",
  }),
  recallCue: flag(true, {
    env: "LCM_RECALL_CUE",
    help: "Append a few cited lines that match the current prompt to the context.",
  }),
} as const;

const FOLDING = {
  proactiveThresholdCompactionMode: choice(["deferred", "inline", "workers"], "deferred", {
    env: "LCM_PROACTIVE_THRESHOLD_COMPACTION_MODE",
    help: "When to fold at the threshold: `deferred` after the turn in the background, `inline` before the turn ends, `workers` not in this program but by `lcm worker`.",
  }),
  leafChunkTokens: whole(20_000, {
    min: 1,
    env: "LCM_LEAF_CHUNK_TOKENS",
    help: "Tokens of messages that go into one summary.",
  }),
  leafTargetTokens: whole(2400, {
    min: 1,
    env: "LCM_LEAF_TARGET_TOKENS",
    help: "Target length of a summary of messages, in tokens.",
  }),
  condensedTargetTokens: whole(2000, {
    min: 1,
    env: "LCM_CONDENSED_TARGET_TOKENS",
    help: "Target length of a summary of summaries, in tokens.",
  }),
  leafMinFanout: whole(8, {
    min: 2,
    env: "LCM_LEAF_MIN_FANOUT",
    help: "Minimum number of messages for a summary, and of message summaries for condensing.",
  }),
  condensedMinFanout: whole(4, {
    min: 2,
    env: "LCM_CONDENSED_MIN_FANOUT",
    help: "Minimum number of deeper summaries for condensing.",
  }),
  condensedMinFanoutHard: whole(2, {
    min: 2,
    env: "LCM_CONDENSED_MIN_FANOUT_HARD",
    help: "The same minimum when the context does not fit otherwise.",
  }),
  sweepMaxDepth: whole(1, {
    min: -1,
    env: ["LCM_SWEEP_MAX_DEPTH", "LCM_INCREMENTAL_MAX_DEPTH"],
    aliases: ["incrementalMaxDepth"],
    help: "Maximum depth of a routine sweep; 0 makes summaries of messages only, −1 has no limit.",
  }),
  summaryPrefixTargetTokens: optionalWhole({
    min: 1,
    unset:
      "half the threshold, at most `leafChunkTokens`, less where a full tail leaves no room to grow, at least `condensedTargetTokens`",
    env: "LCM_SUMMARY_PREFIX_TARGET_TOKENS",
    help: "Condense while the summaries before the newest messages use more tokens than this.",
  }),
  maxSweepIterations: whole(12, {
    min: 1,
    env: "LCM_MAX_SWEEP_ITERATIONS",
    help: "Maximum passes in one sweep. A fold runs as many sweeps as it needs to reach its target.",
  }),
  sweepDeadlineMs: whole(120_000, {
    min: 1,
    env: "LCM_SWEEP_DEADLINE_MS",
    help: "Time limit of a fold at the threshold.",
  }),
  compactUntilUnderDeadlineMs: whole(300_000, {
    min: 1,
    env: "LCM_COMPACT_UNTIL_UNDER_DEADLINE_MS",
    help: "Time limit of a forced fold or a fold to a target; the host may end it earlier.",
  }),
} as const;

const SUMMARIES = {
  summaryModel: text({
    env: "LCM_SUMMARY_MODEL",
    basic: true,
    help: "Model that writes summaries, optionally as `provider/model`. Empty: the host chooses.",
  }),
  summaryProvider: text({
    env: "LCM_SUMMARY_PROVIDER",
    basic: true,
    help: "Provider of `summaryModel`, if the model's name does not include it.",
  }),
  largeFileSummaryModel: text({
    env: "LCM_LARGE_FILE_SUMMARY_MODEL",
    help: "Model that describes large text and data files in about 200 tokens when their message is stored. Empty: files are described by type, without a model. Images and imported files never use a model.",
  }),
  largeFileSummaryProvider: text({
    env: "LCM_LARGE_FILE_SUMMARY_PROVIDER",
    help: "Provider of `largeFileSummaryModel`.",
  }),
  fallbackProviders: row<readonly ProviderModel[]>(providersType(), fixed<readonly ProviderModel[]>([]), {
    env: "LCM_FALLBACK_PROVIDERS",
    help: "Models to try, in order, when the first one fails.",
  }),
  customInstructions: text({
    env: "LCM_CUSTOM_INSTRUCTIONS",
    basic: true,
    help: "Extra instructions appended to every summary prompt.",
  }),
  enableSummaryThinking: flag(true, {
    env: "LCM_ENABLE_SUMMARY_THINKING",
    help: "Let the model reason briefly before it writes a summary.",
  }),
  stripInjectedContextTags: list(
    ["active_memory_plugin", "relevant-memories", "relevant_memories", "hindsight_memories"],
    {
      env: "LCM_STRIP_INJECTED_CONTEXT_TAGS",
      emptyEnvironmentMeansNone: true,
      help: "Tags of blocks that other plugins inject. They are left out of summaries; stored messages keep them.",
    },
  ),
  summaryMaxOverageFactor: number(3, {
    min: 1,
    env: "LCM_SUMMARY_MAX_OVERAGE_FACTOR",
    help: "Reject a summary longer than this many times its target.",
  }),
  fallbackMaxTokens: whole(512, {
    min: 64,
    env: "LCM_FALLBACK_MAX_TOKENS",
    help: "Length of the extractive summary that is used when no model's summary was accepted.",
  }),
} as const;

const SPEND = {
  spendMaxTokensPerDay: optionalWhole({
    min: 0,
    env: "LCM_SPEND_MAX_TOKENS_PER_DAY",
    basic: true,
    help: "Maximum tokens that models may use per day. At the cap, folding continues without a model.",
  }),
  summaryTimeoutMs: whole(60_000, {
    min: 1,
    env: "LCM_SUMMARY_TIMEOUT_MS",
    help: "Cancel a summary call that takes longer than this.",
  }),
  summaryCallWindowMs: whole(600_000, {
    min: 1,
    env: "LCM_SUMMARY_CALL_WINDOW_MS",
    help: "Length of the window in which tokens and calls of summaries are counted.",
  }),
  summaryMaxTokensPerWindow: row<number | null>(
    integerType({ min: 1 }),
    toDefault<number | null>({
      text: "400000; no limit while `summaryMaxCallsPerWindow` is set",
      compute: ({ limitsSummaryCalls }) => ({
        value: limitsSummaryCalls ? null : SUMMARY_TOKENS_PER_WINDOW,
        from: "summaryMaxCallsPerWindow",
      }),
    }),
    {
      env: "LCM_SUMMARY_MAX_TOKENS_PER_WINDOW",
      help: "Maximum tokens of summary calls per window. When they are used up, summaries are extractive until the window has room again.",
    },
  ),
  summaryMaxCallsPerWindow: optionalWhole({
    min: 1,
    env: "LCM_SUMMARY_MAX_CALLS_PER_WINDOW",
    help: "Maximum summary calls per window. Beyond it, summaries are extractive for `summarySpendBackoffMs`.",
  }),
  summarySpendBackoffMs: whole(1_800_000, {
    min: 1,
    env: "LCM_SUMMARY_SPEND_BACKOFF_MS",
    help: "How long no model is called after `summaryMaxCallsPerWindow` was reached.",
  }),
  circuitBreakerThreshold: whole(5, {
    min: 1,
    env: "LCM_CIRCUIT_BREAKER_THRESHOLD",
    help: "Consecutive failures after which a provider is paused.",
  }),
  circuitBreakerCooldownMs: whole(1_800_000, {
    min: 1,
    env: "LCM_CIRCUIT_BREAKER_COOLDOWN_MS",
    help: "How long a provider is paused.",
  }),
} as const;

const RECALL = {
  maxExpandTokens: whole(4000, {
    min: 1,
    env: "LCM_MAX_EXPAND_TOKENS",
    help: "Maximum tokens that one expansion returns.",
  }),
  expansionModel: text({
    env: "LCM_EXPANSION_MODEL",
    help: "Model that answers questions about the past. Empty: the host chooses.",
  }),
  expansionProvider: text({
    env: "LCM_EXPANSION_PROVIDER",
    help: "Provider of `expansionModel`, if the model's name does not include it.",
  }),
  delegationTimeoutMs: whole(120_000, {
    min: 1,
    env: "LCM_DELEGATION_TIMEOUT_MS",
    help: "Time limit of such an answer; what was found until then is returned.",
  }),
  "embedding.baseUrl": row<string | null>(urlType(), unset(), {
    env: "LCM_EMBEDDING_BASE_URL",
    help: "Endpoint that turns text into vectors (OpenAI-compatible or Ollama). Unset: vector search is off.",
  }),
  "embedding.model": row<string | null>(filledTextType(), unset(), {
    env: "LCM_EMBEDDING_MODEL",
    help: "Embedding model at that endpoint, or the package or name of a local one.",
  }),
  "embedding.folder": row<string | null>(pathType(), unset(), {
    env: "LCM_EMBEDDING_FOLDER",
    help: "Folder with an installed local embedding model, instead of an endpoint. Nothing is downloaded.",
  }),
  "embedding.loader": row<string | null>(filledTextType(), unset(), {
    env: "LCM_EMBEDDING_LOADER",
    help: "Package in that folder that loads the model, such as `@energetic-ai/embeddings`.",
  }),
} as const;

const ROTATION = ["rotate", "warn", "off"] as const;

const FILES = {
  "autoRotateSessionFiles.enabled": flag(true, {
    env: "LCM_AUTO_ROTATE_SESSION_FILES_ENABLED",
    help: "Check for session files of the host that have grown too large. OpenClaw 2026.9.6 keeps transcripts in a database; this applies to files of earlier versions and of other hosts.",
  }),
  "autoRotateSessionFiles.createBackups": flag(false, {
    env: "LCM_AUTO_ROTATE_SESSION_FILES_CREATE_BACKUPS",
    help: "Back up the archive before a session file is rotated.",
  }),
  "autoRotateSessionFiles.sizeBytes": whole(2_097_152, {
    min: 1,
    env: "LCM_AUTO_ROTATE_SESSION_FILES_SIZE_BYTES",
    help: "Size above which a session file is too large.",
  }),
  "autoRotateSessionFiles.startup": choice(ROTATION, "warn", {
    env: "LCM_AUTO_ROTATE_SESSION_FILES_STARTUP",
    help: "What to do with large files at start. A host's transcript is rewritten only with `rotate`.",
  }),
  "autoRotateSessionFiles.runtime": choice(ROTATION, "warn", {
    env: "LCM_AUTO_ROTATE_SESSION_FILES_RUNTIME",
    help: "What to do with large files when a session ends.",
  }),
  "independentLogFile.enabled": flag(true, {
    env: "LCM_LOG_FILE_ENABLED",
    help: "Write the plugin's own log file beside the host's: events and warnings, no message text.",
  }),
  "independentLogFile.file": path(
    inStateDir("logs", "lossless-claw.log"),
    {
      env: "LCM_LOG_FILE",
      help: "Path of the log file.",
    },
    absolutePathType(),
  ),
  "independentLogFile.maxFileBytes": whole(104_857_600, {
    min: 1,
    env: "LCM_LOG_MAX_FILE_BYTES",
    help: "Size at which a new log file is started; the five previous ones are kept.",
  }),
} as const;

const OLDER = {
  transcriptGcEnabled: flag(false, {
    env: "LCM_TRANSCRIPT_GC_ENABLED",
    accepted: true,
    help: "Transcripts belong to the host and are not rewritten.",
  }),
  replayFloodThresholdExternal: whole(3, {
    min: 1,
    env: "LCM_REPLAY_FLOOD_THRESHOLD_EXTERNAL",
    accepted: true,
    help: "Messages are identified by id, so a replay adds nothing.",
  }),
  replayFloodThresholdInternal: whole(32, {
    min: 1,
    env: "LCM_REPLAY_FLOOD_THRESHOLD_INTERNAL",
    accepted: true,
    help: "Messages are identified by id, so a replay adds nothing.",
  }),
  compactionLoopMaxConsecutiveFailures: whole(10, {
    min: 0,
    env: "LCM_COMPACTION_LOOP_MAX_CONSECUTIVE_FAILURES",
    accepted: true,
    help: "Assembling never folds, so it cannot loop.",
  }),
  "cacheAwareCompaction.enabled": flag(true, {
    env: "LCM_CACHE_AWARE_COMPACTION_ENABLED",
    accepted: true,
    help: "The front of the context is always kept stable for the provider's cache.",
  }),
  "cacheAwareCompaction.cacheTTLSeconds": whole(300, {
    env: "LCM_CACHE_TTL_SECONDS",
    accepted: true,
    help: "Folding does not wait for a cache to expire.",
  }),
  "cacheAwareCompaction.maxColdCacheCatchupPasses": whole(2, {
    env: "LCM_MAX_COLD_CACHE_CATCHUP_PASSES",
    accepted: true,
    help: "Folding does not depend on the state of a cache.",
  }),
  "cacheAwareCompaction.hotCachePressureFactor": number(4, {
    env: "LCM_HOT_CACHE_PRESSURE_FACTOR",
    accepted: true,
    help: "Folding does not depend on the state of a cache.",
  }),
  "cacheAwareCompaction.hotCacheBudgetHeadroomRatio": number(0.2, {
    env: "LCM_HOT_CACHE_BUDGET_HEADROOM_RATIO",
    accepted: true,
    help: "Folding does not depend on the state of a cache.",
  }),
  "cacheAwareCompaction.coldCacheObservationThreshold": whole(3, {
    env: "LCM_COLD_CACHE_OBSERVATION_THRESHOLD",
    accepted: true,
    help: "Folding does not depend on the state of a cache.",
  }),
  "cacheAwareCompaction.criticalBudgetPressureRatio": number(0.9, {
    env: "LCM_CRITICAL_BUDGET_PRESSURE_RATIO",
    accepted: true,
    help: "Folding does not depend on the state of a cache.",
  }),
  "dynamicLeafChunkTokens.enabled": flag(true, {
    env: "LCM_DYNAMIC_LEAF_CHUNK_TOKENS_ENABLED",
    accepted: true,
    help: "`leafChunkTokens` is used as it is.",
  }),
  "dynamicLeafChunkTokens.max": whole(
    {
      text: "2 × `leafChunkTokens`",
      compute: ({ leafChunkTokens }) => ({ value: 2 * leafChunkTokens, from: "leafChunkTokens" }),
    },
    {
      env: "LCM_DYNAMIC_LEAF_CHUNK_TOKENS_MAX",
      accepted: true,
      help: "`leafChunkTokens` is used as it is.",
    },
  ),
} as const;

export const SETTINGS = {
  ...GENERAL,
  ...SESSIONS,
  ...CONTEXT,
  ...FOLDING,
  ...SUMMARIES,
  ...SPEND,
  ...RECALL,
  ...FILES,
  ...OLDER,
} as const;

type Table = typeof SETTINGS;

/** A key as written on a command line: `freshTailCount`, `autoRotateSessionFiles.sizeBytes`. */
export type SettingKey = keyof Table;

type ValueOf<S> = S extends Setting<infer T> ? T : never;
type SectionOf<K> = K extends `${infer Section}.${string}` ? Section : never;

/** All values, nested as in a config file: `settings.freshTailCount`, `settings.autoRotateSessionFiles.sizeBytes`. */
export type Settings = {
  readonly [K in SettingKey as K extends `${string}.${string}` ? never : K]: ValueOf<Table[K]>;
} & {
  readonly [Section in SectionOf<SettingKey>]: {
    readonly [K in SettingKey as K extends `${Section}.${infer Rest}` ? Rest : never]: ValueOf<Table[K]>;
  };
};

export const SETTING_KEYS: readonly SettingKey[] = Object.keys(SETTINGS) as SettingKey[];

/** The table by subject, in the order of the docs. */
export const SETTING_GROUPS: readonly { readonly title: string; readonly keys: readonly SettingKey[] }[] = [
  { title: "Storage and general", keys: keysOf(GENERAL) },
  { title: "Sessions", keys: keysOf(SESSIONS) },
  { title: "Context", keys: keysOf(CONTEXT) },
  { title: "Folding", keys: keysOf(FOLDING) },
  { title: "Summaries and models", keys: keysOf(SUMMARIES) },
  { title: "Spend and failures", keys: keysOf(SPEND) },
  { title: "Recall", keys: keysOf(RECALL) },
  { title: "The host's session files, and the log", keys: keysOf(FILES) },
  { title: "Kept for older configurations", keys: keysOf(OLDER) },
];

function keysOf(group: Partial<Table>): readonly SettingKey[] {
  return Object.keys(group) as SettingKey[];
}

/** Older names, each with its key. */
export const SETTING_ALIASES: ReadonlyMap<string, SettingKey> = new Map(
  SETTING_KEYS.flatMap((key) => SETTINGS[key].aliases.map((alias) => [alias, key] as const)),
);

export function getSetting(key: SettingKey): Setting<unknown> {
  return SETTINGS[key] as Setting<unknown>;
}

/** The key for a name: itself, or the key it is an older name of; null for an unknown name. */
export function canonicalKey(name: string): SettingKey | null {
  if (Object.hasOwn(SETTINGS, name)) return name as SettingKey;
  return SETTING_ALIASES.get(name) ?? null;
}

export interface SettingInfo {
  readonly key: string;
  readonly group: string;
  readonly type: string;
  readonly limits: string;
  readonly default: string;
  readonly env: readonly string[];
  readonly aliases: readonly string[];
  readonly status: "active" | "alias" | "accepted";
  /** For an alias, the key to use instead. */
  readonly aliasOf: SettingKey | null;
  readonly help: string;
}

/** Every key and every older name, by subject. */
export function listSettings(): readonly SettingInfo[] {
  return SETTING_GROUPS.flatMap(({ title, keys }) => keys.flatMap((key) => describeKey(key, title)));
}

function describeKey(key: SettingKey, group: string): SettingInfo[] {
  const setting = getSetting(key);
  const info: SettingInfo = {
    key,
    group,
    type: setting.type.name,
    limits: describeLimits(setting),
    default: describeDefault(setting),
    env: setting.env,
    aliases: setting.aliases,
    status: setting.status,
    aliasOf: null,
    help: setting.help,
  };
  const olderNames = setting.aliases.map((alias): SettingInfo => ({
    ...info,
    key: alias,
    env: [],
    aliases: [],
    status: "alias",
    aliasOf: key,
    help: `Older name of \`${key}\`, which wins when both are set.`,
  }));
  return [info, ...olderNames];
}

/** Completes the sentence "must be …". */
export function describeLimits(setting: Pick<Setting<unknown>, "type">): string {
  return setting.type.limits;
}

/** The default in words or as JSON, for people. */
export function describeDefault(setting: Pick<Setting<unknown>, "default">): string {
  const byDefault = setting.default;
  return byDefault.kind === "fixed" ? JSON.stringify(byDefault.value) : byDefault.text;
}
