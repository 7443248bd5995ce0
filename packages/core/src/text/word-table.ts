/**
 * Words met before, found by where they stand in a text. A map of strings would need each word cut out and hashed before it can be asked,
 * which is most of the time of reading a text; here the text is read in place, and nothing is made for a word that is known.
 *
 * Invariant: two words share a value only if they are equal unit by unit.
 */

const SLOTS = 1 << 17;
/** So few that a search for a free slot is short. */
const MAX_WORDS = 50_000;

export class WordTable<Value> {
  readonly #make: (word: string) => Value;
  readonly #hashes = new Int32Array(SLOTS);
  /** The number of the word in a slot, counted from 1. */
  readonly #numbers = new Int32Array(SLOTS);
  #words: string[] = [""];
  #values: (Value | null)[] = [null];

  /** `make` says what is to be remembered of a word. */
  constructor(make: (word: string) => Value) {
    this.#make = make;
  }

  /** What is remembered of the word that stands at `start`. */
  get(text: string, start: number, end: number): Value {
    let hash = end - start;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    hash ^= hash >>> 15;
    for (let slot = hash & (SLOTS - 1); ; slot = (slot + 1) & (SLOTS - 1)) {
      const number = this.#numbers[slot] as number;
      if (number === 0) return this.#add(slot, hash, copyUnits(text, start, end));
      if (this.#hashes[slot] === hash && standsAt(text, start, end, this.#words[number] as string))
        return this.#values[number] as Value;
    }
  }

  #add(slot: number, hash: number, word: string): Value {
    const value = this.#make(word);
    if (this.#words.length > MAX_WORDS) this.#clear();
    this.#hashes[slot] = hash;
    this.#numbers[slot] = this.#words.length;
    this.#words.push(word);
    this.#values.push(value);
    return value;
  }

  #clear(): void {
    this.#numbers.fill(0);
    this.#words = [""];
    this.#values = [null];
  }
}

/** A string of its own: a slice would keep the whole text it was cut from. */
function copyUnits(text: string, start: number, end: number): string {
  const units: number[] = [];
  for (let at = start; at < end; at++) units.push(text.charCodeAt(at));
  return String.fromCharCode(...units);
}

function standsAt(text: string, start: number, end: number, word: string): boolean {
  if (word.length !== end - start) return false;
  for (let at = 0; at < word.length; at++)
    if (word.charCodeAt(at) !== text.charCodeAt(start + at)) return false;
  return true;
}
