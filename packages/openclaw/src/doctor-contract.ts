/**
 * What the host's `doctor` asks of this plugin: does the configuration let it do what it is configured for? Models of the plugin's own
 * need the host's permission; `doctor --fix` adds the smallest one that is enough. Pure; loaded by the host without the plugin.
 */

const ID = "lossless-claw";

type Config = Record<string, unknown>;

interface PluginEntryConfig {
  readonly config?: Config;
  readonly llm?: { readonly allowModelOverride?: boolean; readonly allowedModels?: readonly string[] };
  readonly [field: string]: unknown;
}

/** Settings that name a model, each with the one that names its provider. */
const MODEL_SETTINGS = [
  ["summaryModel", "summaryProvider"],
  ["largeFileSummaryModel", "largeFileSummaryProvider"],
  ["expansionModel", "expansionProvider"],
] as const;

/** Models that the configuration names and the host does not allow. */
export function findRefusedModels(cfg: Config): string[] {
  const entry = readEntry(cfg);
  const { allowModelOverride = false, allowedModels } = entry?.llm ?? {};
  const wanted = listModels(entry?.config ?? {});
  if (!allowModelOverride) return wanted;
  if (allowedModels === undefined || allowedModels.includes("*")) return [];
  return wanted.filter((model) => !allowedModels.includes(model));
}

export const legacyConfigRules = [
  {
    path: ["plugins", "entries", ID],
    message: `${ID} is configured to use models that the host does not let it use; run openclaw doctor --fix to allow exactly these.`,
    match: (value: unknown) => findRefusedModels({ plugins: { entries: { [ID]: value } } }).length > 0,
  },
];

export function normalizeCompatibilityConfig({ cfg }: { cfg: Config }): {
  config: Config;
  changes: string[];
} {
  const refused = findRefusedModels(cfg);
  const entry = readEntry(cfg);
  if (refused.length === 0 || entry === undefined) return { config: cfg, changes: [] };
  const llm = {
    ...entry.llm,
    allowModelOverride: true,
    allowedModels: [...new Set([...(entry.llm?.allowedModels ?? []), ...refused])],
  };
  const plugins = asConfig(cfg.plugins)!;
  const entries = asConfig(plugins.entries)!;
  return {
    config: { ...cfg, plugins: { ...plugins, entries: { ...entries, [ID]: { ...entry, llm } } } },
    changes: [`plugins.entries.${ID}.llm now allows ${refused.join(", ")}`],
  };
}

function listModels(config: Config): string[] {
  const models = MODEL_SETTINGS.flatMap(([modelKey, providerKey]) => {
    const model = readText(config[modelKey]);
    const provider = readText(config[providerKey]);
    if (model === "") return [];
    return [model.includes("/") || provider === "" ? model : `${provider}/${model}`];
  });
  const fallbacks = Array.isArray(config.fallbackProviders) ? (config.fallbackProviders as unknown[]) : [];
  for (const fallback of fallbacks) {
    const { provider, model } = asConfig(fallback) ?? {};
    if (readText(provider) !== "" && readText(model) !== "")
      models.push(`${readText(provider)}/${readText(model)}`);
  }
  return [...new Set(models)];
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
