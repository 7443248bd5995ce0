/**
 * Turns a text into the terms of the full-text index. The index stores two columns of space-joined terms and splits them at spaces only;
 * all rules about what a word is are here and in `scan.ts`, the same for indexing, questions and every backend.
 *
 * `words` has, in text order, stems, pieces of identifiers and single glyphs, so that phrases and parts of identifiers are found as runs of
 * words. `idents` has whole identifiers, in plain letters, each once. A term contains only letters, digits, marks, emoji and `_ - . / @`.
 * Besides the terms, the words are collected as the text spells them, for regular expressions (`spelled-words.ts`).
 */

import { ByteWriter } from "./byte-writer.ts";
import { returnUnits, takeUnits } from "./text-units.ts";
import { toPlainGlyph, toPlainWord } from "./plain-letters.ts";
import { scanUnits } from "./scan.ts";
import type { ScanSink } from "./scan.ts";
import { MAX_SPELLED_LENGTH } from "./spelled-words.ts";
import type { SpelledSink } from "./spelled-words.ts";
import { stem } from "./stem.ts";
import { addToHash, copyUnits, HASH_SEED, hashUnits } from "./word-units.ts";
import { WordTable } from "./word-table.ts";

/** Changes whenever the same text would give different terms: an index built with another version has to be rebuilt. */
export const ANALYSIS_VERSION = 1;

/** The FTS5 `tokenize` option that keeps these terms whole: only spaces separate. */
export const FTS_TOKENIZE = "ascii tokenchars '_-./@'";

/** The two columns in UTF-8, as they are stored. */
export interface IndexTerms {
  readonly words: Uint8Array;
  readonly idents: Uint8Array;
}

/** Returns the terms of a message; its spelled words are added to the spelling. */
export type ReadTerms = (spelling: SpelledSink | null) => IndexTerms;

/** Decimals and times: logs and tables are full of them, and their pieces in `words` find them just as well. */
const NUMERIC = /^(?:[+-]?\d+(?:[.:]\d+)?z?|\d{4}-\d\d-\d\d(?:t\d\d)?)$/;

/** ASCII that no term may contain: the index would split there. Plain letters can introduce it (㈱ becomes "(株)"). */
// oxlint-disable-next-line no-control-regex -- the control characters are among them
const FOREIGN = /[\u0000-\u002c\u003a-\u003f\u005b-\u005e\u0060\u007b-\u007f]/g;
/** "go-git's" refers to "go-git". */
const CONTRACTION = /['’ʼ]\p{L}{0,2}$/u;

/** Texts repeat their words, so the results are cached. */
const knownWords = new WordTable(2_000_000);
const knownGlyphs = new WordTable(500_000);
/** Identifiers and runs, by their form in the index and the spelling. They repeat within a conversation and hardly beyond. */
const knownWholes = new WordTable(500_000);

/** The index term of a word as the text writes it. */
export function termOfWord(word: string): string {
  const units = copyUnits(word);
  const hash = hashUnits(units, 0, word.length);
  return knownWords.readTerm(knownWords.find(units, 0, word.length, hash) || learnWord(word, units, 0, hash));
}

function learnWord(word: string, units: Uint16Array, start: number, hash: number): number {
  knownWords.trim();
  const term = stem(toPlainWord(word)).replaceAll(FOREIGN, "");
  return knownWords.add(units, [start, start + word.length], hash, { term, spelled: word.toLowerCase() });
}

/** The characters of most identifiers, and their plain form: lower case. 0 for every other unit. */
const plainFolds = new Uint8Array(0x10000);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./@-")
  plainFolds[character.charCodeAt(0)] = character.toLowerCase().charCodeAt(0);

const PLAIN_IDENTIFIER = /^[A-Za-z0-9_./@-]+$/;

/** The index term of a whole identifier. */
export function termOfIdentifier(identifier: string): string {
  if (PLAIN_IDENTIFIER.test(identifier)) return identifier.toLowerCase();
  return toPlainWord(identifier.replace(CONTRACTION, "")).replaceAll("\\", "/").replaceAll(FOREIGN, "");
}

/**
 * The terms of a text, ready to be stored; its words as spelled go into `spelling`.
 *
 * @example
 * analyzeForIndex("Fixed parseConfig"); // { words: "fix pars config", idents: "parseconfig" }, spelled: fixed parse config parseconfig
 */
export function analyzeForIndex(
  text: string,
  spelling: SpelledSink | null = null,
): { readonly words: string; readonly idents: string } {
  const { words, idents } = encodeForIndex(text, spelling);
  return { words: decodeTerms(words), idents: decodeTerms(idents) };
}

export const decodeTerms = (terms: Uint8Array): string =>
  Buffer.from(terms.buffer, terms.byteOffset, terms.byteLength).toString();

/** The same in bytes, for callers that store the terms or pass them on. */
export function encodeForIndex(text: string, spelling: SpelledSink | null = null): IndexTerms {
  return reader.read(text, spelling);
}

/** Without the space after the last term. */
const withoutLast = (terms: Buffer, start: number, end: number): Uint8Array =>
  terms.subarray(start, Math.max(start, end - 1));

const KEPT_BYTES = 1 << 16;
const NO_UNITS = new Uint16Array(0);
let texts = 0;

/** Writes the terms of one text after the other. A single instance, so that only the terms are allocated for each text. */
class TermReader implements ScanSink {
  readonly #terms = new ByteWriter(KEPT_BYTES);
  /** Records of the identifiers, each once. */
  readonly #idents: number[] = [];
  readonly #plainUnits = new Uint16Array(MAX_SPELLED_LENGTH);
  #text = "";
  #units = NO_UNITS;
  #spelling: SpelledSink | null = null;
  /** What was made plain last: an identifier is usually a run as well. */
  #plainStart = 0;
  #plainEnd = 0;
  #plain = 0;

  read(text: string, spelling: SpelledSink | null): IndexTerms {
    const taken = takeUnits(text);
    this.#begin(text, taken.units, spelling);
    scanUnits(taken, this);
    const wordsEnd = this.#terms.length;
    for (const record of this.#idents) knownWholes.writeTerm(record, this.#terms);
    const bytes = Buffer.from(this.#terms.finish());
    this.#begin("", NO_UNITS, null);
    returnUnits(taken);
    return { words: withoutLast(bytes, 0, wordsEnd), idents: withoutLast(bytes, wordsEnd, bytes.length) };
  }

  /** Resets the state of the previous text. */
  #begin(text: string, units: Uint16Array<ArrayBuffer>, spelling: SpelledSink | null): void {
    texts = (texts + 1) | 0;
    this.#text = text;
    this.#units = units;
    this.#spelling = spelling;
    this.#terms.clear(KEPT_BYTES);
    this.#idents.length = 0;
    this.#plainEnd = 0;
    knownWholes.trim();
  }

  word(start: number, end: number, _chain: number, hash: number): void {
    const units = this.#units;
    const record =
      knownWords.find(units, start, end, hash) || learnWord(this.#text.slice(start, end), units, start, hash);
    knownWords.writeTerm(record, this.#terms);
    if (this.#spelling !== null) knownWords.giveSpelled(record, this.#spelling);
  }

  glyph(start: number, end: number): void {
    const units = this.#units;
    const hash = hashUnits(units, start, end);
    const record = knownGlyphs.find(units, start, end, hash) || this.#learnGlyph(start, end, hash);
    knownGlyphs.writeTerm(record, this.#terms);
  }

  identifier(start: number, end: number): void {
    const record = this.#findPlain(start, end) || findWhole(termOfIdentifier(this.#text.slice(start, end)));
    if (knownWholes.mark(record, texts)) this.#idents.push(record);
  }

  payload(): void {
    this.#spelling?.addOpaque();
  }

  run(start: number, end: number): void {
    if (this.#spelling === null) return;
    if (end - start > MAX_SPELLED_LENGTH) return this.#spelling.addOpaque();
    const record = this.#findPlain(start, end) || findWhole(this.#text.slice(start, end).toLowerCase());
    knownWholes.giveSpelled(record, this.#spelling);
  }

  #learnGlyph(start: number, end: number, hash: number): number {
    knownGlyphs.trim();
    const glyph = this.#text.slice(start, end);
    const term = toPlainGlyph(glyph).toLowerCase().replaceAll(FOREIGN, "");
    return knownGlyphs.add(this.#units, [start, end], hash, { term, spelled: "" });
  }

  /** The record of a plain identifier, which is folded here without making a string; 0 for others. */
  #findPlain(start: number, end: number): number {
    if (start !== this.#plainStart || end !== this.#plainEnd) {
      this.#plain = this.#foldPlain(start, end);
      this.#plainStart = start;
      this.#plainEnd = end;
    }
    return this.#plain;
  }

  #foldPlain(start: number, end: number): number {
    const units = this.#units;
    const plainUnits = this.#plainUnits;
    const length = end - start;
    let hash = HASH_SEED;
    for (let index = 0; index < length; index++) {
      const unit = plainFolds[units[start + index] as number] as number;
      if (unit === 0) return 0;
      plainUnits[index] = unit;
      hash = addToHash(hash, unit);
    }
    return knownWholes.find(plainUnits, 0, length, hash) || this.#learnPlain(start, end, hash);
  }

  #learnPlain(start: number, end: number, hash: number): number {
    const isNumeric =
      startsWithDigit(this.#plainUnits) && NUMERIC.test(this.#text.slice(start, end).toLowerCase());
    return knownWholes.addAsItIs(this.#plainUnits, 0, end - start, hash, !isNumeric);
  }
}

/** Nothing plain is numeric unless it starts with a digit. */
const startsWithDigit = (units: Uint16Array): boolean =>
  (units[0] as number) >= 0x30 && (units[0] as number) <= 0x39;

/** The record of an identifier in its index form, or of a run in its spelled form. */
function findWhole(whole: string): number {
  const units = copyUnits(whole);
  const hash = hashUnits(units, 0, whole.length);
  const known = knownWholes.find(units, 0, whole.length, hash);
  if (known !== 0) return known;
  const term = NUMERIC.test(whole) ? "" : whole;
  return knownWholes.add(units, [0, whole.length], hash, { term, spelled: whole });
}

const reader = new TermReader();
