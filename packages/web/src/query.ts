/** Parses request parameters: numbers and words from an address; errors say what is allowed. */
import { EngineError } from "@lossless/core";

export interface Bounds {
  readonly least: number;
  readonly most: number;
  readonly otherwise: number;
}

export const ANY_ID: Bounds = { least: 1, most: Number.MAX_SAFE_INTEGER, otherwise: 1 };

export function readNumber(query: URLSearchParams, name: string, { least, most, otherwise }: Bounds): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new EngineError(
    "usage",
    `cannot use ${name}=${text}: it must be a whole number from ${least} to ${most}`,
  );
}

/** One of a few words; the first when absent. */
export function readWord<Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly [Word, ...Word[]],
): Word {
  const text = query.get(name) ?? words[0];
  const word = words.find((some) => some === text);
  if (word !== undefined) return word;
  throw new EngineError("usage", `cannot use ${name}=${text}: it must be one of ${words.join(", ")}`);
}
