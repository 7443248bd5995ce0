/**
 * The types of setting values. Each type defines four things in one place, so that they cannot diverge: its limits in words, how to check a
 * JSON value, how to read text (an environment variable, a command line), and its JSON Schema. Pure; nothing here knows a key.
 */
import { isAbsolute } from "node:path";
import { given, isObject } from "../text/json-object.ts";

export type JsonSchema = { readonly [keyword: string]: unknown };

/** What is wrong inside a value: `at` is the path below the key ("" for the value itself); `says` completes the line. */
export interface ValueProblem {
  readonly at: string;
  readonly value: unknown;
  readonly says: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ValueProblem[] };

export interface ValueType<T> {
  /** Short word for tables: `bool`, `int`, … */
  readonly name: string;
  /** Completes the sentence "must be …". */
  readonly limits: string;
  readonly schema: JsonSchema;
  /** The caller that knows the home directory expands a leading `~`. */
  readonly isPath: boolean;
  /** Accepts a value from a JSON file; text is never converted to numbers or flags. */
  check(value: unknown): Checked<T>;
  /** Accepts a value as text. */
  parse(text: string): Checked<T>;
}

export interface ProviderModel {
  readonly provider: string;
  readonly model: string;
}

export interface ThresholdMatch {
  readonly model?: string;
  readonly sessionPattern?: string;
  readonly modelContextWindowMin?: number;
  readonly modelContextWindowMax?: number;
}

/** One rule of `contextThresholdOverrides`: when every matcher holds, these values replace the general ones. */
export interface ThresholdOverride {
  readonly name?: string;
  readonly match: ThresholdMatch;
  readonly contextThreshold: number;
  readonly freshTailCount?: number;
  readonly leafChunkTokens?: number;
}

const pass = <T>(value: T): Checked<T> => ({ ok: true, value });
const refuse = <T>(value: unknown, mustBe: string): Checked<T> => ({
  ok: false,
  problems: [{ at: "", value, says: `must be ${mustBe}` }],
});

const WORDS_FOR_TRUE = new Set(["true", "1", "yes", "on"]);
const WORDS_FOR_FALSE = new Set(["false", "0", "no", "off"]);

export function booleanType(): ValueType<boolean> {
  const limits = "true or false";
  return {
    name: "bool",
    limits,
    schema: { type: "boolean" },
    isPath: false,
    check: (value) => (typeof value === "boolean" ? pass(value) : refuse(value, limits)),
    parse(text) {
      const word = text.trim().toLowerCase();
      if (WORDS_FOR_TRUE.has(word)) return pass(true);
      if (WORDS_FOR_FALSE.has(word)) return pass(false);
      return refuse(text, limits);
    },
  };
}

export interface NumberLimits {
  readonly min?: number | undefined;
  /** The value must be greater than this. */
  readonly above?: number | undefined;
  readonly max?: number | undefined;
}

export function integerType(bounds: NumberLimits = {}): ValueType<number> {
  return numeric("int", "a whole number", "integer", Number.isSafeInteger, bounds);
}

export function numberType(bounds: NumberLimits = {}): ValueType<number> {
  return numeric("number", "a number", "number", Number.isFinite, bounds);
}

function numeric(
  name: string,
  noun: string,
  schemaType: string,
  isOfKind: (value: unknown) => boolean,
  { min, above, max }: NumberLimits,
): ValueType<number> {
  const bounds = [
    min === undefined ? "" : `at least ${min}`,
    above === undefined ? "" : `greater than ${above}`,
    max === undefined ? "" : `at most ${max}`,
  ].filter(Boolean);
  const limits = [noun, bounds.join(" and ")].filter(Boolean).join(", ");
  const check = (value: unknown): Checked<number> => {
    const inside =
      typeof value === "number" &&
      isOfKind(value) &&
      (min === undefined || value >= min) &&
      (above === undefined || value > above) &&
      (max === undefined || value <= max);
    return inside ? pass(value) : refuse(value, limits);
  };
  return {
    name,
    limits,
    schema: { type: schemaType, ...given({ minimum: min, exclusiveMinimum: above, maximum: max }) },
    isPath: false,
    check,
    parse(text) {
      const looksNumeric = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text.trim());
      return looksNumeric && check(Number(text)).ok ? pass(Number(text)) : refuse(text, limits);
    },
  };
}

/** Free text; a text in JSON quotes is unquoted when it comes from a command line. */
export function textType(): ValueType<string> {
  return textLike("string", "text", { type: "string" }, () => true);
}

export function filledTextType(): ValueType<string> {
  const isFilled = (text: string): boolean => text.trim() !== "";
  return textLike("string", "text, not empty", { type: "string", minLength: 1 }, isFilled);
}

export function pathType(): ValueType<string> {
  const isUsable = (text: string): boolean => text.trim() !== "" && !text.includes("\0");
  return {
    ...textLike("path", "a path, not empty", { type: "string", minLength: 1 }, isUsable),
    isPath: true,
  };
}

/** A path that does not depend on the working directory; `~` is the home directory. */
export function absolutePathType(): ValueType<string> {
  const path = pathType();
  const limits = "an absolute path, or one that begins with ~/";
  const demand = (checked: Checked<string>): Checked<string> => {
    if (!checked.ok) return refuse(checked.problems[0]?.value, limits);
    return isAbsolute(checked.value) || /^~(?=$|[/\\])/.test(checked.value)
      ? checked
      : refuse(checked.value, limits);
  };
  return {
    ...path,
    limits,
    check: (value) => demand(path.check(value)),
    parse: (text) => demand(path.parse(text)),
  };
}

export function urlType(): ValueType<string> {
  const isWeb = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  return textLike("url", "an address that starts with http:// or https://", { type: "string" }, isWeb);
}

export function timezoneType(): ValueType<string> {
  const limits = "a time zone of the IANA list, such as Europe/Paris";
  return textLike("IANA name", limits, { type: "string" }, isTimezone);
}

export function isTimezone(text: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone !== "";
  } catch {
    // Intl throws a RangeError for an unknown zone; there is no function that only checks.
    return false;
  }
}

function textLike(
  name: string,
  limits: string,
  schema: JsonSchema,
  isAllowed: (text: string) => boolean,
): ValueType<string> {
  const check = (value: unknown): Checked<string> =>
    typeof value === "string" && isAllowed(value) ? pass(value) : refuse(value, limits);
  return { name, limits, schema, isPath: false, check, parse: (text) => check(unquote(text)) };
}

function unquote(text: string): string {
  if (!/^".*"$/s.test(text.trim())) return text;
  const parsed = parseJson(text);
  return typeof parsed === "string" ? parsed : text;
}

export function choiceType<const C extends string>(choices: readonly C[]): ValueType<C> {
  const limits = `one of ${choices.join(", ")}`;
  const isChoice = (value: unknown): value is C => choices.some((choice) => choice === value);
  return {
    name: choices.map((choice) => `\`${choice}\``).join(" | "),
    limits,
    schema: { type: "string", enum: choices },
    isPath: false,
    check: (value) => (isChoice(value) ? pass(value) : refuse(value, limits)),
    parse(text) {
      const word = text.trim();
      return isChoice(word) ? pass(word) : refuse(text, limits);
    },
  };
}

/** Words such as session patterns or tag names; blank entries are dropped, and text is split at commas. */
export function listType(): ValueType<readonly string[]> {
  const limits = "a list of texts";
  return {
    name: "string[]",
    limits,
    schema: { type: "array", items: { type: "string" } },
    isPath: false,
    check: (value) => checkEach(value, limits, checkWord, dropBlank),
    parse: (text) => parseList(text, limits, checkWord, dropBlank, splitAtCommas),
  };
}

/** Sets of patterns that can be named instead of an expression. */
export const REDACTION_SETS = ["@keys", "@tokens", "@cards"] as const;

/**
 * Regular expressions and names of sets. Text is one expression or a JSON array, because an expression may contain commas. A word that
 * begins with @ is a set: as an expression a misspelt name would match nothing, and nobody would notice.
 */
export function expressionsType(): ValueType<readonly string[]> {
  const limits = `a list of regular expressions and sets (${REDACTION_SETS.join(", ")})`;
  return {
    name: "regex[]",
    limits,
    schema: { type: "array", items: { type: "string", minLength: 1 } },
    isPath: false,
    check: (value) => checkEach(value, limits, checkExpression),
    parse: (text) =>
      parseList(
        text,
        limits,
        checkExpression,
        (items) => items,
        (one) => (one === "" ? [] : [one]),
      ),
  };
}

/** Pairs of provider and model; as text `provider/model,provider/model`. */
export function providersType(): ValueType<readonly ProviderModel[]> {
  const limits = "a list of {provider, model}";
  const item: JsonSchema = { type: "string", minLength: 1 };
  return {
    name: "[{provider, model}]",
    limits,
    schema: {
      type: "array",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["provider", "model"],
        properties: { provider: item, model: item },
      },
    },
    isPath: false,
    check: (value) => checkEach(value, limits, checkProvider),
    parse: (text) =>
      parseList(
        text,
        limits,
        (entry) => (typeof entry === "string" ? parseProvider(entry) : checkProvider(entry)),
        (items) => items,
        splitAtCommas,
      ),
  };
}

export function overridesType(): ValueType<readonly ThresholdOverride[]> {
  const limits = "a list of rules {match, contextThreshold, freshTailCount?, leafChunkTokens?}";
  const properties = (fields: Fields): JsonSchema =>
    Object.fromEntries(Object.entries(fields).map(([key, type]) => [key, type.schema]));
  return {
    name: "rules",
    limits,
    schema: {
      type: "array",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["match", "contextThreshold"],
        properties: {
          match: {
            type: "object",
            additionalProperties: false,
            minProperties: 1,
            properties: properties(MATCHERS),
          },
          ...properties(PAYLOAD),
        },
      },
    },
    isPath: false,
    check: (value) => checkEach(value, limits, checkOverride),
    parse(text) {
      const parsed = parseJson(text);
      return parsed === undefined
        ? refuse(text, `${limits}, as JSON`)
        : checkEach(parsed, limits, checkOverride);
    },
  };
}

const filledText = filledTextType();

type Fields = { readonly [key: string]: ValueType<unknown> };

const MATCHERS: Fields = {
  model: filledText,
  sessionPattern: filledText,
  modelContextWindowMin: integerType({ min: 1 }),
  modelContextWindowMax: integerType({ min: 1 }),
};

const PAYLOAD: Fields = {
  name: textType(),
  contextThreshold: numberType({ above: 0, max: 1 }),
  freshTailCount: integerType({ min: 1 }),
  leafChunkTokens: integerType({ min: 1 }),
};

function checkOverride(rule: unknown): Checked<ThresholdOverride> {
  if (!isObject(rule)) return refuse(rule, "a rule {match, contextThreshold}");
  const { match, ...payload } = rule;
  const problems = checkFields(payload, PAYLOAD, ".");
  if (payload["contextThreshold"] === undefined) {
    problems.push({ at: ".contextThreshold", value: undefined, says: "must be given in every rule" });
  }
  problems.push(...checkMatch(match));
  return problems.length === 0 ? pass(rule as unknown as ThresholdOverride) : { ok: false, problems };
}

function checkMatch(match: unknown): ValueProblem[] {
  const names = Object.keys(MATCHERS);
  if (!isObject(match) || names.every((name) => match[name] === undefined)) {
    const problems = isObject(match) ? checkFields(match, MATCHERS, ".match.") : [];
    return [
      ...problems,
      { at: ".match", value: match, says: `must be an object with at least one of ${names.join(", ")}` },
    ];
  }
  const problems = checkFields(match, MATCHERS, ".match.");
  const { modelContextWindowMin: min, modelContextWindowMax: max } = match;
  if (typeof min === "number" && typeof max === "number" && min > max) {
    problems.push({
      at: ".match.modelContextWindowMin",
      value: min,
      says: `must be at most modelContextWindowMax, ${max}`,
    });
  }
  return problems;
}

function checkFields(object: Record<string, unknown>, fields: Fields, prefix: string): ValueProblem[] {
  const problems: ValueProblem[] = [];
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    const at = `${prefix}${key}`;
    const type = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (type === undefined) {
      problems.push({
        at,
        value,
        says: `is unknown; a rule may have ${Object.keys(fields).join(", ")} here`,
      });
      continue;
    }
    const checked = type.check(value);
    if (!checked.ok) problems.push(...checked.problems.map((p) => ({ ...p, at: `${at}${p.at}` })));
  }
  return problems;
}

function checkWord(entry: unknown): Checked<string> {
  return typeof entry === "string" ? pass(entry.trim()) : refuse(entry, "text");
}

function checkExpression(entry: unknown): Checked<string> {
  if (typeof entry !== "string" || entry === "") return refuse(entry, "a regular expression, not empty");
  if (/^\s*@[\w-]*\s*$/.test(entry)) {
    if (REDACTION_SETS.some((set) => set === entry)) return pass(entry);
    return refuse(entry, `one of the sets ${REDACTION_SETS.join(", ")}, or a regular expression`);
  }
  try {
    RegExp(entry, "u");
  } catch (error) {
    return refuse(entry, `a regular expression (${error instanceof Error ? error.message : String(error)})`);
  }
  return pass(entry);
}

function checkProvider(entry: unknown): Checked<ProviderModel> {
  const mustBe = "{provider, model}, both texts that are not empty, and nothing else";
  if (!isObject(entry)) return refuse(entry, mustBe);
  const { provider, model, ...rest } = entry;
  const filled = filledText.check(provider).ok && filledText.check(model).ok;
  if (!filled || Object.keys(rest).length > 0) return refuse(entry, mustBe);
  return pass({ provider: String(provider), model: String(model) });
}

/** A model's name may itself contain slashes, so the provider ends at the first one. */
function parseProvider(text: string): Checked<ProviderModel> {
  const slash = text.indexOf("/");
  const provider = text.slice(0, Math.max(slash, 0)).trim();
  const model = text.slice(slash + 1).trim();
  return provider && model ? pass({ provider, model }) : refuse(text, "written provider/model");
}

function checkEach<T>(
  list: unknown,
  limits: string,
  checkItem: (item: unknown) => Checked<T>,
  tidy: (items: T[]) => T[] = (items) => items,
): Checked<readonly T[]> {
  if (!Array.isArray(list)) return refuse(list, limits);
  const items: T[] = [];
  const problems: ValueProblem[] = [];
  for (const [index, entry] of list.entries()) {
    const checked = checkItem(entry);
    if (checked.ok) items.push(checked.value);
    else problems.push(...checked.problems.map((p) => ({ ...p, at: `[${index}]${p.at}` })));
  }
  return problems.length === 0 ? pass(tidy(items)) : { ok: false, problems };
}

function parseList<T>(
  text: string,
  limits: string,
  checkItem: (item: unknown) => Checked<T>,
  tidy: (items: T[]) => T[],
  split: (text: string) => string[],
): Checked<readonly T[]> {
  const parsed = text.trim().startsWith("[") ? parseJson(text) : undefined;
  return checkEach(Array.isArray(parsed) ? parsed : split(text), limits, checkItem, tidy);
}

const dropBlank = (items: string[]): string[] => items.filter((item) => item !== "");

const splitAtCommas = (text: string): string[] => dropBlank(text.split(",").map((piece) => piece.trim()));

/** The value, or undefined for text that is not JSON (JSON itself has no undefined). */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
