/**
 * A cache of words, found by their place in a text, with the term and the spelling of each as UTF-8, ready to be written. A map of strings
 * would need each word cut out and hashed before the lookup, which is most of the time of reading a text; here the text is read in place,
 * and nothing is allocated for a known word. Everything is in one block of memory, record after record: the data of a word is close
 * together, and the garbage collector has nothing to trace.
 *
 * Invariant: two words share a record only if they are equal unit by unit.
 */
import type { ByteWriter } from "./byte-writer.ts";
import type { SpelledSink } from "./spelled-words.ts";
import { spreadHash } from "./word-units.ts";

/** The start of a record. The units of the word, its spelling and its term follow. */
const HASH = 0;
const UNITS = 1;
/** Byte offsets from the start of the memory. */
const SPELLED_AT = 2;
const SPELLED_END = 3;
const TERM_AT = 4;
const TERM_END = 5;
/** The last text the word was marked in. */
const MARKED_IN = 6;
/** The number of the last sink it was given to. */
const GIVEN_TO = 7;
/** What was noted for it, and in which batch. */
const NOTED_IN = 8;
const NOTE = 9;
const HEAD = 10;

const FIRST_SLOTS = 1_024;
const FIRST_INTS = FIRST_SLOTS * HEAD;
const MAX_BYTES_PER_UNIT = 3;
const SPACE = 0x20;

export class WordTable {
  readonly #maxBytes: number;
  /** Records by hash, each identified by its offset; 0 is none. At least half of the slots are free, so that a search is short. */
  #slots = new Int32Array(FIRST_SLOTS);
  #size = 0;
  /** The memory, as its element types. */
  #ints = new Int32Array(FIRST_INTS);
  #units = new Uint16Array(this.#ints.buffer);
  #bytes = Buffer.from(this.#ints.buffer);
  /** Where the next record starts. */
  #next = 1;
  /** Terms as strings, made on request. */
  #terms = new Map<number, string>();

  /** When the words take more than that, {@link trim} drops them all. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The record of the word whose units are at `start`, or 0. */
  find(units: Uint16Array, start: number, end: number, hash: number): number {
    const slots = this.#slots;
    const ints = this.#ints;
    const known = this.#units;
    const mask = slots.length - 1;
    const length = end - start;
    for (let slot = spreadHash(hash) & mask; ; slot = (slot + 1) & mask) {
      const record = slots[slot] as number;
      if (record === 0) return 0;
      if (ints[record + HASH] !== hash || ints[record + UNITS] !== length) continue;
      const knownAt = 2 * (record + HEAD);
      let same = 0;
      while (same < length && known[knownAt + same] === units[start + same]) same++;
      if (same === length) return record;
    }
  }

  /** Adds a word that was not found, and returns its record. */
  add(
    units: Uint16Array,
    [start, end]: readonly [start: number, end: number],
    hash: number,
    { term, spelled }: { readonly term: string; readonly spelled: string },
  ): number {
    const record = this.#begin(units, start, end, hash, spelled.length + term.length);
    const ints = this.#ints;
    const spelledAt = ints[record + SPELLED_AT] as number;
    const spelledEnd = spelledAt + this.#bytes.write(spelled, spelledAt, "utf8");
    // A stem is usually the beginning of its word, so its bytes are already there.
    const isBeginning = spelled.startsWith(term) && Buffer.byteLength(term) === term.length;
    const termAt = isBeginning ? spelledAt : spelledEnd;
    const termEnd = termAt + (isBeginning ? term.length : this.#bytes.write(term, termAt, "utf8"));
    ints[record + SPELLED_END] = spelledEnd;
    ints[record + TERM_AT] = termAt;
    ints[record + TERM_END] = termEnd;
    this.#end(Math.max(spelledEnd, termEnd));
    return record;
  }

  /** The same for an ASCII word that is its own spelling, and its own term unless it has none. */
  addAsItIs(units: Uint16Array, start: number, end: number, hash: number, hasTerm: boolean): number {
    const record = this.#begin(units, start, end, hash, end - start);
    const ints = this.#ints;
    const bytes = this.#bytes;
    let bytesEnd = ints[record + SPELLED_AT] as number;
    ints[record + TERM_AT] = bytesEnd;
    for (let at = start; at < end; at++) bytes[bytesEnd++] = units[at] as number;
    ints[record + SPELLED_END] = bytesEnd;
    ints[record + TERM_END] = hasTerm ? bytesEnd : (ints[record + TERM_AT] as number);
    this.#end(bytesEnd);
    return record;
  }

  #begin(units: Uint16Array, start: number, end: number, hash: number, textUnits: number): number {
    const length = end - start;
    this.#makeRoom(HEAD + length + Math.ceil((textUnits * MAX_BYTES_PER_UNIT) / 4) + 1);
    const record = this.#next;
    const ints = this.#ints;
    const known = this.#units;
    this.#occupy(record, hash);
    this.#size++;
    ints[record + HASH] = hash;
    ints[record + UNITS] = length;
    ints[record + MARKED_IN] = 0;
    ints[record + GIVEN_TO] = 0;
    ints[record + NOTED_IN] = 0;
    const unitsAt = 2 * (record + HEAD);
    for (let index = 0; index < length; index++) known[unitsAt + index] = units[start + index] as number;
    ints[record + SPELLED_AT] = 2 * (unitsAt + length);
    return record;
  }

  #end(bytesEnd: number): void {
    this.#next = (bytesEnd + 3) >>> 2;
  }

  /** Writes the term followed by a space. Writes nothing for a word without a term. */
  writeTerm(record: number, to: ByteWriter): void {
    const at = this.#ints[record + TERM_AT] as number;
    const end = this.#ints[record + TERM_END] as number;
    if (at < end) to.writeRange(this.#bytes, at, end, SPACE);
  }

  readTerm(record: number): string {
    let term = this.#terms.get(record);
    if (term === undefined) {
      term = this.#bytes.toString("utf8", this.#ints[record + TERM_AT], this.#ints[record + TERM_END]);
      this.#terms.set(record, term);
    }
    return term;
  }

  /** False when the word was marked in this text before. */
  mark(record: number, text: number): boolean {
    if (this.#ints[record + MARKED_IN] === text) return false;
    this.#ints[record + MARKED_IN] = text;
    return true;
  }

  /** Passes a word's spelling to the sink, unless it already has it. */
  giveSpelled(record: number, sink: SpelledSink): void {
    const ints = this.#ints;
    if (ints[record + GIVEN_TO] === sink.number) return;
    ints[record + GIVEN_TO] = sink.number;
    if (ints[record + NOTED_IN] === sink.batch) return sink.repeat(ints[record + NOTE] as number);
    ints[record + NOTED_IN] = sink.batch;
    ints[record + NOTE] = sink.add(
      this.#bytes,
      ints[record + SPELLED_AT] as number,
      ints[record + SPELLED_END] as number,
    );
  }

  /** Drops all words when there are too many. That also clears the marks, so not while they matter. */
  trim(): void {
    if (4 * this.#next <= this.#maxBytes) return;
    // The memory is reused, unless one huge text made it grow far beyond its limit.
    if (this.#ints.byteLength <= 2 * this.#maxBytes) this.#slots.fill(0);
    else {
      this.#slots = new Int32Array(FIRST_SLOTS);
      this.#hold(new Int32Array(FIRST_INTS));
    }
    this.#size = 0;
    this.#next = 1;
    this.#terms.clear();
  }

  #makeRoom(ints: number): void {
    const needed = this.#next + ints;
    if (needed > this.#ints.length) {
      const grown = new Int32Array(Math.max(needed, 2 * this.#ints.length));
      grown.set(this.#ints);
      this.#hold(grown);
    }
    if (2 * (this.#size + 1) <= this.#slots.length) return;
    const before = this.#slots;
    this.#slots = new Int32Array(2 * before.length);
    for (const record of before) if (record !== 0) this.#occupy(record, this.#ints[record + HASH] as number);
  }

  #hold(ints: Int32Array<ArrayBuffer>): void {
    this.#ints = ints;
    this.#units = new Uint16Array(ints.buffer);
    this.#bytes = Buffer.from(ints.buffer);
  }

  #occupy(record: number, hash: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = spreadHash(hash) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = record;
  }
}
