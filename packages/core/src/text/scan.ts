/**
 * Finds the searchable pieces of a text with their places. One scanner serves indexing, questions and highlighting, so that what is
 * indexed, asked and shown can never disagree.
 *
 * A *chain* is a run of word characters, with joiners inside: `src/a/fooBar.ts`, `PROJ-42`, `don't`. It consists of *words*, the
 * pieces in order (`src a foo bar ts`), and may name *identifiers*, the wholes people copy and paste (the path, `fooBar.ts`, `fooBar`).
 * A *glyph* is one character of a script without spaces. Runs of base64 and data URLs yield nothing.
 *
 * Invariant: time is linear in the text, whatever the text is, and every range lies within it.
 */

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

/** Longer words and identifiers are cut or skipped: nobody types them, and each would be a term of its own. */
export const MAX_TERM_LENGTH = 64;

/** Receives the pieces in text order. Ranges are half-open, in UTF-16 units. */
export interface ScanSink {
  /** A word: one piece of a chain. `chain` counts chains, so that pieces of one chain can be told. */
  word(start: number, end: number, chain: number): void;
  /** An identifier as a whole; it covers one or more of the words just given. */
  identifier(start: number, end: number, chain: number): void;
  /** One character that is searched for by itself. */
  glyph(start: number, end: number): void;
  /** What stands together in the text though the words just given cut it: `fooBar`, `session2`, the `don` of `don't`. */
  run?(start: number, end: number): void;
  /** A run of base64, of which no piece is given. */
  payload?(start: number, end: number): void;
}

/** Walks `text` once and reports its pieces. Never throws, whatever the units are. */
export function scan(text: string, sink: ScanSink): void {
  new Scanner(text, sink).run();
}

/** Base64 without line breaks, at least this long, is payload; 60 leaves room for a long identifier and catches wrapped lines. */
const MIN_PAYLOAD_LENGTH = 60;

const payloadUnits = new Uint8Array(128);
for (const character of "abcdefghijklmnopqrstuvwxyz") payloadUnits[character.charCodeAt(0)] = 1;
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZ") payloadUnits[character.charCodeAt(0)] = 2;
for (const character of "0123456789+/_-") payloadUnits[character.charCodeAt(0)] = 3;

/** 0 when the unit cannot belong to base64, otherwise its group: small letters, capitals, the rest. */
function payloadGroup(unit: number): number {
  return unit < 128 ? (payloadUnits[unit] as number) : 0;
}

function isWordKind(kind: number): boolean {
  return kind >= LOWER && kind <= UNDERSCORE;
}

/** What may end a plain word: ASCII that neither goes on with a chain nor belongs to base64. */
const plainEnds = new Uint8Array(128);
for (const character of ' \t\n\r,;:!?()[]{}<>"`=|*&%#$^~') plainEnds[character.charCodeAt(0)] = 1;

/**
 * The end of a word of small ASCII letters that stands by itself, or `start`. Nine words in ten are such; the rules for chains,
 * identifiers and payloads cannot apply to them.
 */
function endOfPlainWord(text: string, start: number): number {
  let end = start;
  let unit = text.charCodeAt(end);
  while (unit >= 0x61 && unit <= 0x7a) unit = text.charCodeAt(++end);
  // Behind the end of the text the unit is NaN.
  const isAlone = unit < 128 ? plainEnds[unit] === 1 : end === text.length;
  return isAlone && end - start < MIN_PAYLOAD_LENGTH ? end : start;
}

/** "'s", "'re", "n't" … after a word: they are read over, and the t of "n't" takes its n with it. */
const CONTRACTION = /^(?:s|re|ve|ll|m|d|t)$/i;

class Scanner {
  readonly #text: string;
  readonly #sink: ScanSink;
  #chain = 0;
  /** Up to here it is known that no payload starts, so no stretch is judged twice. */
  #judgedUntil = 0;
  /** Start of the part since the last `/`, `\` or `@`: a file name, a package, a host. */
  #segmentStart = 0;
  #segmentAtoms = 0;
  #segments = 0;

  constructor(text: string, sink: ScanSink) {
    this.#text = text;
    this.#sink = sink;
  }

  run(): void {
    const text = this.#text;
    let at = 0;
    while (at < text.length) {
      const plainEnd = endOfPlainWord(text, at);
      if (plainEnd > at) {
        this.#sink.word(at, plainEnd, ++this.#chain);
        at = plainEnd;
        continue;
      }
      const kind = kindAt(text, at);
      if (isWordKind(kind)) at = this.#scanChain(at);
      else if (kind === GLYPH) at = this.#scanGlyph(at);
      else at += 1;
    }
  }

  #scanGlyph(start: number): number {
    let end = start + unitsAt(this.#text, start);
    while (end < this.#text.length && kindAt(this.#text, end) === MARK) end += unitsAt(this.#text, end);
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
      if (joiner === "" || joiner === "/" || joiner === "\\" || joiner === "@") this.#closeSegment(at);
      if (joiner === "") break;
      at++;
      if (this.#segmentAtoms === 0) this.#segmentStart = at;
    }
    if (this.#segments > 1) this.#report(start, at);
    return at;
  }

  /** The joiner at `at` if another atom follows it, otherwise "". */
  #joinerAt(at: number): string {
    if (at + 1 >= this.#text.length || kindAt(this.#text, at) !== JOINER) return "";
    return isWordKind(kindAt(this.#text, at + 1)) ? (this.#text[at] as string) : "";
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
   * Reports the words of one atom, cut at underscores, at the humps of camel case and before a number at its end, and the atom itself
   * when it has several. Returns where the chain goes on.
   */
  #scanAtom(start: number): number {
    const text = this.#text;
    this.#segmentAtoms++;
    let pieces = 0;
    let pieceStart = start;
    let hasDigits = false;
    let isRunCut = false;
    let before = UNDERSCORE;
    let at = start;
    for (; at < text.length; at += unitsAt(text, at)) {
      const kind = kindAt(text, at);
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
    const isNegated = next > at && /t/i.test(text[at + 1] as string) && /n/i.test(text[at - 1] as string);
    pieces += this.#reportWord(pieceStart, isNegated && at - pieceStart > 1 ? at - 1 : at);
    if (pieces > 1) this.#report(start, at);
    if (isRunCut || isNegated || at - start > MAX_TERM_LENGTH) this.#sink.run?.(start, at);
    return next;
  }

  #reportWord(start: number, end: number): number {
    if (end <= start) return 0;
    this.#sink.word(start, Math.min(end, start + MAX_TERM_LENGTH), this.#chain);
    return 1;
  }

  /** `fooBar` before B; `HTTPServer` before S; but `URLs` is one word. */
  #isHump(before: number, at: number): boolean {
    if (before === LOWER) return true;
    if (before !== UPPER || kindAt(this.#text, at + 1) !== LOWER) return false;
    return this.#text[at + 1] !== "s" || isWordKind(kindAt(this.#text, at + 2));
  }

  /** `session2`, `sha256`, but not `a262de1`: digits to the end of the piece. */
  #isFinalNumber(at: number): boolean {
    let end = at + 1;
    while (kindAt(this.#text, end) === DIGIT) end++;
    const kind = kindAt(this.#text, end);
    return !isWordKind(kind) || kind === UNDERSCORE;
  }

  #endOfContraction(at: number): number {
    if (kindAt(this.#text, at) !== APOSTROPHE) return at;
    let end = at + 1;
    while (end < at + 4 && isWordKind(kindAt(this.#text, end))) end++;
    return CONTRACTION.test(this.#text.slice(at + 1, end)) ? end : at;
  }

  /**
   * The end of the base64 run at `start`, or `start` when there is none. Base64 changes between small letters, capitals and digits about
   * every second character; paths, words and hexadecimal do not.
   */
  #endOfPayload(start: number): number {
    const text = this.#text;
    if (start < this.#judgedUntil) return start;
    let end = start;
    let changes = 0;
    let capitals = 0;
    let last = 0;
    for (; end < text.length; end++) {
      const group = payloadGroup(text.charCodeAt(end));
      if (group === 0) break;
      if (group !== last) changes++;
      if (group === 2) capitals++;
      last = group;
    }
    this.#judgedUntil = end;
    const length = end - start;
    if (length < MIN_PAYLOAD_LENGTH) return start;
    const isMixed = changes > length * 0.3 && capitals > length * 0.15;
    return isMixed || capitals === length ? end : start;
  }

  /** Line numbers that tools print before each line ("   312→"): they name nothing and would outnumber the words. */
  #endOfLineNumber(start: number): number {
    const text = this.#text;
    if (kindAt(text, start) !== DIGIT) return start;
    let end = start + 1;
    while (kindAt(text, end) === DIGIT) end++;
    if (text.charCodeAt(end) !== 0x2192) return start;
    let lineStart = start;
    while (text.charCodeAt(lineStart - 1) === 0x20) lineStart--;
    return lineStart === 0 || text[lineStart - 1] === "\n" ? end + 1 : start;
  }
}
