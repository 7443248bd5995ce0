/**
 * Resolves the environment and config objects to one `Settings` object with the source of each value. Order: options, environment, configs
 * in the order given, default. All problems are collected and reported at once; an unknown key or an invalid value never passes silently:
 * it is refused or, if a host must start anyway, replaced by the default and reported. Pure: the caller reads files, see
 * `packages/cli/src/config-file.ts`.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { hidePassword, readFileAddress } from "../model/address.ts";
import { EngineError } from "../model/errors.ts";
import { editDistance, findNearest } from "../text/nearest.ts";
import { isTimezone } from "./setting-types.ts";
import { isObject } from "../text/json-object.ts";
import type { Checked, ValueProblem } from "./setting-types.ts";
import {
  canonicalKey,
  describeDefault,
  describeLimits,
  getSetting,
  SETTING_ALIASES,
  SETTING_KEYS,
} from "./settings.ts";
import type { DeriveContext, SettingKey, Settings } from "./settings.ts";
import { findConflictOf, findConflicts } from "./settings-rules.ts";

export type Environment = { readonly [name: string]: string | undefined };
export type ConfigObject = { readonly [key: string]: unknown };

/** One config object and where it was read from. */
export interface ConfigLayer {
  readonly source: string;
  readonly config: unknown;
  /** Unusable values are replaced by the default and reported, not refused. */
  readonly tolerant?: boolean;
}

export interface ResolveInput {
  readonly env?: Environment | undefined;
  /** A single config; `configSource` names it in messages and in `explainSetting`. */
  readonly config?: unknown;
  readonly configSource?: string | undefined;
  /** More configs, the strongest first; they come after `config`. */
  readonly layers?: readonly ConfigLayer[] | undefined;
  /** Takes precedence over the environment: what a person typed, such as `--db`. `source` is the option's name. */
  readonly options?: ConfigLayer | undefined;
  /** Replaces the search for the state directory. */
  readonly stateDir?: string | undefined;
  /** Refuse no problem, wherever it was set: a host has to start. Except options, because a person typed them. */
  readonly tolerant?: boolean | undefined;
  /** Replace settings that cannot work together by their defaults; otherwise they stay as they are, and a notice says so. */
  readonly replaceConflicts?: boolean | undefined;
}

/** An unusable value that was replaced by the default. */
export interface ReplacedSetting {
  /** As written; an unknown name if that was the problem. */
  readonly key: string;
  /** What is wrong, where it was set, and what is allowed. */
  readonly message: string;
}

export type SettingSource =
  | { readonly kind: "option"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  /** `key` is the name that was used, which may be an older one. */
  | { readonly kind: "config"; readonly file: string; readonly key: string }
  | { readonly kind: "default" }
  | { readonly kind: "derived"; readonly from: string };

export interface ResolvedSettings {
  readonly settings: Settings;
  /** Each value if it were not set, given the other values. */
  readonly defaults: Settings;
  readonly sources: { readonly [K in SettingKey]: SettingSource };
  /** Worth reporting once: older names, keys without effect, misspelt variables, settings that contradict each other. */
  readonly notices: readonly string[];
  readonly replaced: readonly ReplacedSetting[];
  /** What is wrong with redaction or sealing. Their defaults would store what should be kept out, so nothing may be stored. */
  readonly storingProblems: readonly string[];
  readonly stateDir: string;
}

/**
 * @example
 * const { settings } = resolveSettings({ env: process.env, config: { freshTailCount: 32 }, configSource: "lcm.json" });
 * settings.freshTailCount; // 32
 */
export function resolveSettings(input: ResolveInput = {}): ResolvedSettings {
  const env = input.env ?? {};
  const report = new Report();
  const given = readLayers(input, env, report);
  if (report.problems.length > 0) throw describeProblems("read the settings", report.problems);
  let resolved = settle(input, env, given);
  if (input.replaceConflicts === true) {
    while (dropConflict(resolved.settings, given, report)) resolved = settle(input, env, given);
  }
  for (const [{ key, at, value, says }] of findConflicts(resolved.settings))
    report.notices.add(`${key}${at} = ${String(value)}: ${says}`);
  return {
    ...resolved,
    notices: [...report.notices],
    replaced: report.replaced,
    storingProblems: report.storingProblems,
  };
}

/** Removes the values given for the first broken rule, so that the defaults apply. False when no rule is broken. */
function dropConflict(settings: Settings, given: Map<SettingKey, Found>, report: Report): boolean {
  const [conflict] = findConflicts(settings);
  if (conflict === undefined) return false;
  const sides = conflict.filter(({ key }) => given.has(key));
  for (const { key, ...problem } of sides) {
    const where = describeSource(given.get(key)?.source ?? { kind: "default" });
    given.delete(key);
    report.replace(key, describeValueProblem(key, where, problem));
  }
  return sides.length > 0;
}

type Settled = Omit<ResolvedSettings, "notices" | "replaced" | "storingProblems">;

function settle(input: ResolveInput, env: Environment, given: ReadonlyMap<SettingKey, Found>): Settled {
  const home = findHome(env);
  const state = findStateDir(env, input.stateDir);
  const readGiven = (key: SettingKey): unknown => {
    const value = given.get(key)?.value;
    if (typeof value !== "string" || !getSetting(key).type.isPath) return value;
    return expandHome((key === "databasePath" ? readFileAddress(value) : null) ?? value, home);
  };
  const defaults = computeDefaults({
    stateDir: state.path,
    stateDirFrom: state.from,
    givenDatabasePath: (readGiven("databasePath") as string | undefined) ?? null,
    leafChunkTokens: Number(readGiven("leafChunkTokens") ?? fixedDefault("leafChunkTokens")),
    limitsSummaryCalls: given.has("summaryMaxCallsPerWindow"),
    systemTimezone: findSystemTimezone(),
  });
  return {
    settings: nest((key) => (given.has(key) ? readGiven(key) : defaults.get(key)?.value)),
    defaults: nest((key) => defaults.get(key)?.value),
    sources: Object.fromEntries(
      SETTING_KEYS.map((key) => [key, (given.get(key) ?? defaults.get(key))?.source]),
    ) as ResolvedSettings["sources"],
    stateDir: state.path,
  };
}

export interface StateDir {
  readonly path: string;
  /** Completes "derived from …". */
  readonly from: string;
}

/** The host's state directory: `OPENCLAW_STATE_DIR`, else `LCM_OPENCLAW_DIR`, else `~/.openclaw`. */
export function findStateDir(env: Environment, given?: string): StateDir {
  const home = findHome(env);
  if (given !== undefined && given.trim() !== "") {
    return { path: expandHome(given, home), from: "the state directory" };
  }
  for (const name of ["OPENCLAW_STATE_DIR", "LCM_OPENCLAW_DIR"]) {
    const value = env[name];
    if (value !== undefined && value.trim() !== "") return { path: expandHome(value, home), from: name };
  }
  return { path: join(home, ".openclaw"), from: "the state directory" };
}

export interface SettingExplanation {
  readonly key: SettingKey;
  readonly value: unknown;
  readonly default: unknown;
  /** `option --db`, `environment LCM_X`, `config <file>`, `default`, or `derived from …`. */
  readonly source: string;
  readonly status: "active" | "accepted";
  readonly help: string;
  readonly limits: string;
  readonly env: readonly string[];
  readonly aliases: readonly string[];
}

/** The current value of a setting, and why. Passwords inside addresses are masked. */
export function explainSetting(name: string, resolved: ResolvedSettings): SettingExplanation {
  const key = requireKey(name, "explain");
  const setting = getSetting(key);
  return {
    key,
    value: maskPasswords(readSetting(resolved.settings, key)),
    default: maskPasswords(readSetting(resolved.defaults, key)),
    source: describeSource(resolved.sources[key]),
    status: setting.status,
    help: setting.help,
    limits: describeLimits(setting),
    env: setting.env,
    aliases: setting.aliases,
  };
}

function describeSource(source: SettingSource): string {
  switch (source.kind) {
    case "option":
      return `option ${source.name}`;
    case "environment":
      return `environment ${source.name}`;
    case "config":
      return SETTING_ALIASES.has(source.key)
        ? `config ${source.file} (as ${source.key})`
        : `config ${source.file}`;
    case "derived":
      return `derived from ${source.from}`;
    case "default":
      return "default";
  }
}

/** A copy of the config with one key set from text; older names of the key are removed from it. */
export function setInConfig(config: ConfigObject, name: string, valueText: string): ConfigObject {
  const key = requireKey(name, "set");
  const checked = getSetting(key).type.parse(valueText);
  if (!checked.ok) {
    const lines = checked.problems.map((problem) => describeValueProblem(key, "the value given", problem));
    throw describeProblems(`set ${key}`, lines);
  }
  const cleared = unsetInConfig(config, key);
  const [section, rest] = splitKey(key);
  if (rest === null) return { ...cleared, [key]: checked.value };
  const existing = cleared[section];
  if (existing !== undefined && !isObject(existing)) {
    throw new EngineError("config", `cannot set ${key}: ${section} in the config is not an object`, {
      hint: `Remove ${section} from the config file first.`,
    });
  }
  return { ...cleared, [section]: { ...existing, [rest]: checked.value } };
}

/** Refuses a change that leaves a setting in a combination that cannot work. `name` is the setting that was changed. */
export function refuseConflicts(name: string, verb: string, settings: Settings, where: string): void {
  const key = requireKey(name, verb);
  const side = findConflictOf(key, settings);
  if (side !== undefined) throw describeProblems(`${verb} ${key}`, [describeValueProblem(key, where, side)]);
}

/** A copy of the config without the key and its older names; a section left empty is removed too. */
export function unsetInConfig(config: ConfigObject, name: string): ConfigObject {
  const key = requireKey(name, "unset");
  const copy: Record<string, unknown> = { ...config };
  for (const alias of getSetting(key).aliases) delete copy[alias];
  const [section, rest] = splitKey(key);
  const existing = copy[section];
  if (rest === null) {
    delete copy[key];
  } else if (isObject(existing)) {
    const { [rest]: _removed, ...kept } = existing;
    if (Object.keys(kept).length === 0) delete copy[section];
    else copy[section] = kept;
  }
  return copy;
}

interface Found {
  readonly value: unknown;
  readonly source: SettingSource;
}

/** Collects errors and notices, so that one run shows everything. */
class Report {
  readonly problems: string[] = [];
  readonly notices = new Set<string>();
  readonly replaced: ReplacedSetting[] = [];
  readonly storingProblems: string[] = [];
  /** Whether the source being read may contain unusable values. */
  tolerant = false;

  /** Refused, or replaced if its source is tolerated. */
  add(key: string, message: string): void {
    if (!this.tolerant) this.problems.push(message);
    else if (KEEPS_SECRETS_OUT.has(key)) this.storingProblems.push(message);
    else this.replace(key, message);
  }

  replace(key: string, problem: string): void {
    const message = `${problem}; the default is used`;
    this.replaced.push({ key, message });
    this.notices.add(message);
  }
}

const KEEPS_SECRETS_OUT: ReadonlySet<string> = new Set<SettingKey>([
  "redactPatterns",
  "redactedValues",
  "redactionKeyFile",
]);

/** What each layer sets, the strongest first; everything is checked, even values that a stronger layer overrides. */
function readLayers(input: ResolveInput, env: Environment, report: Report): Map<SettingKey, Found> {
  const configs = [
    ...(input.config === undefined ? [] : [{ source: input.configSource ?? "config", config: input.config }]),
    ...(input.layers ?? []),
  ];
  const everywhere = input.tolerant === true;
  const read = (tolerant: boolean, reader: () => Map<SettingKey, Found>): Map<SettingKey, Found> => {
    report.tolerant = tolerant;
    return reader();
  };
  const { options } = input;
  const layers = [
    ...(options ? [read(false, () => readConfig(options, report, asOption))] : []),
    read(everywhere, () => readEnvironment(env, report)),
    ...configs.map((layer) =>
      read(everywhere || layer.tolerant === true, () => readConfig(layer, report, asConfig)),
    ),
  ];
  const found = new Map<SettingKey, Found>();
  for (const layer of layers) {
    for (const [key, entry] of layer) if (!found.has(key)) found.set(key, entry);
  }
  return found;
}

const asOption = (layer: ConfigLayer): SettingSource => ({ kind: "option", name: layer.source });
const asConfig = (layer: ConfigLayer, key: string): SettingSource => ({
  kind: "config",
  file: layer.source,
  key,
});

function readEnvironment(env: Environment, report: Report): Map<SettingKey, Found> {
  const found = new Map<SettingKey, Found>();
  for (const key of SETTING_KEYS) {
    const setting = getSetting(key);
    for (const name of setting.env) {
      const text = env[name];
      if (text === undefined || (text.trim() === "" && !setting.emptyEnvironmentMeansNone)) continue;
      const checked = setting.type.parse(text);
      noteUse(key, name, `environment ${name}`, found.has(key), report);
      if (checked.ok && !found.has(key)) {
        found.set(key, { value: checked.value, source: { kind: "environment", name } });
      } else if (!checked.ok && setting.environmentIsShared) {
        report.notices.add(`${name}=${text} is not ${describeLimits(setting)}; ${key} does not follow it`);
      } else {
        collect(checked, key, `environment ${name}`, report);
      }
    }
  }
  noteMisspeltVariables(env, report);
  return found;
}

function readConfig(
  layer: ConfigLayer,
  report: Report,
  toSource: (layer: ConfigLayer, key: string) => SettingSource,
): Map<SettingKey, Found> {
  const found = new Map<SettingKey, Found>();
  const where = describeSource(toSource(layer, ""));
  if (!isObject(layer.config)) {
    report.add("", `${where}: must be an object with settings`);
    return found;
  }
  const entries = [...flatten(layer.config, where, report)];
  // A key is read before its older names, so that it wins whatever their order in the file.
  entries.sort(([left], [right]) => Number(SETTING_ALIASES.has(left)) - Number(SETTING_ALIASES.has(right)));
  for (const [name, value] of entries) {
    const key = canonicalKey(name);
    if (key === null) continue;
    const checked = getSetting(key).type.check(value);
    noteUse(key, name, where, found.has(key), report);
    collect(checked, name, where, report);
    if (checked.ok && !found.has(key))
      found.set(key, { value: checked.value, source: toSource(layer, name) });
  }
  return found;
}

const SECTIONS: ReadonlySet<string> = new Set(
  SETTING_KEYS.filter((key) => key.includes(".")).map((key) => splitKey(key)[0]),
);

/** Yields `section.key` pairs of a config object, and reports unknown names. */
function* flatten(config: ConfigObject, where: string, report: Report): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(config)) {
    if (value === undefined) continue;
    if (!SECTIONS.has(name)) {
      if (canonicalKey(name) !== null && !name.includes(".")) yield [name, value];
      else report.add(name, describeUnknown(name, where));
      continue;
    }
    if (!isObject(value)) {
      const keys = SETTING_KEYS.filter((key) => key.startsWith(`${name}.`)).map((key) => splitKey(key)[1]);
      report.add(name, `${name} = ${show(value)} (${where}): must be an object with ${keys.join(", ")}`);
      continue;
    }
    for (const [rest, inner] of Object.entries(value)) {
      if (inner === undefined) continue;
      const key = `${name}.${rest}`;
      if (canonicalKey(key) === null) report.add(key, describeUnknown(key, where));
      else yield [key, inner];
    }
  }
}

function collect(checked: Checked<unknown>, name: string, where: string, report: Report): void {
  if (checked.ok) return;
  for (const problem of checked.problems) report.add(name, describeValueProblem(name, where, problem));
}

function noteUse(key: SettingKey, name: string, where: string, isOverruled: boolean, report: Report): void {
  const setting = getSetting(key);
  const isVariable = setting.env.includes(name);
  const shown = isVariable ? where : `${name} (${where})`;
  const preferred = isVariable ? setting.env[0] : key;
  if (preferred !== name) {
    const effect = isOverruled ? `ignored, because ${preferred} is set too` : "still read";
    report.notices.add(`${shown} is an older name of ${preferred}: ${effect}`);
  }
  if (setting.status === "accepted") {
    report.notices.add(`${shown} has no effect: ${lowerFirst(setting.help)}`);
  }
}

/** Other programs may use variables with the same prefix, so a misspelt one is reported and not refused. */
function noteMisspeltVariables(env: Environment, report: Report): void {
  const known = SETTING_KEYS.flatMap((key) => getSetting(key).env);
  for (const name of Object.keys(env)) {
    if (!name.startsWith("LCM_") || known.includes(name) || name === "LCM_OPENCLAW_DIR") continue;
    const nearest = findNearest(name, known);
    if (nearest !== null && editDistance(name, nearest) <= 2) {
      report.notices.add(`environment ${name} is not a setting; did you mean ${nearest}?`);
    }
  }
}

function describeUnknown(name: string, where: string): string {
  if (name.includes(".") && canonicalKey(name) !== null) {
    const [section, rest] = splitKey(name);
    return `${name} (${where}): write it as an object, {"${section}": {"${rest}": …}}`;
  }
  return `${name} (${where}): unknown setting${suggest(name)}`;
}

function suggest(name: string): string {
  const nearest = findNearest(name, [...SETTING_KEYS, ...SETTING_ALIASES.keys(), ...SECTIONS]);
  return nearest === null ? "" : `; did you mean ${nearest}?`;
}

function describeValueProblem(name: string, where: string, problem: ValueProblem): string {
  const shown = problem.value === undefined ? "" : ` = ${show(problem.value)}`;
  const key = canonicalKey(name);
  const byDefault =
    key !== null && problem.at === "" ? ` (default: ${describeDefault(getSetting(key))})` : "";
  return `${name}${problem.at}${shown} (${where}): ${problem.says}${byDefault}`;
}

function describeProblems(intent: string, problems: readonly string[]): EngineError {
  const lines = problems.map((problem) => `\n  - ${problem}`).join("");
  return new EngineError("config", `cannot ${intent}:${lines}`, {
    hint: "Correct or remove each of these where it was set; docs/configuration.md lists every setting.",
  });
}

function requireKey(name: string, verb: string): SettingKey {
  const key = canonicalKey(name);
  if (key !== null) return key;
  const nearest = findNearest(name, [...SETTING_KEYS, ...SETTING_ALIASES.keys()]);
  throw new EngineError("config", `cannot ${verb} ${name}: unknown setting`, {
    hint: nearest === null ? "docs/configuration.md lists every setting." : `Did you mean ${nearest}?`,
  });
}

function computeDefaults(context: DeriveContext): Map<SettingKey, Found> {
  const defaults = new Map<SettingKey, Found>();
  for (const key of SETTING_KEYS) {
    const byDefault = getSetting(key).default;
    if (byDefault.kind === "derived") {
      const { value, from } = byDefault.compute(context);
      defaults.set(key, { value, source: { kind: "derived", from } });
    } else {
      defaults.set(key, { value: fixedDefault(key), source: { kind: "default" } });
    }
  }
  return defaults;
}

/** The fixed default in the table; null for the others. */
function fixedDefault(key: SettingKey): unknown {
  const byDefault = getSetting(key).default;
  return byDefault.kind === "fixed" ? structuredClone(byDefault.value) : null;
}

function nest(read: (key: SettingKey) => unknown): Settings {
  const settings: Record<string, unknown> = {};
  for (const key of SETTING_KEYS) {
    const [section, rest] = splitKey(key);
    if (rest === null) settings[key] = read(key);
    else settings[section] = { ...(settings[section] as object | undefined), [rest]: read(key) };
  }
  return settings as unknown as Settings;
}

/** The value of a key in settings, nested or not. */
export function readSetting(settings: Settings, key: SettingKey): unknown {
  const [section, rest] = splitKey(key);
  const outer = (settings as unknown as ConfigObject)[section];
  return rest === null ? outer : (outer as ConfigObject)[rest];
}

function splitKey(key: string): [section: string, rest: string | null] {
  const dot = key.indexOf(".");
  return dot < 0 ? [key, null] : [key.slice(0, dot), key.slice(dot + 1)];
}

function findHome(env: Environment): string {
  return env["HOME"] || env["USERPROFILE"] || homedir();
}

function expandHome(path: string, home: string): string {
  return /^~(?=$|[/\\])/.test(path) ? join(home, path.slice(1)) : path;
}

/** If the system names none (an empty TZ), Intl returns a name that it refuses itself; for POSIX that is UTC. */
function findSystemTimezone(): string {
  const name = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return isTimezone(name) ? name : "UTC";
}

const SHOWN_CHARACTERS = 60;

function show(value: unknown): string {
  const json = JSON.stringify(maskPasswords(value)) ?? String(value);
  return json.length <= SHOWN_CHARACTERS ? json : `${json.slice(0, SHOWN_CHARACTERS)}…`;
}

function maskPasswords(value: unknown): unknown {
  return typeof value === "string" ? hidePassword(value) : value;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
