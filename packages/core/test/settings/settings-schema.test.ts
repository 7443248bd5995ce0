import { expect, test } from "vitest";
import type { JsonSchema } from "../../src/settings/setting-types.ts";
import { resolveSettings } from "../../src/settings/settings-resolve.ts";
import { settingsJsonSchema, settingsUiHints } from "../../src/settings/settings-schema.ts";
import { SETTING_ALIASES, SETTING_KEYS } from "../../src/settings/settings.ts";

/** The keywords our schema uses; anything else fails the test, so that a new keyword is not silently ignored. */
function accepts(schema: JsonSchema, value: unknown): boolean {
  return Object.entries(schema).every(([keyword, limit]) => {
    switch (keyword) {
      case "description":
        return true;
      case "type":
        return isOfType(String(limit), value);
      case "enum":
        return (limit as unknown[]).includes(value);
      case "minimum":
        return Number(value) >= Number(limit);
      case "exclusiveMinimum":
        return Number(value) > Number(limit);
      case "maximum":
        return Number(value) <= Number(limit);
      case "minLength":
        return String(value).length >= Number(limit);
      case "items":
        return (value as unknown[]).every((item) => accepts(limit as JsonSchema, item));
      case "properties":
        return Object.entries(value as object).every(([key, inner]) => {
          const property = (limit as Record<string, JsonSchema>)[key];
          return property === undefined || accepts(property, inner);
        });
      case "required":
        return (limit as string[]).every((key) => Object.hasOwn(value as object, key));
      case "minProperties":
        return Object.keys(value as object).length >= Number(limit);
      case "additionalProperties":
        return Object.keys(value as object).every((key) =>
          Object.hasOwn(schema["properties"] as object, key),
        );
      default:
        throw new Error(`the test does not know the keyword ${keyword}`);
    }
  });
}

function isOfType(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

const withoutNulls = (value: object): unknown =>
  JSON.parse(JSON.stringify(value, (_, inner: unknown) => (inner === null ? undefined : inner)));

const valueAt = (settings: object, key: string): unknown =>
  key.split(".").reduce<unknown>((inner, name) => (inner as Record<string, unknown>)[name], settings);

test("the schema accepts every default at once", () => {
  const { settings } = resolveSettings();
  expect(accepts(settingsJsonSchema(), withoutNulls(settings))).toBe(true);
});

test("the schema accepts every older name with the default of its key", () => {
  const { settings } = resolveSettings();
  for (const [alias, key] of SETTING_ALIASES) {
    expect(accepts(settingsJsonSchema(), { [alias]: valueAt(settings, key) }), alias).toBe(true);
  }
});

test("the schema refuses unknown keys at every level and values out of range", () => {
  const schema = settingsJsonSchema();
  for (const config of [
    { freshTailCont: 1 },
    { embedding: { url: "x" } },
    { freshTailCount: 0 },
    { contextThreshold: 0 },
    { contextThresholdOverrides: [{ match: {}, contextThreshold: 0.5 }] },
    { contextThresholdOverrides: [{ match: { x: 1 }, contextThreshold: 0.5 }] },
    { contextThresholdOverrides: [{ match: { model: "m" } }] },
    { fallbackProviders: [{ provider: "p", model: "m", more: 1 }] },
  ]) {
    expect(accepts(schema, config), JSON.stringify(config)).toBe(false);
  }
});

test("the schema accepts what the reader accepts", () => {
  const config = {
    contextThresholdOverrides: [
      {
        name: "large",
        match: { modelContextWindowMin: 900_000, sessionPattern: "agent:**" },
        contextThreshold: 0.2,
        freshTailCount: 16,
      },
    ],
    fallbackProviders: [{ provider: "p", model: "m" }],
    embedding: { baseUrl: "http://localhost:11434", model: "m" },
    cacheAwareCompaction: { criticalBudgetPressureRatio: 0.8 },
  };
  expect(accepts(settingsJsonSchema(), config)).toBe(true);
  expect(() => resolveSettings({ config })).not.toThrow();
});

test("no schema states a default, because a host would write it into the config", () => {
  const hasDefault = (schema: unknown): boolean =>
    typeof schema === "object" &&
    schema !== null &&
    ("default" in schema || Object.values(schema).some((inner) => hasDefault(inner)));
  expect(hasDefault(settingsJsonSchema())).toBe(false);
});

test("every key and older name has a hint with a readable label", () => {
  const hints = settingsUiHints();
  expect(Object.keys(hints).sort()).toEqual([...SETTING_KEYS, ...SETTING_ALIASES.keys()].sort());
  expect(hints["autoRotateSessionFiles.sizeBytes"]?.label).toBe("Auto rotate session files: size bytes");
  expect(hints["cacheAwareCompaction.cacheTTLSeconds"]?.label).toBe(
    "Cache aware compaction: cache TTL seconds",
  );
  expect(hints["freshTailCount"]).toEqual({
    label: "Fresh tail count",
    help: "Number of newest messages that are never folded, up to freshTailMaxTokens. Default: 64.",
    placeholder: "64",
  });
  expect(hints["dbPath"]?.advanced).toBe(true);
});
