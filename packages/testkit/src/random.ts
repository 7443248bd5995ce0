/** Seeded random numbers: the same seed gives the same run on every machine. */
import type { Clock } from "@lossless/core/ports";

export interface Random {
  /** A number from 0 up to, not including, 1. */
  next(): number;
  /** A whole number from 0 up to, not including, `below`. */
  below(below: number): number;
  pick<T>(items: readonly T[]): T;
  bytes(size: number): Uint8Array;
}

/** xorshift128, seeded by a small multiplicative generator. */
export function makeRandom(seed: number): Random {
  const state = new Uint32Array(4);
  let filler = (seed >>> 0) ^ 0x9e3779b9;
  for (let i = 0; i < 4; i++) {
    filler = (Math.imul(filler, 1664525) + 1013904223) >>> 0;
    state[i] = filler | 1;
  }
  const next32 = (): number => {
    const [a = 1, b = 1, c = 1, d = 1] = state;
    const mixed = (a ^ (a << 11)) >>> 0;
    state.set([b, c, d, (d ^ (d >>> 19) ^ mixed ^ (mixed >>> 8)) >>> 0]);
    return state[3] ?? 0;
  };
  const next = (): number => next32() / 2 ** 32;
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("cannot pick from an empty list");
      return item;
    },
    bytes: (size) => Uint8Array.from({ length: size }, () => below(256)),
  };
}

/** A clock that advances one millisecond per call, with randomness from a seed. */
export function makeClock(seed: number, startMs = Date.UTC(2026, 0, 1)): Clock {
  const random = makeRandom(seed);
  let now = startMs;
  return { now: () => now++, random: (size) => random.bytes(size) };
}
