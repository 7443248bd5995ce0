/**
 * Names of lines, each with a number, for files with millions of them: 12 bytes a name instead of the hundred that a map of strings takes.
 * Names are kept as 64-bit hashes, so two names could be taken for one: once in ten million files of a million lines. The second line
 * would then be called a repetition of the first, as it would be in every later import of the file.
 */

const FIRST_SLOTS = 1024;
const MAX_LOAD = 0.85;
const FREE = -1;

export class NameTable {
  #mask = FIRST_SLOTS - 1;
  #high = new Uint32Array(FIRST_SLOTS);
  #low = new Uint32Array(FIRST_SLOTS);
  #values = new Int32Array(FIRST_SLOTS).fill(FREE);
  #size = 0;

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  get(name: string): number | undefined {
    const slot = this.#find(hashHigh(name), hashLow(name));
    const value = this.#values[slot] as number;
    return value === FREE ? undefined : value;
  }

  /** `value` is zero or more. */
  set(name: string, value: number): void {
    const [high, low] = [hashHigh(name), hashLow(name)];
    let slot = this.#find(high, low);
    if (this.#values[slot] === FREE) {
      if (this.#size >= MAX_LOAD * (this.#mask + 1)) {
        this.#grow();
        slot = this.#find(high, low);
      }
      this.#size += 1;
      this.#high[slot] = high;
      this.#low[slot] = low;
    }
    this.#values[slot] = value;
  }

  /** The slot of a name, or the free one it would go into. */
  #find(high: number, low: number): number {
    for (let slot = low & this.#mask; ; slot = (slot + 1) & this.#mask) {
      if (this.#values[slot] === FREE) return slot;
      if (this.#low[slot] === low && this.#high[slot] === high) return slot;
    }
  }

  #grow(): void {
    const [high, low, values] = [this.#high, this.#low, this.#values];
    const slots = 2 * values.length;
    this.#mask = slots - 1;
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#values = new Int32Array(slots).fill(FREE);
    for (let from = 0; from < values.length; from += 1) {
      const value = values[from] as number;
      if (value === FREE) continue;
      const to = this.#find(high[from] as number, low[from] as number);
      this.#high[to] = high[from] as number;
      this.#low[to] = low[from] as number;
      this.#values[to] = value;
    }
  }
}

/** Two hashes that have nothing in common but their shape: FNV-1a with different starts and factors, mixed at the end. */
const hashHigh = (name: string): number => hash(name, 0x811c9dc5, 0x01000193);
const hashLow = (name: string): number => hash(name, 0x9e3779b1, 0x85ebca6b);

function hash(name: string, start: number, factor: number): number {
  let value = start;
  for (let at = 0; at < name.length; at += 1) value = Math.imul(value ^ name.charCodeAt(at), factor);
  value = Math.imul(value ^ (value >>> 16), 0xc2b2ae35);
  return (value ^ (value >>> 13)) >>> 0;
}
