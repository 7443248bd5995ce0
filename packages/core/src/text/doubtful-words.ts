/**
 * Which spelled words can hide a literal of a regular expression inside a longer word. The first or last word of a literal may continue in a
 * text: `great_really` is in `ingreat_really` and in `great_reallyness`. The words that do so are collected from blocks of spelled words
 * (`spelled-words.ts`), and the index then finds the messages that hold them (`literal-clues.ts`).
 *
 * Invariant: if a text contains the literal and continues its first or last word, the spelled word at that place is collected, or
 * {@link DoubtReader.read} returns false for its block.
 */

/** The first or last letters and digits of a literal, in lower case, which may continue before or behind it. */
export interface SpellingDoubt {
  readonly letters: string;
  readonly side: "before" | "behind";
  /** The rest of the literal, on the other side of the letters. */
  readonly beside: string;
}

/** More would take longer to look up than the texts take to read. */
const MAX_WORDS = 512;
/** Longer words are cut in the index, and longer identifiers are left out. */
const MAX_LENGTH = 64;
const SEPARATOR = 0x0a;
const UNDERSCORE = 0x5f;

export class DoubtReader {
  readonly #doubts: readonly DoubtSearch[];
  readonly #found: readonly Set<string>[];
  #size = 0;

  constructor(doubts: readonly SpellingDoubt[]) {
    this.#doubts = doubts.map((doubt) => ({ ...doubt, needles: needlesOf(doubt) }));
    this.#found = doubts.map(() => new Set());
  }

  /** The collected words, in the order of the doubts. */
  get found(): string[][] {
    return this.#found.map((words) => [...words]);
  }

  /** Collects from spelled words, one a line. False if not every one can be looked up: then their messages have to be read. */
  read(words: Buffer): boolean {
    return this.#doubts.every((doubt, at) => this.#readDoubt(words, doubt, this.#found[at] as Set<string>));
  }

  #readDoubt(words: Buffer, doubt: DoubtSearch, found: Set<string>): boolean {
    const { letters, side, needles } = doubt;
    const isKept = (at: number): boolean => {
      const end = at + letters.length;
      if (!isWordByte(words[side === "before" ? at - 1 : end]) || !fits(words, at, doubt)) return true;
      return this.#keep(readLine(words, at, end), found);
    };
    for (const { bytes, lettersAt } of needles)
      for (let at = words.indexOf(bytes); at >= 0; at = words.indexOf(bytes, at + 1))
        if (!isKept(at + lettersAt)) return false;
    // No separator is before the first word and behind the last.
    const start = side === "before" ? words.lastIndexOf(SEPARATOR) + 1 : 0;
    const edge = side === "before" ? words.subarray(start) : words.subarray(0, endOfLine(words, 0));
    for (let at = edge.indexOf(letters); at >= 0; at = edge.indexOf(letters, at + 1))
      if (!isKept(start + at)) return false;
    return true;
  }

  /** False if a word cannot be looked up. */
  #keep(word: string, found: Set<string>): boolean {
    if (word.length > MAX_LENGTH || !/^[a-z0-9_]+$/.test(word)) return false;
    if (found.has(word)) return true;
    if (this.#size === MAX_WORDS) return false;
    found.add(word);
    this.#size += 1;
    return true;
  }
}

/** Bytes to look for, and where the letters of the doubt are in them. */
interface Needle {
  readonly bytes: Buffer;
  readonly lettersAt: number;
}

interface DoubtSearch extends SpellingDoubt {
  readonly needles: readonly Needle[];
}

/**
 * Every word that {@link fits} has one of these, unless it is the first or the last: the letters at its edge, or with all of the literal
 * that one word can hold. Looking for the letters alone would stop at every common word.
 */
function needlesOf({ letters, side, beside }: SpellingDoubt): Needle[] {
  const isBefore = side === "before";
  const joined = (isBefore ? /^[a-z0-9_]*/ : /[a-z0-9_]*$/).exec(beside)?.[0] ?? "";
  const separator = String.fromCharCode(SEPARATOR);
  const whole = joined === beside ? beside : isBefore ? joined + separator : separator + joined;
  return [...new Set(beside === "" ? [""] : [separator, whole])].map((end) => ({
    bytes: Buffer.from(isBefore ? letters + end : end + letters),
    lettersAt: isBefore ? 0 : end.length,
  }));
}

const isWordByte = (byte = SEPARATOR): boolean => isDigit(byte) || isLetter(byte) || byte >= 0x80;
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;
const isLetter = (byte: number): boolean => byte >= 0x61 && byte <= 0x7a;

/** Whether the word with the letters at a place can be where the literal is: the rest of the literal does not contradict it. */
function fits(words: Buffer, at: number, { letters, side, beside }: SpellingDoubt): boolean {
  const step = side === "before" ? 1 : -1;
  const from = side === "before" ? at + letters.length : at - 1;
  const first = side === "before" ? 0 : beside.length - 1;
  let shared = 0;
  while (shared < beside.length) {
    const byte = words[from + step * shared] ?? SEPARATOR;
    if (byte === SEPARATOR) break;
    if (byte !== beside.charCodeAt(first + step * shared)) return false;
    shared += 1;
  }
  if (shared === beside.length) return true;
  // The word ends inside the literal. Before an underscore or a letter of it, only a piece of an identifier can end.
  const next = beside.charCodeAt(first + step * shared);
  if (next !== UNDERSCORE && !isWordByte(next)) return true;
  return shared === 0 && !isSplit(readLine(words, at, at + letters.length));
}

/** Whether a run that is spelled like this gives several words in the index: it is split at underscores and before a number at its end. */
export const isSplit = (word: string): boolean => word.includes("_") || /^\D\D+\d+$/.test(word);

/** The line around a range. */
function readLine(words: Buffer, from: number, to: number): string {
  let start = from;
  while (start > 0 && words[start - 1] !== SEPARATOR) start -= 1;
  return words.toString("latin1", start, endOfLine(words, to));
}

function endOfLine(words: Buffer, from: number): number {
  let end = from;
  while (end < words.length && words[end] !== SEPARATOR) end += 1;
  return end;
}
