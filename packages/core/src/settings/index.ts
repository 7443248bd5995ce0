/**
 * Settings for programs that show or change them: the table, the source of each value, reading and editing a configuration, a schema for
 * hosts. A program that only opens an engine needs just `resolveSettings` of the library.
 */
export { resolveThreshold } from "./context-threshold.ts";
export { compileSessionPatterns } from "./session-patterns.ts";
export {
  explainSetting,
  findStateDir,
  readSetting,
  refuseConflicts,
  setInConfig,
  unsetInConfig,
} from "./settings-resolve.ts";
export type {
  ConfigLayer,
  ConfigObject,
  Environment,
  ReplacedSetting,
  ResolvedSettings,
  ResolveInput,
  SettingExplanation,
} from "./settings-resolve.ts";
export { REDACTION_SETS } from "./setting-types.ts";
export { findConflictOf } from "./settings-rules.ts";
export { settingsJsonSchema, settingsUiHints } from "./settings-schema.ts";
export {
  canonicalKey,
  describeDefault,
  describeLimits,
  getSetting,
  SETTING_GROUPS,
  SETTING_KEYS,
} from "./settings.ts";
export type { SettingKey } from "./settings.ts";
