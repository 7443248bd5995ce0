/**
 * A clue: one thing to look for in the terms of a text (`analyze.ts`), as a value that every text index can read, and the rule for when a
 * text matches it. An index evaluates clues in its own way and finds exactly the documents for which {@link holdsClue} is true.
 */
import { decodeTerms, encodeForIndex } from "./analyze.ts";

export type TextClue =
  /** Words that follow each other; a single word is a phrase of one. */
  | { readonly kind: "phrase"; readonly words: readonly string[] }
  /** The same, but only the beginning of the last word. */
  | { readonly kind: "prefix"; readonly words: readonly string[] }
  /** The word a text begins with: where people talk, the name of the speaker. */
  | { readonly kind: "first"; readonly word: string }
  /** An identifier as a whole. */
  | { readonly kind: "identifier"; readonly identifier: string }
  /** Two words in any order with at most this many others between them. */
  | { readonly kind: "near"; readonly words: readonly [string, string]; readonly between: number }
  | { readonly kind: "any" | "all"; readonly of: readonly TextClue[] };

/** The same string for clues that look for the same thing. */
export const nameClue = (clue: TextClue): string => JSON.stringify(clue);

/** A text as the index sees it. */
export interface TextTerms {
  readonly words: readonly string[];
  readonly idents: readonly string[];
}

export function readTextTerms(text: string): TextTerms {
  const { words, idents } = encodeForIndex(text);
  return { words: splitTerms(decodeTerms(words)), idents: splitTerms(decodeTerms(idents)) };
}

const splitTerms = (text: string): string[] => (text === "" ? [] : text.split(" "));

export function holdsClue(terms: TextTerms, clue: TextClue): boolean {
  switch (clue.kind) {
    case "phrase":
      return holdsPhrase(terms.words, clue.words, (term, word) => term === word);
    case "prefix":
      return holdsPhrase(terms.words, clue.words, (term, word) => term.startsWith(word));
    case "first":
      return terms.words[0] === clue.word;
    case "identifier":
      return terms.idents.includes(clue.identifier);
    case "near":
      return areNear(terms.words, clue.words, clue.between);
    case "any":
      return clue.of.some((one) => holdsClue(terms, one));
    case "all":
      return clue.of.every((one) => holdsClue(terms, one));
  }
}

function holdsPhrase(
  terms: readonly string[],
  phrase: readonly string[],
  fitsLast: (term: string, word: string) => boolean,
): boolean {
  const last = phrase.length - 1;
  return terms.some(
    (_, start) =>
      start + last < terms.length &&
      phrase.every((word, at) => {
        const term = terms[start + at] as string;
        return at === last ? fitsLast(term, word) : term === word;
      }),
  );
}

function areNear(
  terms: readonly string[],
  [first, second]: readonly [string, string],
  between: number,
): boolean {
  const places = (wanted: string): number[] =>
    terms.flatMap((term, place) => (term === wanted ? [place] : []));
  const seconds = places(second);
  return places(first).some((place) => seconds.some((other) => Math.abs(place - other) - 1 <= between));
}
