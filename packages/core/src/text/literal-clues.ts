/**
 * What the index can say about a literal of a regular expression. A text that contains the literal has its words in a row, unless the first
 * or the last of them is only part of a word there (`great_really` in `ingreat_really`), or base64 hid them. The first is a doubt: blocks of
 * spelled words name the longer words (`doubtful-words.ts`), which are looked up as well. The second makes a text opaque.
 *
 * Invariant: a text that contains the literal matches the clue, or the clue of the longer words that its spelling has for the doubts, or its
 * spelling is opaque.
 */
import { termOfIdentifier, termOfWord } from "./analyze.ts";
import type { TextClue } from "./clue.ts";
import { isSplit } from "./doubtful-words.ts";
import type { SpellingDoubt } from "./doubtful-words.ts";
import { wordsOf } from "./query.ts";

export interface LiteralClue {
  readonly clue: TextClue;
  /** What every text with the literal matches, whatever its first and last word are part of; null: nothing. */
  readonly certain: TextClue | null;
  readonly doubts: readonly SpellingDoubt[];
  /** What a text with the literal matches if its first or last word is one of these, which were found for the doubts; null: nothing. */
  spellOut(words: readonly (readonly string[])[]): TextClue | null;
}

/** Shorter words, and those without a letter, are not always spelled. */
const isSpelled = (letters: string): boolean => letters.length >= 3 && /[A-Za-z]/.test(letters);
/** Apostrophes are skipped in some words, and non-ASCII characters may belong to the adjacent word. */
const PLAIN_STRETCH = /[\0-&(-\x7f]+/g;
/** Longer words might count as base64 here and not in the text. */
const MAX_RUN = 59;
/** What may follow a word and change how it is split: `don't` has the word `do`, `URLs_` the words `ur` and `ls`. */
const ENDINGS = ["", "'t", "_"];
/** More pairs of longer words are looked up one by one, wherever they are in a text. */
const MAX_PAIRS = 256;

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
  const first = /^[A-Za-z0-9]+/.exec(text)?.[0] ?? "";
  const isFirstKnown = isOpenBefore && isSpelled(first);
  const known = isFirstKnown ? text : text.slice(first.length);
  const last = /[A-Za-z0-9]+$/.exec(known)?.[0] ?? "";
  const isLastKnown = isOpenBehind && isSpelled(last);
  const read = (stretch: string): TextClue | null =>
    isOpenBehind ? readOpenEnd(stretch) : toClue([dropLast(stretch)]);
  const clue = read(known);
  if (clue === null) return null;
  const ends: Ends = { text: known, first: isFirstKnown ? first : "", last: isLastKnown ? last : "", read };
  return {
    clue,
    certain: certainOf(ends),
    doubts: doubtsOf(ends),
    spellOut: (words) => spellOut(ends, words),
  };
}

/** A stretch with the words at its ends that may be parts of longer ones; empty: none. */
interface Ends {
  readonly text: string;
  readonly first: string;
  readonly last: string;
  /** The clue of a stretch with the same end. */
  read(stretch: string): TextClue | null;
}

/** A stretch that the text may continue. */
function readOpenEnd(text: string): TextClue | null {
  const last = /[A-Za-z0-9]+$/.exec(text)?.[0];
  if (last === undefined) return toClue([text]);
  if (isSpelled(last)) return toClue(ENDINGS.map((ending) => text + ending));
  const isNumber = /^\d+$/.test(last) && !MAY_BE_LINE_NUMBER.test(text);
  const words = isNumber ? wordsOf(text) : [];
  // A number is never split and has no stem, so whatever follows it in its word, the word begins with it.
  return words.at(-1) === last ? { kind: "prefix", words } : toClue([dropLast(text)]);
}

/** Line numbers that tools print are not indexed. */
const MAY_BE_LINE_NUMBER = /(?:^|\n) *\d+$/;

const dropLast = (text: string): string => text.replace(/[A-Za-z0-9]+$/, "");

function toClue(texts: readonly string[]): TextClue | null {
  const phrases = new Map(texts.map(wordsOf).map((words) => [words.join(" "), words]));
  return phrases.has("") ? null : anyOf([...phrases.values()].map((words) => ({ kind: "phrase", words })));
}

function anyOf(clues: readonly TextClue[]): TextClue | null {
  const [clue, ...others] = clues;
  if (clue === undefined) return null;
  return others.length === 0 ? clue : { kind: "any", of: clues };
}

function certainOf({ text, first, last, read }: Ends): TextClue | null {
  const rest = text.slice(first.length);
  return last === "" ? read(rest) : toClue([dropLast(rest)]);
}

function doubtsOf({ text, first, last }: Ends): SpellingDoubt[] {
  const small = text.toLowerCase();
  const before = { letters: first.toLowerCase(), side: "before", beside: small.slice(first.length) } as const;
  const behind = {
    letters: last.toLowerCase(),
    side: "behind",
    beside: small.slice(0, small.length - last.length),
  } as const;
  return [before, behind].filter(({ letters }) => letters !== "");
}

function spellOut(ends: Ends, words: readonly (readonly string[])[]): TextClue | null {
  const { text, first, last, read } = ends;
  const all = [...new Set(words.flat())];
  // A word that was split has its run among the identifiers.
  const runs = all.map((word): TextClue => ({ kind: "identifier", identifier: termOfIdentifier(word) }));
  if (first === text)
    return anyOf([...runs, ...toTerms(all, "may be negated").map((term) => toPhrase([term]))]);
  const firsts = toTerms(first === "" ? [] : words[0]);
  const lasts = toTerms(last === "" ? [] : words[first === "" ? 0 : 1], "may be negated");
  const rest = read(text.slice(first.length));
  return anyOf([
    ...runs,
    ...firsts.map((term) => (rest === null ? toPhrase([term]) : putBefore(term, rest))),
    ...lasts.map((term) => toPhrase([...wordsOf(dropLast(text)), term])),
    ...pair(firsts, wordsOf(dropLast(text.slice(first.length))), lasts),
  ]);
}

/** The words of the index that these spelled words can be. "didn't" has the word `did`, and is spelled `didn`. */
function toTerms(words: readonly string[] = [], negation?: "may be negated"): string[] {
  const pieces = words.filter((word) => !isSplit(word));
  const negated = negation === undefined ? [] : words.flatMap((word) => /^_*([^_]+)n$/.exec(word)?.[1] ?? []);
  return [...new Set([...pieces, ...negated].map(termOfWord))];
}

const toPhrase = (words: readonly string[]): TextClue => ({ kind: "phrase", words });

/** The same clue with a word before it. */
function putBefore(term: string, clue: TextClue): TextClue {
  if (clue.kind === "any") return { kind: "any", of: clue.of.map((one) => putBefore(term, one)) };
  return clue.kind === "phrase" || clue.kind === "prefix" ? { ...clue, words: [term, ...clue.words] } : clue;
}

/** A longer word at both ends. */
function pair(firsts: readonly string[], middle: readonly string[], lasts: readonly string[]): TextClue[] {
  if (firsts.length * lasts.length <= MAX_PAIRS)
    return firsts.flatMap((first) => lasts.map((last) => toPhrase([first, ...middle, last])));
  const [before, behind] = [firsts, lasts].map((terms) => anyOf(terms.map((term) => toPhrase([term]))));
  return [{ kind: "all", of: [before, behind].flatMap((clue) => clue ?? []) }];
}
