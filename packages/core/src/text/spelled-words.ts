/**
 * Words as a text spells them, in small letters, and what a regular expression asks of them: where a literal is required, a text whose
 * words do not spell it cannot match and need not be read. Stems would not do: a literal may be the middle of any word.
 *
 * Invariant: every run of three or more ASCII letters and digits of a text, with a letter in it, is part of one of its spelled words, or
 * the text is marked opaque.
 */
import { requiredLiterals } from "./regex.ts";

/** Stands among the spelled words of a text that holds more than they tell: base64, or a run too long to keep. No word contains it. */
export const OPAQUE = "*";

/** Longer runs are hardly words. */
export const MAX_SPELLED_LENGTH = 512;

/** Where a spelling may note something on a word that the analysis remembers; `notedBy` says whose note it is, 0 that there is none. */
export interface WordNote {
  notedBy: number;
  note: number;
}

let spellings = 0;

/**
 * Collects the spelled words of several texts, each once. The number tells the analysis, which remembers words anyway, which of them it
 * need not hand over again.
 */
export class Spelling {
  readonly number = ++spellings;
  readonly words = new Set<string>();
  #isOpaque = false;

  add(word: string, _note?: WordNote): void {
    if (word === OPAQUE) this.#isOpaque = true;
    else this.words.add(word);
  }

  /** Whether something that no word tells was met since the last time this was asked. */
  takeOpaque(): boolean {
    const isOpaque = this.#isOpaque;
    this.#isOpaque = false;
    return isOpaque;
  }
}

/** Shorter runs stand in nearly every text. */
const MIN_RUN_LENGTH = 3;

/**
 * The runs of letters and digits, in small letters, that the words of every text matched by the pattern spell; empty when it requires none.
 *
 * @example
 * requiredRuns("Error: code \\d+ in fooBar_baz"); // ["foobar", "error", "code", "baz"]
 */
export function requiredRuns(pattern: string): string[] {
  const runs = requiredLiterals(pattern)
    .flatMap((literal) => literal.match(/[A-Za-z0-9]+/g) ?? [])
    // Numbers alone may be line numbers, which nobody spells.
    .filter((run) => run.length >= MIN_RUN_LENGTH && /[A-Za-z]/.test(run))
    .map((run) => run.toLowerCase());
  return [...new Set(runs)].toSorted((a, b) => b.length - a.length);
}
