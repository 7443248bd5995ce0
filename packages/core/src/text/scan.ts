/**
 * Finds the searchable pieces of a text with their places. One scanner serves indexing, questions and highlighting, so that they can never
 * disagree.
 *
 * A *chain* is a run of word characters, with joiners inside: `src/a/fooBar.ts`, `PROJ-42`, `don't`. It consists of *words*, the pieces in
 * order (`src a foo bar ts`), and may name *identifiers*, the wholes people copy and paste (the path, `fooBar.ts`, `fooBar`). A *glyph* is
 * one character of a script without spaces. Runs of base64 and data URLs yield nothing.
 *
 * Invariant: time is linear in the text, whatever the text is, and every range is within it.
 */

import { returnUnits, takeUnits } from "./text-units.ts";
import type { TextUnits } from "./text-units.ts";
import {
  APOSTROPHE,
  DIGIT,
  GLYPH,
  JOINER,
  LOWER,
  MARK,
  UNDERSCORE,
  UPPER,
  kindAt,
  unitsAt,
} from "./characters.ts";
import { addToHash, HASH_SEED, hashUnits } from "./word-units.ts";

/** Longer words and identifiers are cut or skipped: nobody types them, and each would be a separate term. */
const MAX_TERM_LENGTH = 64;

/** Receives the pieces in text order. Ranges are half-open, in UTF-16 units. */
export interface ScanSink {
  /** A word: one piece of a chain. `chain` numbers chains, to identify pieces of the same chain; `hash` is that of its units. */
  word(start: number, end: number, chain: number, hash: number): void;
  /** A whole identifier; it covers one or more of the words just reported. */
  identifier(start: number, end: number, chain: number): void;
  /** One character that is searched for by itself. */
  glyph(start: number, end: number): void;
  /** A run that the words just reported split: `fooBar`, `session2`, the `don` of `don't`. */
  run?(start: number, end: number): void;
  /** A run of base64, no piece of which is reported. */
  payload?(start: number, end: number): void;
}

/** Walks `text` once and reports its pieces. Never throws, whatever the units are. */
export function scan(text: string, sink: ScanSink): void {
  const units = takeUnits(text);
  scanUnits(units, sink);
  returnUnits(units);
}

/** The same for a caller that already has the units of the text. */
export function scanUnits(text: TextUnits, sink: ScanSink): void {
  new Scanner(text, sink).run();
}

/** Base64 without line breaks, at least this long, is payload; 60 leaves room for a long identifier and catches wrapped lines. */
const MIN_PAYLOAD_LENGTH = 60;
/** A plain word is still too short to be payload, even with the one unit of base64 that may follow it. */
const MAX_PLAIN_LENGTH = MIN_PAYLOAD_LENGTH - 1;

const payloadUnits = new Uint8Array(128);
for (const character of "abcdefghijklmnopqrstuvwxyz") payloadUnits[character.charCodeAt(0)] = 1;
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZ") payloadUnits[character.charCodeAt(0)] = 2;
for (const character of "0123456789+/_-") payloadUnits[character.charCodeAt(0)] = 3;

/** 0 when the unit cannot be part of base64, otherwise its group: lower case, upper case, the rest. */
function payloadGroup(unit: number): number {
  return unit < 128 ? (payloadUnits[unit] as number) : 0;
}

function isWordKind(kind: number): boolean {
  return kind >= LOWER && kind <= UNDERSCORE;
}

/** Ends a plain word: ASCII that neither continues a chain nor belongs to base64, and the units after the text. */
const ENDS = 1;
/** Ends a plain word if followed by one of those: the full stop, and anything else that might continue a chain. */
const ENDS_BEFORE_END = 2;
const plainEnds = new Uint8Array(0x10000);
for (const character of '\0 \t\n\r,;:!?()[]{}<>"`=|*&%#$^~') plainEnds[character.charCodeAt(0)] = ENDS;
for (const character of "./\\-@'") plainEnds[character.charCodeAt(0)] = ENDS_BEFORE_END;

const isSmall = (unit: number): boolean => unit >= 0x61 && unit <= 0x7a;
const isCapital = (unit: number): boolean => unit >= 0x41 && unit <= 0x5a;
const isFigure = (unit: number): boolean => unit >= 0x30 && unit <= 0x39;

const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const AT_SIGN = 0x40;
const ARROW = 0x2192;
const SPACE = 0x20;
const NEWLINE = 0x0a;
const [N, S, T] = [0x6e, 0x73, 0x74];

/** An ASCII letter in lower case; nothing else becomes a letter. */
const toSmall = (unit: number): number => (isCapital(unit) ? unit + 0x20 : unit);

/** "'s", "'re", "n't" … after a word: they are skipped, and the t of "n't" takes its n with it. */
const CONTRACTIONS = ["s", "re", "ve", "ll", "m", "d", "t"].map((ending) =>
  Array.from(ending, (letter) => letter.charCodeAt(0)),
);

function isContraction(units: Uint16Array, start: number, end: number): boolean {
  return CONTRACTIONS.some(
    (ending) =>
      ending.length === end - start &&
      ending.every((letter, index) => letter === toSmall(units[start + index] as number)),
  );
}

class Scanner {
  readonly #units: Uint16Array;
  readonly #length: number;
  readonly #sink: ScanSink;
  #chain = 0;
  /** No payload starts before this, so that no stretch is judged twice. */
  #judgedUntil = 0;
  /** Start of the part since the last `/`, `\` or `@`: a file name, a package, a host. */
  #segmentStart = 0;
  #segmentAtoms = 0;
  #segments = 0;

  constructor({ units, length }: TextUnits, sink: ScanSink) {
    this.#units = units;
    this.#length = length;
    this.#sink = sink;
  }

  /**
   * Nine words in ten are plain: lower-case ASCII letters, perhaps after a capital, or digits, standing alone. The rules for chains,
   * identifiers and payloads cannot apply to them, so they are found here.
   */
  run(): void {
    const units = this.#units;
    const length = this.#length;
    let at = 0;
    while (at < length) {
      let unit = units[at] as number;
      let end = at;
      let hash = HASH_SEED;
      if (isSmall(unit) || isCapital(unit)) {
        do {
          hash = addToHash(hash, unit);
          unit = units[++end] as number;
        } while (isSmall(unit));
      } else if (isFigure(unit)) {
        do {
          hash = addToHash(hash, unit);
          unit = units[++end] as number;
        } while (isFigure(unit));
      } else if (plainEnds[unit] === ENDS) {
        at += 1;
        continue;
      }
      if (end > at && end - at < MAX_PLAIN_LENGTH && this.#endsPlainly(end)) {
        this.#sink.word(at, end, ++this.#chain, hash);
        // The unit that ends a word need not be read again.
        at = end + 1;
      } else at = this.#scanOther(at);
    }
  }

  #endsPlainly(end: number): boolean {
    const units = this.#units;
    const ending = plainEnds[units[end] as number];
    return ending === ENDS || (ending === ENDS_BEFORE_END && plainEnds[units[end + 1] as number] === ENDS);
  }

  #scanOther(at: number): number {
    const kind = kindAt(this.#units, at);
    if (isWordKind(kind)) return this.#scanChain(at);
    return kind === GLYPH ? this.#scanGlyph(at) : at + 1;
  }

  #scanGlyph(start: number): number {
    const units = this.#units;
    let end = start + unitsAt(units, start);
    while (end < this.#length && kindAt(units, end) === MARK) end += unitsAt(units, end);
    this.#sink.glyph(start, end);
    return end;
  }

  #scanChain(start: number): number {
    const payloadEnd = this.#endOfPayload(start);
    if (payloadEnd > start) {
      this.#sink.payload?.(start, payloadEnd);
      return payloadEnd;
    }
    const numberEnd = this.#endOfLineNumber(start);
    if (numberEnd > start) return numberEnd;
    this.#chain++;
    this.#segmentStart = start;
    this.#segmentAtoms = 0;
    this.#segments = 0;
    let at = start;
    for (;;) {
      at = this.#scanAtom(at);
      const joiner = this.#joinerAt(at);
      if (joiner === 0 || joiner === SLASH || joiner === BACKSLASH || joiner === AT_SIGN)
        this.#closeSegment(at);
      if (joiner === 0) break;
      at++;
      if (this.#segmentAtoms === 0) this.#segmentStart = at;
    }
    if (this.#segments > 1) this.#report(start, at);
    return at;
  }

  /** The joiner at `at` if another atom follows it, otherwise 0. */
  #joinerAt(at: number): number {
    const units = this.#units;
    if (kindAt(units, at) !== JOINER) return 0;
    return isWordKind(kindAt(units, at + 1)) ? (units[at] as number) : 0;
  }

  #closeSegment(end: number): void {
    this.#segments++;
    if (this.#segmentAtoms > 1) this.#report(this.#segmentStart, end);
    this.#segmentAtoms = 0;
  }

  #report(start: number, end: number): void {
    if (end - start <= MAX_TERM_LENGTH) this.#sink.identifier(start, end, this.#chain);
  }

  /**
   * Reports the words of one atom, split at underscores, at the humps of camel case and before a number at its end, and the atom itself
   * when it has several. Returns where the chain continues.
   */
  #scanAtom(start: number): number {
    const units = this.#units;
    this.#segmentAtoms++;
    let pieces = 0;
    let pieceStart = start;
    let hasDigits = false;
    let isRunCut = false;
    let before = UNDERSCORE;
    let at = start;
    for (; ; at += unitsAt(units, at)) {
      while (isSmall(units[at] as number)) {
        before = LOWER;
        at++;
      }
      const kind = kindAt(units, at);
      if (kind === MARK && at > start) continue;
      if (!isWordKind(kind)) break;
      const isCut =
        kind === UNDERSCORE ||
        (kind === UPPER && this.#isHump(before, at)) ||
        (kind === DIGIT &&
          !hasDigits &&
          before !== UNDERSCORE &&
          at - pieceStart > 1 &&
          this.#isFinalNumber(at));
      if (isCut) {
        pieces += this.#reportWord(pieceStart, at);
        pieceStart = kind === UNDERSCORE ? at + 1 : at;
        isRunCut ||= kind !== UNDERSCORE;
        hasDigits = false;
      }
      if (kind === DIGIT) hasDigits = true;
      before = kind;
    }
    const next = this.#endOfContraction(at);
    const isNegated =
      next > at && toSmall(units[at + 1] as number) === T && toSmall(units[at - 1] as number) === N;
    pieces += this.#reportWord(pieceStart, isNegated && at - pieceStart > 1 ? at - 1 : at);
    if (pieces > 1) this.#report(start, at);
    if (isRunCut || isNegated || at - start > MAX_TERM_LENGTH) this.#sink.run?.(start, at);
    return next;
  }

  #reportWord(start: number, end: number): number {
    if (end <= start) return 0;
    const cut = Math.min(end, start + MAX_TERM_LENGTH);
    this.#sink.word(start, cut, this.#chain, hashUnits(this.#units, start, cut));
    return 1;
  }

  /** `fooBar` before B; `HTTPServer` before S; but `URLs` is one word. */
  #isHump(before: number, at: number): boolean {
    if (before === LOWER) return true;
    if (before !== UPPER || kindAt(this.#units, at + 1) !== LOWER) return false;
    return this.#units[at + 1] !== S || isWordKind(kindAt(this.#units, at + 2));
  }

  /** `session2`, `sha256`, but not `a262de1`: digits to the end of the piece. */
  #isFinalNumber(at: number): boolean {
    let end = at + 1;
    while (kindAt(this.#units, end) === DIGIT) end++;
    const kind = kindAt(this.#units, end);
    return !isWordKind(kind) || kind === UNDERSCORE;
  }

  #endOfContraction(at: number): number {
    const units = this.#units;
    if (kindAt(units, at) !== APOSTROPHE) return at;
    let end = at + 1;
    while (end < at + 4 && isWordKind(kindAt(units, end))) end++;
    return isContraction(units, at + 1, end) ? end : at;
  }

  /**
   * The end of the base64 run at `start`, or `start` when there is none. Base64 switches between lower case, upper case and digits about
   * every second character; paths, words and hexadecimal do not.
   */
  #endOfPayload(start: number): number {
    const units = this.#units;
    if (start < this.#judgedUntil || !this.#isLongEnough(start)) return start;
    let end = start;
    let changes = 0;
    let capitals = 0;
    let last = 0;
    for (; ; end++) {
      const group = payloadGroup(units[end] as number);
      if (group === 0) break;
      if (group !== last) changes++;
      if (group === 2) capitals++;
      last = group;
    }
    this.#judgedUntil = end;
    const length = end - start;
    const isMixed = changes > length * 0.3 && capitals > length * 0.15;
    return isMixed || capitals === length ? end : start;
  }

  /** Checked from the far end, where most stretches that are too short are detected soonest. */
  #isLongEnough(start: number): boolean {
    const units = this.#units;
    let at = start + MIN_PAYLOAD_LENGTH - 1;
    if (at >= this.#length) return false;
    while (at >= start && payloadGroup(units[at] as number) !== 0) at--;
    return at < start;
  }

  /** Line numbers that tools print before each line ("   312→"): they identify nothing and would outnumber the words. */
  #endOfLineNumber(start: number): number {
    const units = this.#units;
    if (kindAt(units, start) !== DIGIT) return start;
    let end = start + 1;
    while (kindAt(units, end) === DIGIT) end++;
    if (units[end] !== ARROW) return start;
    let lineStart = start;
    while (lineStart > 0 && units[lineStart - 1] === SPACE) lineStart--;
    return lineStart === 0 || units[lineStart - 1] === NEWLINE ? end + 1 : start;
  }
}
