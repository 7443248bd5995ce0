/**
 * Turns a question into FTS5 MATCH expressions over the columns of `analyze.ts`. Every term stands in quotes, so no character of a
 * question is ever read as an operator.
 *
 * There are two ways to ask. {@link buildMatch} gives one expression for a plain search. {@link buildClues} takes the question apart into
 * clues, each with its own expression and weight, for the ranking in `retrieve/rank.ts`, which needs to know what was found where.
 */

import { segmentGlyphs } from "./query.ts";
import type { Query, QueryTerm, TermForm } from "./query.ts";
import { STOP_GLYPHS } from "./vocabulary.ts";

/** `strict`: every term and phrase. `relaxed`: any of them; the ranking puts the best first. */
export type MatchMode = "strict" | "relaxed";

/** One thing to look for. */
export interface QueryClue {
  /** FTS5 expression that finds the documents with it. */
  readonly match: string;
  /** How much finding it counts, against 1 for a plain word. */
  readonly weight: number;
  /** Whether a document needs it to hold all that was asked for. */
  readonly required: boolean;
  /** Whether it also speaks for the messages around the one it stands in. Single glyphs are too common for that. */
  readonly spreads: boolean;
}

/** Weights of what is not a plain word. Doubling or halving one of them moved recall@10 of no measured set by more than .02. */
const PHRASE_WEIGHT = 2;
const EXACT_IDENT_WEIGHT = 1;
const PIECE_WEIGHT = 0.2;
const NEAR_WEIGHT = 0.3;
const NEAR_DISTANCE = 3;
const GLYPH_PAIR_WEIGHT = 0.5;
const LONG_GLYPH_WORD_WEIGHT = 0.5;
/** A question with more clues is a pasted text; the rest would only slow it down. */
const MAX_CLUES = 160;

function quote(value: string): string {
  return `"${value.replaceAll('"', '""')}"`;
}

function matchWords(words: readonly string[]): string {
  return `words : ${quote(words.join(" "))}`;
}

function matchIdent(ident: string): string {
  return `idents : ${quote(ident)}`;
}

function anyOf(matches: readonly string[]): string {
  return matches.length === 1 ? (matches[0] as string) : `(${matches.join(" OR ")})`;
}

function formsOf(term: QueryTerm): TermForm[] {
  return term.unescaped === undefined ? [term] : [term, term.unescaped];
}

/** The term as a whole: as a run of words or as an identifier, in each of its forms. */
function matchWhole(term: QueryTerm): string[] {
  if (term.isPrefix) return [`${matchWords(term.words)} *`];
  return formsOf(term).flatMap(({ words, ident }) =>
    ident === "" ? [matchWords(words)] : [matchWords(words), matchIdent(ident)],
  );
}

function singleGlyphs(glyphs: readonly string[]): string[] {
  const content = glyphs.filter((glyph) => !STOP_GLYPHS.has(glyph));
  return [...new Set(content.length > 0 ? content : glyphs)];
}

function glyphPairs(glyphs: readonly string[]): string[][] {
  const pairs = glyphs.slice(1).map((glyph, before) => [glyphs[before] as string, glyph]);
  return pairs.filter((pair) => !pair.every((glyph) => STOP_GLYPHS.has(glyph)));
}

function matchStrict(term: QueryTerm): string {
  if (term.kind === "glyphs") return segmentGlyphs(term.words).map(matchWords).join(" AND ");
  return anyOf(matchWhole(term));
}

/** The alternatives of a term when any part of it may help. */
function matchRelaxed(term: QueryTerm): string[] {
  if (term.kind === "glyphs") {
    return [...singleGlyphs(term.words).map((glyph) => [glyph]), ...glyphPairs(term.words)].map(matchWords);
  }
  const pieces = term.words.length > 1 ? term.words.map((word) => matchWords([word])) : [];
  return [...matchWhole(term), ...pieces];
}

/**
 * The FTS5 expression of a query; "" when the question holds nothing that could be searched for.
 *
 * @example
 * buildMatch(analyzeQuery("where did we put fooBar?"), { mode: "strict" });
 * // (words : "put" OR idents : "put") AND (words : "foo bar" OR idents : "foobar")
 */
export function buildMatch(query: Query, options: { readonly mode: MatchMode }): string {
  const phrases = query.phrases.map(matchWords);
  if (options.mode === "strict") return [...phrases, ...query.terms.map(matchStrict)].join(" AND ");
  const quotedWords = query.phrases.flatMap((words) =>
    words.length > 1 ? words.map((word) => matchWords([word])) : [],
  );
  return [...new Set([...phrases, ...query.terms.flatMap(matchRelaxed), ...quotedWords])].join(" OR ");
}

const CLUE: Omit<QueryClue, "match"> = { weight: 1, required: false, spreads: true };

function phraseClues(words: readonly string[]): QueryClue[] {
  const pieces = words.length > 1 ? words : [];
  return [
    { ...CLUE, match: matchWords(words), weight: PHRASE_WEIGHT, required: true },
    ...pieces.map((word) => ({ ...CLUE, match: matchWords([word]), weight: PIECE_WEIGHT })),
  ];
}

function termClues(term: QueryTerm): QueryClue[] {
  if (term.kind === "glyphs") return glyphClues(term.words);
  const whole: QueryClue = { ...CLUE, match: anyOf(matchWhole(term)), required: true };
  if (term.kind === "word") return [whole];
  const idents = formsOf(term).filter(({ ident }) => ident !== "");
  const exact = {
    ...CLUE,
    match: anyOf(idents.map(({ ident }) => matchIdent(ident))),
    weight: EXACT_IDENT_WEIGHT,
  };
  const pieces = term.words.length > 1 ? [...new Set(term.words)] : [];
  return [
    whole,
    exact,
    ...pieces.map((word) => ({ ...CLUE, match: matchWords([word]), weight: PIECE_WEIGHT })),
  ];
}

function glyphClues(glyphs: readonly string[]): QueryClue[] {
  const alone = { ...CLUE, spreads: false };
  return [
    ...segmentGlyphs(glyphs).map((word) => ({
      ...alone,
      match: matchWords(word),
      weight: word.length > 2 ? LONG_GLYPH_WORD_WEIGHT : 0,
      required: true,
    })),
    ...singleGlyphs(glyphs).map((glyph) => ({ ...alone, match: matchWords([glyph]) })),
    ...glyphPairs(glyphs).map((pair) => ({ ...alone, match: matchWords(pair), weight: GLYPH_PAIR_WEIGHT })),
  ];
}

/** Terms that stand side by side in the question and in the text belong together. */
function nearClues(terms: readonly QueryTerm[]): QueryClue[] {
  const clues: QueryClue[] = [];
  const spelled = terms.filter(({ kind }) => kind !== "glyphs");
  for (let at = 1; at < spelled.length; at++) {
    const first = spelled[at - 1]?.words.at(-1);
    const second = spelled[at]?.words[0];
    if (first === undefined || second === undefined || first === second) continue;
    const match = `words : NEAR(${quote(first)} ${quote(second)}, ${NEAR_DISTANCE - 1})`;
    clues.push({ ...CLUE, match, weight: NEAR_WEIGHT });
  }
  return clues;
}

/** What to look for, each thing once; a thing that is asked for twice keeps its higher weight. */
export function buildClues(query: Query): QueryClue[] {
  const clues = [
    ...query.phrases.flatMap(phraseClues),
    ...query.terms.flatMap(termClues),
    ...nearClues(query.terms),
  ];
  const unique = new Map<string, QueryClue>();
  for (const clue of clues) {
    const known = unique.get(clue.match);
    unique.set(clue.match, known ? mergeClues(known, clue) : clue);
  }
  return [...unique.values()].slice(0, MAX_CLUES);
}

function mergeClues(one: QueryClue, other: QueryClue): QueryClue {
  return {
    match: one.match,
    weight: Math.max(one.weight, other.weight),
    required: one.required || other.required,
    spreads: one.spreads && other.spreads,
  };
}
