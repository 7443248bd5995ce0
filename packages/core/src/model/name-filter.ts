/**
 * Names that were seen, in memory that does not grow (a Bloom filter): what it calls new is new, what it calls seen was seen or, with two
 * million names in it, one in fifty times was not.
 */
import { hashHigh, hashLow } from "./name-hash.ts";

/** 2 MB. */
const BITS = 2 ** 24;
const BITS_PER_NAME = 5;

export class NameFilter {
  readonly #words = new Int32Array(BITS / 32);

  add(name: string): void {
    const [step, start] = [hashHigh(name) | 1, hashLow(name)];
    for (let number = 0; number < BITS_PER_NAME; number++) {
      const bit = (start + Math.imul(step, number)) & (BITS - 1);
      (this.#words[bit >>> 5] as number) |= 1 << (bit & 31);
    }
  }

  mayHave(name: string): boolean {
    const [step, start] = [hashHigh(name) | 1, hashLow(name)];
    for (let number = 0; number < BITS_PER_NAME; number++) {
      const bit = (start + Math.imul(step, number)) & (BITS - 1);
      if (((this.#words[bit >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }
}
