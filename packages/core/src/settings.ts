/**
 * Settings for programs that show or change them: the table, where each value came from, reading and editing a configuration, what a host
 * may be told as a schema. A program that only opens an engine needs `resolveSettings` of the library and nothing of this.
 */
export { resolveThreshold } from "./model/context-threshold.ts";
export { compileSessionPatterns } from "./model/session-patterns.ts";
export {
  explainSetting,
  findStateDir,
  readSetting,
  refuseConflicts,
  setInConfig,
  unsetInConfig,
} from "./model/settings-resolve.ts";
export type {
  ConfigLayer,
  ConfigObject,
  Environment,
  ReplacedSetting,
  ResolvedSettings,
  ResolveInput,
  SettingExplanation,
} from "./model/settings-resolve.ts";
export { findConflictOf } from "./model/settings-rules.ts";
export { settingsJsonSchema, settingsUiHints } from "./model/settings-schema.ts";
export {
  canonicalKey,
  describeDefault,
  describeLimits,
  getSetting,
  SETTING_GROUPS,
  SETTING_KEYS,
} from "./model/settings.ts";
export type { SettingKey } from "./model/settings.ts";
