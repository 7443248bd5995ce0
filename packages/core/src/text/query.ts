/**
 * Reads a question as a person or an agent typed it, and turns it into an FTS5 MATCH expression over the columns of `analyze.ts`.
 * Nothing typed is ever syntax: quotes make phrases, every other character only separates or belongs to a term. Pure.
 */

import { termOfIdentifier, termOfWord } from "./analyze.ts";
import { foldGlyph, foldWord } from "./fold.ts";
import { scan } from "./scan.ts";
import { STOP_GLYPHS, STOP_WORDS_BY_LANGUAGE } from "./vocabulary.ts";

/**
 * One thing the question asks for.
 * - `word`: a word; `words` has its stem, `ident` its folded form, in case the text writes it as an identifier (`GitStore` for "gitstore").
 * - `identifier`: a compound; `words` has its pieces in order, `ident` the whole.
 * - `glyphs`: a run of a script without spaces; `words` has its characters in order.
 */
export interface QueryTerm {
  readonly kind: "word" | "identifier" | "glyphs";
  readonly words: readonly string[];
  readonly ident: string;
}

export interface Query {
  /** The question as typed. */
  readonly text: string;
  /** What the text should contain, in order of appearance, each once. */
  readonly terms: readonly QueryTerm[];
  /** Quoted phrases, as the runs of words they must match. */
  readonly phrases: readonly (readonly string[])[];
}

/** `strict`: every term and phrase. `relaxed`: any of them; the ranking puts the best first. */
export type MatchMode = "strict" | "relaxed";

/** More than this is a pasted text, not a question; rare terms beyond it are not missed, and the query stays fast. */
const MAX_TERMS = 64;
const QUOTED = /"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|«([^»]+)»/g;

interface Lexeme {
  readonly kind: "word" | "identifier" | "glyph";
  readonly start: number;
  readonly end: number;
  readonly chain: number;
}

function lexemesOf(text: string): Lexeme[] {
  const lexemes: Lexeme[] = [];
  scan(text, {
    word: (start, end, chain) => lexemes.push({ kind: "word", start, end, chain }),
    identifier: (start, end, chain) => lexemes.push({ kind: "identifier", start, end, chain }),
    glyph: (start, end) => lexemes.push({ kind: "glyph", start, end, chain: -1 }),
  });
  return lexemes;
}

function isString(value: string | undefined): value is string {
  return value !== undefined;
}

/** The quoted parts of a question, and the question without the quotes. */
function splitPhrases(text: string): { phrases: string[]; rest: string } {
  const phrases: string[] = [];
  const rest = text.replace(QUOTED, (_whole, ...groups: (string | undefined)[]) => {
    phrases.push(groups.slice(0, 5).find(isString) ?? "");
    return " ";
  });
  return { phrases, rest };
}

function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const { kind, start, end } of lexemesOf(text)) {
    if (kind === "word") words.push(termOfWord(text.slice(start, end)));
    if (kind === "glyph") words.push(foldGlyph(text.slice(start, end)));
  }
  return words.filter((word) => word !== "");
}

/** Groups lexemes: the pieces of one chain, or a run of adjacent glyphs, become one term. */
function termsOf(text: string): QueryTerm[] {
  const terms: QueryTerm[] = [];
  let run: Lexeme[] = [];
  const close = (): void => {
    if (run.length > 0) terms.push(run[0]?.kind === "glyph" ? glyphsTerm(text, run) : chainTerm(text, run));
    run = [];
  };
  for (const lexeme of lexemesOf(text)) {
    const last = run.at(-1);
    const joins =
      last !== undefined &&
      (lexeme.kind === "glyph"
        ? last.kind === "glyph" && last.end === lexeme.start
        : last.chain === lexeme.chain);
    if (!joins) close();
    run.push(lexeme);
  }
  close();
  return terms.filter((term) => term.words.length > 0);
}

function glyphsTerm(text: string, run: readonly Lexeme[]): QueryTerm {
  const words = run.map(({ start, end }) => foldGlyph(text.slice(start, end))).filter((word) => word !== "");
  return { kind: "glyphs", words, ident: "" };
}

function chainTerm(text: string, run: readonly Lexeme[]): QueryTerm {
  const words = run.filter(({ kind }) => kind === "word");
  const stems = words.map(({ start, end }) => termOfWord(text.slice(start, end)));
  const identifiers = run
    .filter(({ kind }) => kind === "identifier")
    .map(({ start, end }) => text.slice(start, end));
  const whole = identifiers.toSorted((a, b) => b.length - a.length)[0];
  if (whole !== undefined) return { kind: "identifier", words: stems, ident: termOfIdentifier(whole) };
  const first = words[0];
  const ident = words.length === 1 && first !== undefined ? foldWord(text.slice(first.start, first.end)) : "";
  return { kind: "word", words: stems, ident };
}

/** The stop words of the language most of the words belong to; English when none or several do. */
function stopWordsFor(terms: readonly QueryTerm[]): ReadonlySet<string> {
  let best: ReadonlySet<string> = STOP_WORDS_BY_LANGUAGE.get("en") ?? new Set();
  let most = 0;
  for (const list of STOP_WORDS_BY_LANGUAGE.values()) {
    const hits = terms.filter(({ ident }) => list.has(ident)).length;
    if (hits > most) [best, most] = [list, hits];
  }
  return best;
}

function isStopGlyph(term: QueryTerm): boolean {
  return term.kind === "glyphs" && term.words.every((word) => STOP_GLYPHS.has(word));
}

function uniqueTerms(terms: readonly QueryTerm[]): QueryTerm[] {
  return [...new Map(terms.map((term) => [`${term.ident}\n${term.words.join(" ")}`, term])).values()];
}

/**
 * Reads a question.
 *
 * @example
 * buildMatch(analyzeQuery("where did we put fooBar?"), { mode: "strict" });
 * // (words : "put" OR idents : "put") AND (words : "foo bar" OR idents : "foobar")
 */
export function analyzeQuery(text: string): Query {
  const { phrases: quoted, rest } = splitPhrases(text);
  const phrases = quoted.map(wordsOf).filter((words) => words.length > 0);
  const all = termsOf(rest);
  const stopWords = stopWordsFor(all);
  const content = all.filter(
    (term) => !(term.kind === "word" && stopWords.has(term.ident)) && !isStopGlyph(term),
  );
  const kept = content.length > 0 || phrases.length > 0 ? content : all;
  return { text, terms: uniqueTerms(kept).slice(0, MAX_TERMS), phrases };
}

function quote(value: string): string {
  return `"${value.replaceAll('"', '""')}"`;
}

function matchWords(words: readonly string[]): string {
  return `words : ${quote(words.join(" "))}`;
}

function matchIdent(ident: string): string {
  return `idents : ${quote(ident)}`;
}

function matchStrict(term: QueryTerm): string {
  if (term.kind === "glyphs") return segmentGlyphs(term.words).map(matchWords).join(" AND ");
  return term.ident === ""
    ? matchWords(term.words)
    : `(${matchWords(term.words)} OR ${matchIdent(term.ident)})`;
}

/** The alternatives of a term when any part of it may help: the whole, the pieces, and pairs of neighbouring glyphs. */
function matchRelaxed(term: QueryTerm): string[] {
  if (term.kind === "glyphs") return relaxGlyphs(term.words).map(matchWords);
  const alternatives = [matchWords(term.words)];
  if (term.ident !== "") alternatives.push(matchIdent(term.ident));
  if (term.words.length > 1) alternatives.push(...term.words.map((word) => matchWords([word])));
  return alternatives;
}

const segmenter = new Intl.Segmenter("zh", { granularity: "word" });

/** Words of a run of glyphs, each as its glyphs, without those that are grammar only. */
export function segmentGlyphs(glyphs: readonly string[]): string[][] {
  const words = [...segmenter.segment(glyphs.join(""))].map(({ segment }) => wordsOf(segment));
  const content = words.filter((word) => word.length > 0 && !word.every((glyph) => STOP_GLYPHS.has(glyph)));
  return content.length > 0 ? content : [[...glyphs]];
}

function relaxGlyphs(glyphs: readonly string[]): string[][] {
  const single = glyphs.filter((glyph) => !STOP_GLYPHS.has(glyph)).map((glyph) => [glyph]);
  const pairs = glyphs.slice(1).map((glyph, before) => [glyphs[before] as string, glyph]);
  return [...(single.length > 0 ? single : glyphs.map((glyph) => [glyph])), ...pairs];
}

/** The FTS5 expression of a query; "" when the question holds nothing that could be searched for. */
export function buildMatch(query: Query, options: { readonly mode: MatchMode }): string {
  const phrases = query.phrases.map(matchWords);
  if (options.mode === "strict") return [...phrases, ...query.terms.map(matchStrict)].join(" AND ");
  return [...new Set([...phrases, ...query.terms.flatMap(matchRelaxed)])].join(" OR ");
}

/** Constructs that are common in patterns and rare in questions. */
const REGEX_SIGNS = [
  /\\[bBdDwWsSnrt.()[\]{}*+?|^$/]/,
  /\.[*+]/,
  /\[[^\]\s]+\][*+?{]/,
  /\[(?:\^[^\]]+|[^\]]*\w-\w[^\]]*)\]/,
  /\([^)]*\|[^)]*\)/,
  /\(\?[:=!<]/,
  /^\^\S|\S\$$/,
  /\w\|\w/,
  /\)[*+?]|\w\{\d+(?:,\d*)?\}/,
];

/** Whether a full-text question is written like a regular expression, so that the answer can point to the other mode. */
export function looksLikeRegex(text: string): boolean {
  return REGEX_SIGNS.some((sign) => sign.test(text));
}
