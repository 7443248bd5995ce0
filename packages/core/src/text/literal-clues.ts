/**
 * What the index can say about a literal of a regular expression. A text that contains the literal has its words in a row, unless the first
 * or the last of them is only part of a word there (`great_really` in `ingreat_really`), or base64 hid them. The first is a doubt that
 * spelled words resolve (`spelled-words.ts`), the second makes a text opaque.
 *
 * Invariant: a text that contains the literal matches the clue, or one of the doubts applies to its spelling, or its spelling is opaque.
 */
import type { TextClue } from "./clue.ts";
import { wordsOf } from "./query.ts";
import type { SpellingDoubt } from "./spelled-words.ts";

export interface LiteralClue {
  readonly clue: TextClue;
  readonly doubts: readonly SpellingDoubt[];
}

/** Shorter words, and those without a letter, are not always spelled. */
const isSpelled = (letters: string): boolean => letters.length >= 3 && /[A-Za-z]/.test(letters);
/** Apostrophes are skipped in some words, and non-ASCII characters may belong to the adjacent word. */
const PLAIN_STRETCH = /[\0-&(-\x7f]+/g;
/** Longer words might count as base64 here and not in the text. */
const MAX_RUN = 59;
/** What may follow a word and change how it is split: `don't` has the word `do`, `URLs_` the words `ur` and `ls`. */
const ENDINGS = ["", "'t", "_"];

/** The clue of the longest plain stretch of a literal; null when nothing in it is certain. */
export function readLiteralClue(literal: string): LiteralClue | null {
  const found = [...literal.matchAll(PLAIN_STRETCH)]
    .toSorted((a, b) => b[0].length - a[0].length)
    .map(({ 0: text, index }) => ({
      text,
      isOpenBefore: index === 0,
      isOpenBehind: index + text.length === literal.length,
    }));
  const [longest] = found;
  return longest === undefined ? null : readStretch(longest);
}

interface Stretch {
  readonly text: string;
  /** Whether the literal begins and ends here, so that the text may continue with anything. */
  readonly isOpenBefore: boolean;
  readonly isOpenBehind: boolean;
}

function readStretch({ text, isOpenBefore, isOpenBehind }: Stretch): LiteralClue | null {
  if (text.split(/[^A-Za-z0-9+/_-]/).some((letters) => letters.length > MAX_RUN)) return null;
  const first = /^[A-Za-z0-9]+/.exec(text)?.[0];
  const isFirstKnown = first === undefined || (isOpenBefore && isSpelled(first));
  const rest = isFirstKnown ? text : text.slice(first.length);
  const before: SpellingDoubt[] =
    first === undefined || !isFirstKnown ? [] : [{ letters: first.toLowerCase(), side: "before" }];
  return isOpenBehind ? readOpenEnd(rest, before) : toClue([dropLast(rest)], before);
}

/** A stretch that the text may continue. */
function readOpenEnd(text: string, before: readonly SpellingDoubt[]): LiteralClue | null {
  const last = /[A-Za-z0-9]+$/.exec(text)?.[0];
  if (last === undefined) return toClue([text], before);
  if (isSpelled(last))
    return toClue(
      ENDINGS.map((ending) => text + ending),
      [...before, { letters: last.toLowerCase(), side: "behind" }],
    );
  const isNumber = /^\d+$/.test(last) && !MAY_BE_LINE_NUMBER.test(text);
  const words = isNumber ? wordsOf(text) : [];
  // A number is never split and has no stem, so whatever follows it in its word, the word begins with it.
  return words.at(-1) === last
    ? { clue: { kind: "prefix", words }, doubts: before }
    : toClue([dropLast(text)], before);
}

/** Line numbers that tools print are not indexed. */
const MAY_BE_LINE_NUMBER = /(?:^|\n) *\d+$/;

const dropLast = (text: string): string => text.replace(/[A-Za-z0-9]+$/, "");

function toClue(texts: readonly string[], doubts: readonly SpellingDoubt[]): LiteralClue | null {
  const phrases = new Map(texts.map(wordsOf).map((words) => [words.join(" "), words]));
  if (phrases.has("")) return null;
  const [clue, ...others] = [...phrases.values()].map((words): TextClue => ({ kind: "phrase", words }));
  if (clue === undefined) return null;
  return { clue: others.length === 0 ? clue : { kind: "any", of: [clue, ...others] }, doubts };
}
