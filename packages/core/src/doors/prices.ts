/**
 * Prices of models, from the user's file: each with its source and the date it was read. The program ships no prices, because they change;
 * a price without a source and a date is refused.
 */
import { readFile } from "node:fs/promises";
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
  /** Where the price is published. */
  readonly source: string;
  /** When it was read there: 2026-11-16. */
  readonly date: string;
}

export interface Prices {
  readonly currency: string;
  /** By model name, or by prefix of names. */
  readonly models: Readonly<Record<string, Price>>;
}

/** The cost of tokens, by the prices of a file. */
export interface Cost {
  readonly currency: string;
  readonly total: number;
  readonly byModel: Readonly<Record<string, number>>;
  /** Models that used tokens and have no price; they are not in the total. */
  readonly unpriced: readonly string[];
  readonly sources: readonly string[];
}

type PricedTokens = Pick<AgentFigures, "inputTokens" | "outputTokens"> &
  Partial<Pick<AgentFigures, "cacheReadTokens" | "cacheWriteTokens">>;

const MILLION = 1_000_000;
const HINT = "docs/figures.md shows such a file";

export async function readPrices(path: string): Promise<Prices> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`;
    throw new EngineError("not_found", `cannot read the prices in ${path}: ${why}`, {
      cause: error,
      hint: HINT,
    });
  });
  return parsePrices(text, path);
}

/** The cost of each model's use, with the sources of the prices. */
export function sumCost(
  groups: readonly (PricedTokens & { readonly key: string | null })[],
  prices: Prices,
): Cost {
  const used = groups.filter((group) => countTokens(group) > 0);
  const priced = used.map((group) => ({ model: group.key, price: findPrice(prices, group.key), group }));
  const known = priced.flatMap(({ model, price, group }) =>
    price === null ? [] : [{ model: model ?? "", price, cost: multiply(price, group) }],
  );
  return {
    currency: prices.currency,
    total: known.reduce((sum, { cost }) => sum + cost, 0),
    byModel: Object.fromEntries(known.map(({ model, cost }) => [model, cost])),
    unpriced: priced.flatMap(({ model, price }) => (price === null ? [model ?? "unknown"] : [])),
    sources: [...new Set(known.map(({ price: { source, date } }) => `${source} (${date})`))],
  };
}

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
  new EngineError("invalid_input", `cannot read the prices in ${path}: ${cause}`, { hint: HINT });

/** Null if the file has no price for the model. The longest matching name counts, without a provider before a slash. */
function findPrice({ models }: Prices, model: string | null): Price | null {
  if (model === null) return null;
  const names = [model, model.slice(model.indexOf("/") + 1)];
  const [name] = Object.keys(models)
    .filter((known) => names.some((some) => some === known || some.startsWith(`${known}-`)))
    .toSorted((a, b) => b.length - a.length);
  return name === undefined ? null : (models[name] ?? null);
}

const countTokens = ({
  inputTokens,
  outputTokens,
  cacheReadTokens = 0,
  cacheWriteTokens = 0,
}: PricedTokens): number => inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;

function multiply(
  price: Price,
  { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 }: PricedTokens,
): number {
  const sum =
    inputTokens * price.input +
    outputTokens * price.output +
    cacheReadTokens * price.cacheRead +
    cacheWriteTokens * price.cacheWrite;
  return sum / MILLION;
}
