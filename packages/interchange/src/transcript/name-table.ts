/**
 * Names of lines, each with a number, for files with millions of them: 12 bytes a name instead of the hundred that a map of strings takes. Names
 * are kept as 64-bit hashes, so two names could collide: once in ten million files of a million lines. The second line would then be named as a
 * repetition of the first, consistently in every later import of the file.
 */

import { hashHigh, hashLow } from "./name-hash.ts";

/** Names are spread over tables that grow one at a time: a single table would temporarily need half as much memory again to grow. */
const TABLES = 32;
const FIRST_SLOTS = 64;
const MAX_LOAD = 0.85;
const FREE = -1;

/** Numbers per slot: adjacent, so that reading a slot takes one memory access. */
const WIDTH = 3;
const HIGH = 0;
const LOW = 1;
const VALUE = 2;

export class NameTable {
  readonly #tables = Array.from({ length: TABLES }, () => new HashTable());

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  get(name: string): number | undefined {
    const high = hashHigh(name);
    return this.#tableOf(high).get(high, hashLow(name));
  }

  /** `value` must not be negative. */
  set(name: string, value: number): void {
    const high = hashHigh(name);
    this.#tableOf(high).set(high, hashLow(name), value);
  }

  /** False for a name that already exists: it keeps its value. */
  add(name: string, value: number): boolean {
    const high = hashHigh(name);
    return this.#tableOf(high).add(high, hashLow(name), value);
  }

  #tableOf(high: number): HashTable {
    return this.#tables[high & (TABLES - 1)] as HashTable;
  }
}

class HashTable {
  #mask = FIRST_SLOTS - 1;
  #slots = makeSlots(FIRST_SLOTS);
  #size = 0;

  get(high: number, low: number): number | undefined {
    const value = this.#slots[this.#find(high, low) + VALUE] as number;
    return value === FREE ? undefined : value;
  }

  set(high: number, low: number, value: number): void {
    const slot = this.#find(high, low);
    if (this.#slots[slot + VALUE] === FREE) this.#fill(slot, high, low, value);
    else this.#slots[slot + VALUE] = value;
  }

  add(high: number, low: number, value: number): boolean {
    const slot = this.#find(high, low);
    if (this.#slots[slot + VALUE] !== FREE) return false;
    this.#fill(slot, high, low, value);
    return true;
  }

  #fill(free: number, high: number, low: number, value: number): void {
    let slot = free;
    if (this.#size >= MAX_LOAD * (this.#mask + 1)) {
      this.#grow();
      slot = this.#find(high, low);
    }
    this.#size += 1;
    this.#slots[slot + HIGH] = high;
    this.#slots[slot + LOW] = low;
    this.#slots[slot + VALUE] = value;
  }

  /** Where the slot of a name begins, or the free slot for it. */
  #find(high: number, low: number): number {
    const slots = this.#slots;
    for (let number = low & this.#mask; ; number = (number + 1) & this.#mask) {
      const slot = number * WIDTH;
      if (slots[slot + VALUE] === FREE) return slot;
      if (slots[slot + LOW] === low && slots[slot + HIGH] === high) return slot;
    }
  }

  #grow(): void {
    const old = this.#slots;
    const count = 2 * (this.#mask + 1);
    this.#mask = count - 1;
    this.#slots = makeSlots(count);
    for (let from = 0; from < old.length; from += WIDTH) {
      if (old[from + VALUE] === FREE) continue;
      const to = this.#find(old[from + HIGH] as number, old[from + LOW] as number);
      for (let part = 0; part < WIDTH; part += 1) this.#slots[to + part] = old[from + part] as number;
    }
  }
}

const makeSlots = (count: number): Int32Array => new Int32Array(WIDTH * count).fill(FREE);
