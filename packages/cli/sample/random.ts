// Seeded randomness for the sample: the same key gives the same numbers on every machine.
//
// Each scene draws from its own generator, so that a change in one scene leaves the ids and outputs of all
// others as they were.

import { createHash } from "node:crypto";

export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** An integer from `low` to `high`, both included. */
  int(low: number, high: number): number;
  pick<T>(items: readonly T[]): T;
  chance(probability: number): boolean;
  text(alphabet: string, length: number): string;
}

export const HEX = "0123456789abcdef";
export const BASE62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export function createRandom(key: string): Random {
  let state = Number.parseInt(digest(key).slice(0, 8), 16);
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  const pick = <T>(items: readonly T[]): T => {
    const item = items[int(0, items.length - 1)];
    if (item === undefined) throw new Error("cannot pick: the list is empty");
    return item;
  };
  return {
    next,
    int,
    pick,
    chance: (probability) => next() < probability,
    text: (alphabet, length) => Array.from({ length }, () => alphabet[int(0, alphabet.length - 1)]).join(""),
  };
}
