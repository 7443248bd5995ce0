/**
 * Where a text matches a question: the ranges to highlight, and what a snippet is cut around. Uses the same scanner and terms as the index,
 * so that whatever the index found can be shown.
 */

import { termOfIdentifier, termOfWord } from "./analyze.ts";
import { toPlainGlyph } from "./plain-letters.ts";
import { analyzeQuery, segmentGlyphs } from "./query.ts";
import type { Query } from "./query.ts";
import { scan } from "./scan.ts";

/** A half-open range of UTF-16 units. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** A matching range, and the index of the query item it matches. */
export interface TermMatch extends TextRange {
  readonly asked: number;
  /** False for a mere piece of a query item. */
  readonly whole: boolean;
}

/** Something asked for: a phrase, or an identifier. */
interface Wanted {
  readonly asked: number;
  readonly words: readonly string[];
  readonly whole: boolean;
}

interface Wants {
  /** By first word; longer phrases first, so that the longest wins. */
  readonly phrases: Map<string, Wanted[]>;
  readonly idents: Map<string, number>;
  readonly prefixes: Map<string, number>;
  readonly count: number;
}

interface Found extends TextRange {
  readonly term: string;
}

function wantsOf(query: Query): Wants {
  const phrases = new Map<string, Wanted[]>();
  const idents = new Map<string, number>();
  const prefixes = new Map<string, number>();
  let asked = 0;
  const want = (words: readonly string[], whole: boolean): void => {
    const first = words[0];
    if (first === undefined) return;
    const list = phrases.get(first) ?? [];
    list.push({ asked, words, whole });
    phrases.set(first, list);
  };
  for (const phrase of query.phrases) {
    want(phrase, true);
    asked++;
  }
  for (const term of query.terms) {
    if (term.kind === "glyphs") {
      for (const word of segmentGlyphs(term.words)) {
        want(word, true);
        asked++;
      }
      continue;
    }
    want(term.words, true);
    if (term.ident !== "") idents.set(term.ident, asked);
    if (term.isPrefix) prefixes.set(term.ident, asked);
    if (term.words.length > 1) for (const piece of term.words) if (piece.length > 2) want([piece], false);
    asked++;
  }
  for (const list of phrases.values()) list.sort((a, b) => b.words.length - a.words.length);
  return { phrases, idents, prefixes, count: asked };
}

/** All matches in text order, overlapping ones included. */
export function findTermMatches(text: string, query: Query): { matches: TermMatch[]; asked: number } {
  const wants = wantsOf(query);
  const found: Found[] = [];
  const matches: TermMatch[] = [];
  if (wants.count === 0) return { matches, asked: 0 };
  scan(text, {
    word: (start, end) => found.push({ start, end, term: termOfWord(text.slice(start, end)) }),
    glyph: (start, end) => found.push({ start, end, term: toPlainGlyph(text.slice(start, end)) }),
    identifier(start, end) {
      const asked = wants.idents.get(termOfIdentifier(text.slice(start, end)));
      if (asked !== undefined) matches.push({ start, end, asked, whole: true });
    },
  });
  found.forEach((piece, at) => {
    for (const [prefix, asked] of wants.prefixes) {
      if (piece.term.startsWith(prefix))
        matches.push({ start: piece.start, end: piece.end, asked, whole: true });
    }
    for (const wanted of wants.phrases.get(piece.term) ?? []) {
      const last = endOfPhrase(found, at, wanted.words);
      if (last !== undefined) {
        matches.push({ start: piece.start, end: last.end, asked: wanted.asked, whole: wanted.whole });
        break;
      }
    }
  });
  matches.sort((a, b) => a.start - b.start || b.end - a.end);
  return { matches: dropPieces(matches), asked: wants.count };
}

function endOfPhrase(found: readonly Found[], at: number, words: readonly string[]): Found | undefined {
  for (let offset = 1; offset < words.length; offset++) {
    if (found[at + offset]?.term !== words[offset]) return undefined;
  }
  return found[at + words.length - 1];
}

/** Pieces of an identifier are shown only if the whole identifier is found nowhere. */
function dropPieces(matches: readonly TermMatch[]): TermMatch[] {
  const wholes = new Set(matches.filter(({ whole }) => whole).map(({ asked }) => asked));
  return matches.filter(({ whole, asked }) => whole || !wholes.has(asked));
}

/** Merges ranges that overlap or touch; the input is in order of start. */
export function mergeRanges(ranges: readonly TextRange[]): TextRange[] {
  const merged: { start: number; end: number }[] = [];
  for (const { start, end } of ranges) {
    const last = merged.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

/** The ranges of `text` to highlight for a question: in order, not overlapping. */
export function findMatches(text: string, query: Query): TextRange[] {
  return mergeRanges(findTermMatches(text, query).matches);
}

/** Longer matches are runs without spaces: no form of a word, and too long for an expression that marks it. */
const MAX_WORD_CHARS = 100;

/** The words that a search for `question` matches in `text`, as they are written there, in lower case: `folded` for `folding`. */
export function listMatchedWords(text: string, question: string): string[] {
  const words = findMatches(text, analyzeQuery(question))
    .filter(({ start, end }) => end - start <= MAX_WORD_CHARS)
    .map(({ start, end }) => text.slice(start, end).toLowerCase());
  return [...new Set(words)];
}

/**
 * The share of the query's identifiers that `text` contains exactly as typed, capitals included; 0 if the query has none. The index ignores
 * case, so this distinguishes `CHECKPOINT_ID` from `checkpointId` among the documents found.
 */
export function verbatimShare(text: string, query: Query): number {
  const exact = query.terms.filter(({ kind }) => kind === "identifier").map((term) => term.text);
  if (exact.length === 0) return 0;
  return exact.filter((typed) => text.includes(typed)).length / exact.length;
}
