/**
 * What models cost, as a file of the user says: each price with where it is from and when it was read. The program ships no prices, because they
 * change; a price without a source and a date is refused.
 */
import type { AgentFigures } from "../engine/stats.ts";
import { EngineError } from "../model/errors.ts";
import { isObject, parseObject } from "../text/json-object.ts";
import type { JsonObject } from "../text/json-object.ts";

/** In the currency of the file, for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Where it is written. */
  readonly source: string;
  /** When it was read there: 2026-11-16. */
  readonly date: string;
}

export interface Prices {
  readonly currency: string;
  /** By the name of a model, or the beginning of names. */
  readonly models: Readonly<Record<string, Price>>;
}

const MILLION = 1_000_000;

/**
 * Prices from the text of a file.
 *
 * @example {"currency": "USD", "models": {"some-model": {"input": 1, "output": 5, "source": "https://…", "date": "2026-11-16"}}}
 */
export function parsePrices(text: string, path: string): Prices {
  const file = parseObject(text);
  if (file === null || !isObject(file["models"])) throw refuse(path, 'it is not an object with "models"');
  const models = Object.entries(file["models"]).map(([name, value]) => {
    if (!isObject(value)) throw refuse(path, `the price of ${name} is not an object`);
    return [name, readPrice(value, name, path)] as const;
  });
  const { currency } = file;
  return { currency: typeof currency === "string" ? currency : "USD", models: Object.fromEntries(models) };
}

function readPrice(value: JsonObject, name: string, path: string): Price {
  const amount = (key: string, otherwise?: number): number => {
    const found = value[key] ?? otherwise;
    if (typeof found === "number" && Number.isFinite(found) && found >= 0) return found;
    throw refuse(path, `${key} of ${name} is not a number of 0 or more`);
  };
  const { source, date } = value;
  if (typeof source !== "string" || source.trim() === "") throw refuse(path, `${name} names no source`);
  if (typeof date !== "string" || !/^\d{4}-\d\d-\d\d$/.test(date))
    throw refuse(path, `${name} has no date such as 2026-11-16`);
  const input = amount("input");
  return {
    input,
    output: amount("output"),
    cacheRead: amount("cacheRead", input),
    cacheWrite: amount("cacheWrite", input),
    source,
    date,
  };
}

const refuse = (path: string, cause: string): EngineError =>
  new EngineError("invalid_input", `cannot read the prices in ${path}: ${cause}`, {
    hint: "docs/figures.md shows such a file",
  });

/** Null where the file has no price for the model. The longest name that fits counts. */
export function costOf(
  { models }: Prices,
  model: string | null,
  figures: Pick<AgentFigures, "inputTokens" | "outputTokens" | "cacheReadTokens" | "cacheWriteTokens">,
): number | null {
  const [name] = Object.keys(models)
    .filter((known) => model !== null && (model === known || model.startsWith(`${known}-`)))
    .toSorted((a, b) => b.length - a.length);
  const price = name === undefined ? undefined : models[name];
  if (price === undefined) return null;
  const sum =
    figures.inputTokens * price.input +
    figures.outputTokens * price.output +
    figures.cacheReadTokens * price.cacheRead +
    figures.cacheWriteTokens * price.cacheWrite;
  return sum / MILLION;
}
