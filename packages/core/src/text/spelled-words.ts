/**
 * Words as a text spells them, in lower case. They show where a literal of a regular expression may be part of a longer word, which the
 * index of whole words cannot find (`doubtful-words.ts`).
 *
 * Invariant: every run of three or more ASCII letters and digits of a text, with a letter in it, is part of one of its spelled words, or
 * the text is marked opaque.
 */
import { ByteWriter } from "./byte-writer.ts";
import { hashUnits, spreadHash } from "./word-units.ts";

/** Longer ones are hardly words. */
export const MAX_SPELLED_LENGTH = 512;

/** Receives the spelled words of texts. */
export interface SpelledSink {
  /** Lets callers that cache words know which of them this sink already has. */
  readonly number: number;
  /** Lets them know which words they may {@link repeat} by the return value of {@link add} instead of passing them again. */
  readonly batch: number;
  /** A word, in UTF-8. */
  add(bytes: Uint8Array, start: number, end: number): number;
  repeat(note: number): void;
  /** The text contains more than its words: base64, or a word too long to keep. */
  addOpaque(): void;
}

let numbers = 0;

/** A unique number for a sink or a batch. */
export const numberSink = (): number => (numbers = (numbers + 1) | 0);

/** Separates the words of a spelling. No word contains it. */
const SEPARATOR = 0x0a;
const FIRST_SLOTS = 256;
const FIRST_BYTES = 2_048;
/** Enough for the words of a few hundred messages. */
const KEPT_SLOTS = 1 << 16;
const KEPT_BYTES = 1 << 19;

/** Collects the spelled words of several texts, each once, in one block of bytes. */
export class Spelling implements SpelledSink {
  number = numberSink();
  /** The words, each followed by a separator. */
  readonly #bytes = new ByteWriter(FIRST_BYTES);
  /** Offsets of words, counted from 1, by their hash; at least half of the slots are free. */
  #slots = new Int32Array(FIRST_SLOTS);
  #size = 0;
  #isOpaque = false;

  /** There is nothing to repeat: each word is needed once. */
  get batch(): number {
    return this.number;
  }

  add(bytes: Uint8Array, start: number, end: number): number {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    const slot = this.#slotOf(bytes, start, end);
    if (this.#slots[slot] !== 0) return 0;
    this.#slots[slot] = this.#bytes.length + 1;
    this.#size++;
    this.#bytes.writeRange(bytes, start, end, SEPARATOR);
    return 0;
  }

  repeat(): void {}

  addOpaque(): void {
    this.#isOpaque = true;
  }

  /** Whether opaque content was met since the last call. */
  takeOpaque(): boolean {
    const isOpaque = this.#isOpaque;
    this.#isOpaque = false;
    return isOpaque;
  }

  /** Starts over, reusing its memory if that is not much. */
  clear(): void {
    this.number = numberSink();
    this.#bytes.clear(KEPT_BYTES);
    if (this.#slots.length <= KEPT_SLOTS) this.#slots.fill(0);
    else this.#slots = new Int32Array(KEPT_SLOTS);
    this.#size = 0;
    this.#isOpaque = false;
  }

  /** The words in UTF-8, separated by newlines. */
  encode(): Uint8Array {
    return this.#bytes.block.subarray(0, Math.max(0, this.#bytes.length - 1));
  }

  readWords(): ReadonlySet<string> {
    return new Set(this.#size === 0 ? [] : Buffer.from(this.encode()).toString().split("\n"));
  }

  /** The slot of a word, or the free one that it would get. */
  #slotOf(bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#slots;
    const known = this.#bytes.block;
    const mask = slots.length - 1;
    const length = end - start;
    for (let slot = spreadHash(hashUnits(bytes, start, end)) & mask; ; slot = (slot + 1) & mask) {
      const at = (slots[slot] as number) - 1;
      if (at < 0) return slot;
      let same = 0;
      while (same < length && known[at + same] === bytes[start + same]) same++;
      if (same === length && known[at + same] === SEPARATOR) return slot;
    }
  }

  #grow(): void {
    this.#slots = new Int32Array(2 * this.#slots.length);
    const known = this.#bytes.block;
    for (let start = 0; start < this.#bytes.length;) {
      const end = known.indexOf(SEPARATOR, start);
      this.#slots[this.#slotOf(known, start, end)] = start + 1;
      start = end + 1;
    }
  }
}
