/**
 * The settings for a host: a JSON Schema for a plugin's manifest and hints for its settings page.
 *
 * Defaults are in the descriptions, not under `default`: a host that writes schema defaults into our config would make every value look as
 * if it had been set, and would let a filled-in key override an older name that a person actually wrote.
 */
import type { JsonSchema } from "./setting-types.ts";
import { describeDefault, getSetting, SETTING_KEYS } from "./settings.ts";
import type { SettingKey } from "./settings.ts";

export function settingsJsonSchema(): JsonSchema {
  const properties: Record<string, unknown> = {};
  const sections: Record<string, Record<string, unknown>> = {};
  for (const key of SETTING_KEYS) {
    const setting = getSetting(key);
    const [section, rest] = key.split(".");
    const home = rest === undefined ? properties : (sections[section!] ??= {});
    home[rest ?? key] = { ...setting.type.schema, description: describeForHost(key) };
    for (const alias of setting.aliases) {
      properties[alias] = { ...setting.type.schema, description: `Older name of ${key}.` };
    }
  }
  for (const [name, inner] of Object.entries(sections)) {
    properties[name] = { type: "object", additionalProperties: false, properties: inner };
  }
  return { type: "object", additionalProperties: false, properties };
}

export interface UiHint {
  readonly label: string;
  readonly help: string;
  readonly placeholder?: string;
  readonly advanced?: true;
}

/** One hint for each key and each older name, by dotted path. */
export function settingsUiHints(): { readonly [path: string]: UiHint } {
  const hints: Record<string, UiHint> = {};
  for (const key of SETTING_KEYS) {
    const setting = getSetting(key);
    hints[key] = {
      label: labelFor(key),
      help: describeForHost(key),
      placeholder: plain(describeDefault(setting)),
      ...(setting.advanced ? { advanced: true } : {}),
    };
    for (const alias of setting.aliases) {
      hints[alias] = { label: labelFor(alias), help: `Older name of ${key}.`, advanced: true };
    }
  }
  return hints;
}

function describeForHost(key: SettingKey): string {
  const setting = getSetting(key);
  const effect = setting.status === "accepted" ? `No effect: ${setting.help}` : setting.help;
  return plain(`${effect} Default: ${describeDefault(setting)}.`);
}

/** `autoRotateSessionFiles.sizeBytes` → "Auto rotate session files: size bytes". */
function labelFor(path: string): string {
  const spaced = path.replaceAll(/(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").replaceAll(".", ": ");
  const label = spaced.replaceAll(/\b[A-Z](?=[a-z])/g, (letter) => letter.toLowerCase());
  return label.charAt(0).toUpperCase() + label.slice(1);
}

/** Settings pages show Markdown unrendered. */
const plain = (text: string): string => text.replaceAll("`", "");
