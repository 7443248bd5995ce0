/**
 * For the host's `doctor`: does the configuration permit what the plugin is configured for? Models of the plugin's own need the host's
 * permission; `doctor --fix` adds the smallest one that is enough. Pure; the host loads it without the plugin.
 */

import { parseModelRef } from "@lossless/core";

const ID = "lossless-claw";

type Config = Record<string, unknown>;

interface PluginEntryConfig {
  readonly config?: Config;
  readonly llm?: ModelPolicy;
  readonly subagent?: ModelPolicy;
  readonly [field: string]: unknown;
}

/** The models that the host lets a plugin choose. */
interface ModelPolicy {
  readonly allowModelOverride?: boolean;
  readonly allowedModels?: readonly string[];
}

/** Settings that name a model, each with the one that names its provider. */
const MODEL_SETTINGS: readonly (readonly [string, string])[] = [
  ["summaryModel", "summaryProvider"],
  ["largeFileSummaryModel", "largeFileSummaryProvider"],
  ["expansionModel", "expansionProvider"],
];

/** Settings whose model also answers as a sub-agent of the host. */
const SUBAGENT_SETTINGS: typeof MODEL_SETTINGS = MODEL_SETTINGS.filter(([key]) => key === "expansionModel");

/** Configured models that the host does not allow. */
export function findRefusedModels(cfg: Config): string[] {
  const entry = readEntry(cfg);
  if (entry === undefined) return [];
  const compaction = readCompactionModel(cfg);
  const wanted = [...listModels(entry.config ?? {}), ...(compaction === "" ? [] : [compaction])];
  return filterRefused(entry.llm, [...new Set(wanted)]);
}

/** Models configured for sub-agents that the host does not allow them. */
function findRefusedSubagentModels(cfg: Config): string[] {
  const entry = readEntry(cfg);
  return filterRefused(entry?.subagent, listNamed(entry?.config ?? {}, SUBAGENT_SETTINGS));
}

export interface HostModels {
  /** The host's model for compaction, if configured. */
  readonly compaction: { readonly provider: string; readonly model: string } | undefined;
  /** Whether the host lets this plugin name a model. */
  readonly isAllowed: (model: string) => boolean;
}

export function readHostModels(cfg: Config): HostModels {
  const policy = readEntry(cfg)?.llm;
  return {
    compaction: parseModelRef(readCompactionModel(cfg), ""),
    isAllowed: (model) => filterRefused(policy, [model]).length === 0,
  };
}

function readCompactionModel(cfg: Config): string {
  const defaults = asConfig(asConfig(cfg.agents)?.defaults);
  return readText(asConfig(defaults?.compaction)?.model);
}

function filterRefused(policy: ModelPolicy = {}, wanted: string[]): string[] {
  const { allowModelOverride = false, allowedModels } = policy;
  if (!allowModelOverride) return wanted;
  if (allowedModels === undefined || allowedModels.includes("*")) return [];
  return wanted.filter((model) => !allowedModels.includes(model));
}

function allow(policy: ModelPolicy | undefined, models: readonly string[]): ModelPolicy {
  return {
    ...policy,
    allowModelOverride: true,
    allowedModels: [...new Set([...(policy?.allowedModels ?? []), ...models])],
  };
}

export const legacyConfigRules = [
  {
    path: ["plugins", "entries", ID],
    message: `${ID} is configured to use models that the host does not let it use; run openclaw doctor --fix to allow exactly these.`,
    match: (value: unknown) => {
      const cfg = { plugins: { entries: { [ID]: value } } };
      return findRefusedModels(cfg).length + findRefusedSubagentModels(cfg).length > 0;
    },
  },
];

export function normalizeCompatibilityConfig({ cfg }: { cfg: Config }): {
  config: Config;
  changes: string[];
} {
  const refused = findRefusedModels(cfg);
  const refusedSubagents = findRefusedSubagentModels(cfg);
  const entry = readEntry(cfg);
  if (entry === undefined || refused.length + refusedSubagents.length === 0)
    return { config: cfg, changes: [] };
  const repaired = {
    ...entry,
    ...(refused.length === 0 ? {} : { llm: allow(entry.llm, refused) }),
    ...(refusedSubagents.length === 0 ? {} : { subagent: allow(entry.subagent, refusedSubagents) }),
  };
  const plugins = asConfig(cfg.plugins)!;
  const entries = asConfig(plugins.entries)!;
  return {
    config: { ...cfg, plugins: { ...plugins, entries: { ...entries, [ID]: repaired } } },
    changes: [
      ...(refused.length === 0 ? [] : [`plugins.entries.${ID}.llm now allows ${refused.join(", ")}`]),
      ...(refusedSubagents.length === 0
        ? []
        : [`plugins.entries.${ID}.subagent now allows ${refusedSubagents.join(", ")}`]),
    ],
  };
}

function listModels(config: Config): string[] {
  const models = listNamed(config, MODEL_SETTINGS);
  const fallbacks = Array.isArray(config.fallbackProviders) ? (config.fallbackProviders as unknown[]) : [];
  for (const fallback of fallbacks) {
    const { provider, model } = asConfig(fallback) ?? {};
    if (readText(provider) !== "" && readText(model) !== "")
      models.push(`${readText(provider)}/${readText(model)}`);
  }
  return [...new Set(models)];
}

function listNamed(config: Config, settings: typeof MODEL_SETTINGS): string[] {
  return settings.flatMap(([modelKey, providerKey]) => {
    const model = readText(config[modelKey]);
    const provider = readText(config[providerKey]);
    if (model === "") return [];
    return [model.includes("/") || provider === "" ? model : `${provider}/${model}`];
  });
}

function readEntry(cfg: Config): PluginEntryConfig | undefined {
  return asConfig(asConfig(asConfig(cfg.plugins)?.entries)?.[ID]);
}

function readText(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

function asConfig(value: unknown): Config | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Config) : undefined;
}
