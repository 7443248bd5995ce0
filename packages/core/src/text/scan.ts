/**
 * Finds the searchable pieces of a text with their places. One scanner serves indexing, questions and highlighting, so that what is
 * indexed, asked and shown can never disagree.
 *
 * A *chain* is a run of word characters, with joiners inside: `src/a/fooBar.ts`, `PROJ-42`, `don't`. It consists of *words*, the
 * pieces in order (`src a foo bar ts`), and may name *identifiers*, the wholes people copy and paste (the path, `fooBar.ts`, `fooBar`).
 * A *glyph* is one character of a script without spaces. Runs of base64 and data URLs yield nothing.
 */

import {
  APOSTROPHE,
  BREAK,
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
}

/** Base64 without line breaks, at least this long, is payload; 60 leaves room for a long identifier and catches wrapped lines. */
const MIN_PAYLOAD_LENGTH = 60;

function isPayloadUnit(unit: number): boolean {
  return (
    (unit >= 0x61 && unit <= 0x7a) ||
    (unit >= 0x41 && unit <= 0x5a) ||
    (unit >= 0x2f && unit <= 0x39) ||
    unit === 0x2b ||
    unit === 0x5f ||
    unit === 0x2d
  );
}

/**
 * The end of the base64 run at `start`, or `start` when there is none. Base64 changes between lower case, upper case and digits about
 * every second character; paths, words and hexadecimal do not.
 */
function endOfPayload(text: string, start: number): number {
  let end = start;
  let changes = 0;
  let uppers = 0;
  let last = -1;
  while (end < text.length) {
    const unit = text.charCodeAt(end);
    if (!isPayloadUnit(unit)) break;
    const group = unit >= 0x61 ? 0 : unit >= 0x41 ? 1 : 2;
    if (group !== last) changes++;
    if (group === 1) uppers++;
    last = group;
    end++;
  }
  const length = end - start;
  if (length < MIN_PAYLOAD_LENGTH) return start;
  return (changes / length > 0.3 && uppers / length > 0.15) || uppers === length ? end : start;
}

/** A chain can only be payload when its first atom runs on; this cheap look avoids scanning ahead from every word. */
function startsPayload(text: string, start: number): boolean {
  for (let at = start; at < start + MIN_PAYLOAD_LENGTH; at++) {
    if (!isPayloadUnit(text.charCodeAt(at))) return false;
  }
  return true;
}

/** Line numbers that tools print before each line ("   312→"): they name nothing and would outnumber the words. */
function endOfLineNumber(text: string, start: number, end: number): number {
  if (text.charCodeAt(end) !== 0x2192) return start;
  for (let at = start; at < end; at++) {
    if (kindAt(text, at) !== DIGIT) return start;
  }
  for (let at = start - 1; at >= 0 && text[at] !== "\n"; at--) {
    if (text[at] !== " ") return start;
  }
  return end + 1;
}

function isWordKind(kind: number): boolean {
  return kind === LOWER || kind === UPPER || kind === DIGIT || kind === UNDERSCORE;
}

/** The end of the run of word characters and marks at `at`. */
function endOfAtom(text: string, at: number): number {
  let end = at;
  while (end < text.length) {
    const kind = kindAt(text, end);
    if (!isWordKind(kind) && !(kind === MARK && end > at)) break;
    end += unitsAt(text, end);
  }
  return end;
}

/** "'s", "'re", "n't" … after a word: they are read over, and the t of "n't" takes its n with it. */
const CONTRACTION = /^(?:s|re|ve|ll|m|d|t)$/i;

/** Walks `text` once and reports its pieces. Never throws, whatever the units are. */
export function scan(text: string, sink: ScanSink): void {
  let at = 0;
  let chain = 0;
  while (at < text.length) {
    const kind = kindAt(text, at);
    if (kind === GLYPH) {
      at = scanGlyph(text, at, sink);
    } else if (isWordKind(kind)) {
      at = scanChain(text, at, chain++, sink);
    } else {
      at += unitsAt(text, at);
    }
  }
}

function scanGlyph(text: string, start: number, sink: ScanSink): number {
  let end = start + unitsAt(text, start);
  while (end < text.length && kindAt(text, end) === MARK) end += unitsAt(text, end);
  sink.glyph(start, end);
  return end;
}

function scanChain(text: string, start: number, chain: number, sink: ScanSink): number {
  if (startsPayload(text, start)) {
    const end = endOfPayload(text, start);
    if (end > start) return end;
  }
  let end = endOfAtom(text, start);
  const afterLineNumber = endOfLineNumber(text, start, end);
  if (afterLineNumber > start) return afterLineNumber;
  return new ChainScan(text, chain, sink).run(start, end);
}

/** One chain: its atoms are scanned one by one, and the identifiers that wrap them are reported after their words. */
class ChainScan {
  readonly #text: string;
  readonly #chain: number;
  readonly #sink: ScanSink;
  /** Start of the part since the last `/`, `\` or `@`: a file name, a package, a host. */
  #segmentStart = 0;
  #segmentAtoms = 0;
  #segments = 0;

  constructor(text: string, chain: number, sink: ScanSink) {
    this.#text = text;
    this.#chain = chain;
    this.#sink = sink;
  }

  run(start: number, firstEnd: number): number {
    let atomStart = start;
    let end = firstEnd;
    this.#segmentStart = start;
    for (;;) {
      const next = this.#scanAtom(atomStart, end);
      const joiner = this.#joinerAt(next);
      if (joiner === "") {
        this.#closeSegment(end);
        if (this.#segments > 1) this.#report(start, end);
        return next;
      }
      if (joiner === "/" || joiner === "\\" || joiner === "@") {
        this.#closeSegment(end);
        this.#segmentStart = next + 1;
      }
      atomStart = next + 1;
      end = endOfAtom(this.#text, atomStart);
    }
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

  /** Reports the words of one atom and, when there are several, the atom; returns where to go on. */
  #scanAtom(start: number, end: number): number {
    this.#segmentAtoms++;
    const afterContraction = this.#endOfContraction(end);
    const negated =
      afterContraction > end &&
      /t/i.test(this.#text[end + 1] as string) &&
      /n/i.test(this.#text[end - 1] as string);
    const pieces = this.#scanPieces(start, negated && end - start > 1 ? end - 1 : end);
    if (pieces > 1) this.#report(start, end);
    return afterContraction;
  }

  #endOfContraction(at: number): number {
    if (kindAt(this.#text, at) !== APOSTROPHE || at + 1 >= this.#text.length) return at;
    const end = endOfAtom(this.#text, at + 1);
    return CONTRACTION.test(this.#text.slice(at + 1, end)) ? end : at;
  }

  /** Cuts an atom at underscores, at the humps of camel case, and before a number at its end. Returns how many pieces there were. */
  #scanPieces(start: number, end: number): number {
    let pieces = 0;
    let pieceStart = start;
    const close = (at: number): void => {
      if (at > pieceStart) {
        this.#sink.word(pieceStart, Math.min(at, pieceStart + MAX_TERM_LENGTH), this.#chain);
        pieces++;
      }
    };
    let before = BREAK;
    for (let at = start; at < end; at += unitsAt(this.#text, at)) {
      const kind = kindAt(this.#text, at);
      if (kind === MARK) continue;
      if (kind === UNDERSCORE) {
        close(at);
        pieceStart = at + 1;
      } else if (
        this.#isHump(before, kind, at, end) ||
        this.#isFinalNumber(before, kind, at, pieceStart, end)
      ) {
        close(at);
        pieceStart = at;
      }
      before = kind;
    }
    close(end);
    return pieces;
  }

  /** `fooBar` before B; `HTTPServer` before S. */
  #isHump(before: number, kind: number, at: number, end: number): boolean {
    if (kind !== UPPER) return false;
    if (before === LOWER) return true;
    return (
      before === UPPER &&
      at + 1 < end &&
      kindAt(this.#text, at + 1) === LOWER &&
      !this.#isPluralAcronym(at, end)
    );
  }

  /** `URLs`, `PRs`: the s belongs to the acronym. */
  #isPluralAcronym(at: number, end: number): boolean {
    return at + 2 === end && this.#text[at + 1] === "s";
  }

  /** `session2`, `sha256`, but not `a262de1`: two letters or more, then digits to the end of the piece. */
  #isFinalNumber(before: number, kind: number, at: number, pieceStart: number, end: number): boolean {
    if (kind !== DIGIT || before === DIGIT || before === UNDERSCORE || before === BREAK) return false;
    if (at - pieceStart < 2) return false;
    for (let look = pieceStart; look < at; look++) {
      if (kindAt(this.#text, look) === DIGIT) return false;
    }
    let look = at;
    while (look < end && kindAt(this.#text, look) === DIGIT) look++;
    return look === end || kindAt(this.#text, look) === UNDERSCORE;
  }
}
