/** `lcm config`: shows the settings and where each value comes from, and changes our own config file. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { EngineError, resolveSettings, settleAddress } from "@lossless/core";
import type { Settings } from "@lossless/core";
import { findNearest, makePrintable, toOneLine } from "@lossless/core/doors";
import {
  canonicalKey,
  explainSetting,
  findConflictOf,
  refuseConflicts,
  setInConfig,
  SETTING_GROUPS,
  SETTING_KEYS,
  unsetInConfig,
} from "@lossless/core/settings";
import type { ConfigObject, SettingExplanation, SettingKey } from "@lossless/core/settings";
import { findConfigLocations, loadSettings, readHostConfig, updateConfigFile } from "../../config-file.ts";
import { toAction } from "../../invocation.ts";
import type { Invocation } from "../../invocation.ts";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";
import { addExamples } from "../shared.ts";

export function defineConfig(program: Command): void {
  const group = program.command("config").description("Show, explain and change settings");
  const show = group
    .command("show")
    .description("List settings with their values and sources")
    .option("--changed", "only what differs from the defaults")
    .action(toAction(runShow));
  addExamples(show, [["lcm config show --changed", "only changed settings"]]);
  const get = group
    .command("get")
    .description("Print the value of one setting")
    .argument("<key>", "the setting, such as freshTailCount")
    .action(toAction(runGet));
  addExamples(get, [["lcm config get databasePath", "where the archive is"]]);
  const set = group
    .command("set")
    .description("Set one setting in the config file")
    .argument("<key>", "the setting")
    .argument("<value>", "its value; lists are separated by commas or written as JSON")
    .action(toAction(runSet));
  addExamples(set, [
    ["lcm config set freshTailCount 48", "a number"],
    ["lcm config set ignoreSessionPatterns 'agent:*:cron:**'", "a list"],
  ]);
  const unset = group
    .command("unset")
    .description("Remove one setting from the config file")
    .argument("<key>", "the setting")
    .action(toAction(runUnset));
  addExamples(unset, [["lcm config unset freshTailCount", "back to the default"]]);
  const explain = group
    .command("explain")
    .description("Explain a setting: purpose, allowed values, current value and its source")
    .argument("<key>", "the setting")
    .action(toAction(runExplain));
  addExamples(explain, [["lcm config explain contextThreshold", "everything about one setting"]]);
  const path = group
    .command("path")
    .description("Show which files settings are read from")
    .action(toAction(runPath));
  addExamples(path, [["lcm config path", "the files"]]);
}

async function runShow(invocation: Invocation, options: { readonly changed?: boolean }): Promise<void> {
  const resolved = await invocation.settings();
  const groups = SETTING_GROUPS.map(({ title, keys }) => {
    const all = keys.map((key) => explainSetting(key, resolved));
    return { title, settings: options.changed ? all.filter(isChanged) : all };
  }).filter(({ settings }) => settings.length > 0);
  await invocation.print({
    data: {
      items: groups.flatMap(({ title, settings }) =>
        settings.map(({ key, value, default: byDefault, source, status }) => ({
          key,
          value,
          default: byDefault,
          source,
          status,
          group: title,
        })),
      ),
    },
    text: () =>
      groups.length === 0 ? "Everything is at its default." : groups.map(renderGroup).join("\n\n"),
  });
}

const isChanged = ({ source }: SettingExplanation): boolean => /^(?:option|environment|config) /.test(source);

function renderGroup({
  title,
  settings,
}: {
  title: string;
  settings: readonly SettingExplanation[];
}): string {
  const table = renderTable(
    [
      { title: "KEY", style: style.name },
      { title: "VALUE", flexible: true },
      { title: "FROM", style: style.faint },
    ],
    settings.map(({ key, value, source }) => [key, toOneLine(renderValue(value)), toOneLine(source)]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
  return `${style.title(title)}\n${table}`;
}

function renderValue(value: unknown): string {
  if (value === null || value === undefined) return "unset";
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

async function runGet(invocation: Invocation, _options: object, name: string): Promise<void> {
  const known = canonicalKey(name);
  if (known === null) throw unknownSetting(name);
  const { key, value } = explainSetting(known, await invocation.settings());
  await invocation.print({ data: { key, value }, text: () => makePrintable(renderValue(value)) });
}

function unknownSetting(name: string): EngineError {
  const nearest = findNearest(name, SETTING_KEYS);
  return new EngineError("config", `cannot read setting ${name}: there is no such setting`, {
    hint: nearest === null ? "lcm config show lists every setting" : `Did you mean ${nearest}?`,
  });
}

async function runExplain(invocation: Invocation, _options: object, name: string): Promise<void> {
  const explanation = explainSetting(name, await invocation.settings());
  await invocation.print({ data: explanation, text: () => renderExplanation(explanation) });
}

function renderExplanation({
  key,
  value,
  default: byDefault,
  source,
  status,
  help,
  limits,
  env,
  aliases,
}: SettingExplanation): string {
  const pairs: [string, string][] = [
    ["Value", toOneLine(renderValue(value))],
    ["From", toOneLine(source)],
    ["Default", toOneLine(renderValue(byDefault))],
    ["May be", limits],
    ["Environment", env.join(", ") || "–"],
  ];
  if (aliases.length > 0) pairs.push(["Older names", aliases.join(", ")]);
  if (status === "accepted") pairs.push(["Status", "accepted, without effect"]);
  return `${style.name(key)}\n${help}\n\n${renderPairs(pairs, style.faint)}`;
}

async function runSet(invocation: Invocation, _options: object, name: string, typed: string): Promise<void> {
  const value = anchorPath(canonicalKey(name), typed);
  const change = await prepareSet(name, value);
  checkDatabasePath(canonicalKey(name), value);
  await checkKey(canonicalKey(name), value);
  await changeConfig(invocation, change, (file) => `${canonicalKey(name) ?? name} is set in ${file}`, name);
}

/** Sets one setting in our own file, as `lcm config set` does, and returns the file. */
export async function setOwnSetting(name: SettingKey, value: string): Promise<string> {
  const { ownFile } = findConfigLocations(process.env);
  await updateConfigFile(ownFile, await prepareSet(name, value));
  return ownFile;
}

async function prepareSet(name: string, value: string): Promise<(config: ConfigObject) => ConfigObject> {
  const resolveWith = await prepareResolve();
  return (config) => {
    const changed = setInConfig(config, name, value);
    refuseConflicts(name, "set", resolveWith(changed), "the value given");
    return changed;
  };
}

/** The settings with this change in our own file, including invalid combinations. */
async function prepareResolve(): Promise<(config: ConfigObject) => Settings> {
  const { ownFile, hostFile } = findConfigLocations(process.env);
  const host = await readHostConfig(hostFile);
  return (config) => {
    const layers = [{ source: ownFile, config }, ...host.layers];
    return resolveSettings({ env: process.env, layers, tolerant: true }).settings;
  };
}

/** A relative path is resolved where it was typed. Unresolved, it would name another file in every folder the program is started in. */
function anchorPath(key: SettingKey | null, typed: string): string {
  if (typed.trim() === "" || /^(?:~|["'])/.test(typed)) return typed;
  if (key === "databasePath") return settleAddress(typed);
  return key === "redactionKeyFile" ? resolve(typed) : typed;
}

/** A folder is not a database: report that now, and not in every later command. */
function checkDatabasePath(key: string | null, value: string): void {
  if (key !== "databasePath" || !existsSync(value) || !statSync(value).isDirectory()) return;
  throw new EngineError("config", `cannot set databasePath to ${value}: it is a directory`, {
    hint: `name a file, for example ${join(value, "lcm.db")}`,
  });
}

/** Sealing needs an existing key: report that now, and not when the next message is refused. */
async function checkKey(key: string | null, value: string): Promise<void> {
  if (value === "" || (key !== "redactionKeyFile" && (key !== "redactedValues" || value !== "seal"))) return;
  const { openVault } = await import("@lossless/core/doors");
  if (key === "redactionKeyFile") {
    openVault({ redactionKeyFile: value });
    return;
  }
  if (openVault((await loadSettings({ env: process.env })).settings) !== null) return;
  throw new EngineError("config", "cannot set redactedValues to seal: there is no redaction key", {
    hint: "lcm vault new-key FILE, then lcm config set redactionKeyFile FILE",
  });
}

async function runUnset(invocation: Invocation, _options: object, name: string): Promise<void> {
  const resolveWith = await prepareResolve();
  const key = canonicalKey(name);
  const change = (config: ConfigObject): ConfigObject => {
    // An unknown key stops every command; it must be possible to remove it.
    if (key === null && Object.hasOwn(config, name)) {
      const { [name]: _removed, ...rest } = config;
      return rest;
    }
    const changed = unsetInConfig(config, name);
    // A setting that was already invalid may be removed; the change itself must not make anything invalid.
    if (key !== null && findConflictOf(key, resolveWith(config)) === undefined)
      refuseConflicts(name, "unset", resolveWith(changed), "its default");
    return changed;
  };
  await changeConfig(invocation, change, (file) => `${key ?? name} is no longer set in ${file}`, name);
}

async function changeConfig(
  invocation: Invocation,
  change: (config: ConfigObject) => ConfigObject,
  describe: (file: string) => string,
  name: string,
): Promise<void> {
  const { ownFile } = findConfigLocations(process.env);
  const { changed } = await updateConfigFile(ownFile, change);
  const effect = await explainEffect(invocation, name);
  await invocation.print({
    data: { key: canonicalKey(name) ?? name, file: ownFile, changed, ...effect },
    text: () =>
      [`${style.good("ok")}  ${describe(ownFile)}`, ...describeOverruled(effect, ownFile)].join("\n"),
  });
}

/** The current value of the setting. Another invalid setting must not hide that this one was written. */
async function explainEffect(
  invocation: Invocation,
  name: string,
): Promise<{ value?: unknown; source?: string }> {
  const key = canonicalKey(name);
  if (key === null) return {};
  try {
    const { value, source } = explainSetting(key, await invocation.settings());
    return { value, source };
  } catch (error) {
    if (error instanceof EngineError && error.code === "config") return {};
    throw error;
  }
}

function describeOverruled({ source }: { source?: string }, file: string): string[] {
  if (source === undefined || source.startsWith(`config ${file}`) || !/^(?:option|environment) /.test(source))
    return [];
  return [style.warning(`It has no effect while ${source} says otherwise.`)];
}

async function runPath(invocation: Invocation): Promise<void> {
  const locations = findConfigLocations(process.env);
  await invocation.print({
    data: locations,
    text: () =>
      renderPairs(
        [
          ["Our file", locations.ownFile],
          ["The host's", locations.hostFile],
          ["State folder", locations.stateDir],
        ],
        style.faint,
      ),
  });
}

/** For completion scripts. */
export const settingKeys = (): readonly string[] => SETTING_KEYS;
