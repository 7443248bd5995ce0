/**
 * Reads a question as a person or an agent typed it: what it asks for, its stop words, quoted phrases, the dates it names, and whether it
 * is several questions. Only quotes are syntax; every other character only separates or belongs to a term.
 */

import { termOfIdentifier, termOfWord } from "./analyze.ts";
import { findDates } from "./dates.ts";
import type { NamedDate } from "./dates.ts";
import { toPlainGlyph, toPlainWord } from "./plain-letters.ts";
import { scan } from "./scan.ts";
import {
  ASKER_WORDS_BY_LANGUAGE,
  ASKING_WORDS_BY_LANGUAGE,
  ASKS_OTHER,
  QUESTION_GLYPHS,
  STOP_GLYPHS,
  STOP_WORDS_BY_LANGUAGE,
} from "./vocabulary.ts";

/** A way to write a term in the index: its words in order, and its form as a whole identifier ("" when it has none). */
export interface TermForm {
  readonly words: readonly string[];
  readonly ident: string;
}

/**
 * One thing the question asks for.
 * - `word`: a word; `words` has its stem, `ident` its plain form, in case the text writes it as an identifier (`GitStore` for "gitstore").
 * - `identifier`: a compound; `words` has its pieces in order, `ident` the whole.
 * - `glyphs`: characters of a script without spaces; `words` has its characters in order.
 */
export interface QueryTerm extends TermForm {
  readonly kind: "word" | "identifier" | "glyphs";
  /** As typed. */
  readonly text: string;
  /** True for a word about the form of the answer, not its subject ("kind", "mentioned", "summary"). */
  readonly isAsking?: true;
  /** True for the beginning of a hash: people name a commit by its first characters. */
  readonly isPrefix?: true;
  /** The identifier without its first letter, if that may be the t or n of an escaped `\t` or `\n` copied with it. */
  readonly unescaped?: TermForm;
}

export interface Query {
  /** The question as typed. */
  readonly text: string;
  /** What the text should contain, in order of appearance, each once. */
  readonly terms: readonly QueryTerm[];
  /** Quoted phrases, as the words they must match in order. */
  readonly phrases: readonly (readonly string[])[];
  /** The answer to a question need not contain all its words; a match for a pasted line or a list of keywords does. */
  readonly isQuestion: boolean;
  readonly dates: readonly NamedDate[];
  /** It asks for what the asker said or did ("which book did I mention?"). */
  readonly isAboutAsker: boolean;
  /** The single questions when several are asked at once, otherwise empty. These have no parts themselves. */
  readonly parts: readonly Query[];
}

/** More than this is a pasted text, not a question; the query stays fast, and these terms are enough to find it. */
const MAX_TERMS = 64;
const QUOTED = /"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|«([^»]+)»/g;
const SHORT_HASH = /^(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}$/;
/** Longer questions are pasted texts; their beginning is enough to find them, and reading stays fast. */
const MAX_QUESTION_CHARS = 8000;
/** Ends of sentences that precede a question. */
const SENTENCE_END = /[.!;]\s+|[。！；\n]/;

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

/** The quoted parts of a question, and the question without them. */
function splitPhrases(text: string): { phrases: string[]; rest: string } {
  const phrases: string[] = [];
  const rest = text.replace(QUOTED, (_whole, ...groups: (string | undefined)[]) => {
    phrases.push(groups.slice(0, 5).find(isString) ?? "");
    return " ";
  });
  return { phrases, rest };
}

/** The index words of a text, in order. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const { kind, start, end } of lexemesOf(text)) {
    if (kind === "word") words.push(termOfWord(text.slice(start, end)));
    if (kind === "glyph") words.push(toPlainGlyph(text.slice(start, end)));
  }
  return words.filter((word) => word !== "");
}

/** Groups lexemes: the pieces of one chain, or adjacent glyphs, become one term. */
function termsOf(text: string): QueryTerm[] {
  const terms: QueryTerm[] = [];
  let lexemes: Lexeme[] = [];
  const close = (): void => {
    if (lexemes.length > 0)
      terms.push(lexemes[0]?.kind === "glyph" ? glyphsTerm(text, lexemes) : chainTerm(text, lexemes));
    lexemes = [];
  };
  for (const lexeme of lexemesOf(text)) {
    const last = lexemes.at(-1);
    if (last !== undefined && !belongTogether(last, lexeme)) close();
    lexemes.push(lexeme);
  }
  close();
  return terms.filter((term) => term.words.length > 0);
}

function belongTogether(last: Lexeme, next: Lexeme): boolean {
  return next.kind === "glyph" ? last.kind === "glyph" && last.end === next.start : last.chain === next.chain;
}

function glyphsTerm(text: string, lexemes: readonly Lexeme[]): QueryTerm {
  const words = lexemes
    .map(({ start, end }) => toPlainGlyph(text.slice(start, end)))
    .filter((word) => word !== "");
  return { kind: "glyphs", text: text.slice(lexemes[0]?.start, lexemes.at(-1)?.end), words, ident: "" };
}

function chainTerm(text: string, lexemes: readonly Lexeme[]): QueryTerm {
  const words = lexemes.filter(({ kind }) => kind === "word").map(({ start, end }) => text.slice(start, end));
  const stems = words.map(termOfWord);
  const whole = lexemes
    .filter(({ kind }) => kind === "identifier")
    .map(({ start, end }) => text.slice(start, end))
    .toSorted((a, b) => b.length - a.length)[0];
  const typed = text.slice(lexemes[0]?.start, Math.max(...lexemes.map(({ end }) => end)));
  if (whole === undefined) {
    const ident = words.length === 1 ? toPlainWord(words[0] as string) : "";
    return {
      kind: "word",
      text: typed,
      words: stems,
      ident,
      isPrefix: SHORT_HASH.test(ident) || undefined,
    };
  }
  const unescaped = unescape(typed);
  return {
    kind: "identifier",
    text: typed,
    words: stems,
    ident: termOfIdentifier(whole),
    unescaped,
  };
}

/** Agents copy identifiers out of JSON, where a tab before `fooBar` is written `\t`: `tfooBar`. */
function unescape(typed: string): TermForm | undefined {
  if (!/^[tnr][A-Za-z_]/.test(typed)) return undefined;
  const bare = typed.slice(1);
  const words = wordsOf(bare);
  return words.length > 0 ? { words, ident: termOfIdentifier(bare) } : undefined;
}

/** The language of most of the stop words; English when none or several qualify. */
function languageOf(terms: readonly QueryTerm[]): string {
  let best = "en";
  let most = 0;
  for (const [language, list] of STOP_WORDS_BY_LANGUAGE) {
    const hits = terms.filter(({ ident }) => list.has(ident)).length;
    if (hits > most) [best, most] = [language, hits];
  }
  return best;
}

const NO_WORDS: ReadonlySet<string> = new Set();

/** Marks the words of a question that only ask. */
function markAsking(term: QueryTerm, asking: ReadonlySet<string>): QueryTerm {
  return term.kind === "word" && asking.has(term.ident) ? { ...term, isAsking: true } : term;
}

function isStopGlyph(term: QueryTerm): boolean {
  return term.kind === "glyphs" && term.words.every((word) => STOP_GLYPHS.has(word));
}

function uniqueTerms(terms: readonly QueryTerm[]): QueryTerm[] {
  return [...new Map(terms.map((term) => [`${term.ident}\n${term.words.join(" ")}`, term])).values()];
}

/** Has a question mark or a question word of a script without spaces, or begins with a word without content ("how", "did", "tell"). */
function looksLikeQuestion(
  text: string,
  terms: readonly QueryTerm[],
  stopWords: ReadonlySet<string>,
): boolean {
  const first = terms[0];
  return (
    /[?？؟]/.test(text) ||
    (first !== undefined && first.kind === "word" && stopWords.has(first.ident)) ||
    terms.some((term) => term.kind === "glyphs" && term.words.some((word) => QUESTION_GLYPHS.has(word)))
  );
}

/** Names the asker and does not ask what the other side said. */
function isAboutAsker(text: string, terms: readonly QueryTerm[], language: string): boolean {
  const own = ASKER_WORDS_BY_LANGUAGE.get(language) ?? NO_WORDS;
  return (
    terms.some(({ words, ident }) => own.has(ident) || own.has(words[0] ?? "")) && !ASKS_OTHER.test(text)
  );
}

function analyzePart(text: string): Query {
  const { phrases: quoted, rest } = splitPhrases(text);
  const phrases = quoted.map(wordsOf).filter((words) => words.length > 0);
  const all = termsOf(rest);
  const language = languageOf(all);
  const stopWords = STOP_WORDS_BY_LANGUAGE.get(language) ?? NO_WORDS;
  const asking = ASKING_WORDS_BY_LANGUAGE.get(language) ?? NO_WORDS;
  const isQuestion = looksLikeQuestion(rest, all, stopWords);
  const content = all.filter(
    (term) => !(term.kind === "word" && stopWords.has(term.ident)) && !isStopGlyph(term),
  );
  const kept = content.length > 0 || phrases.length > 0 ? content : all;
  return {
    text,
    terms: uniqueTerms(kept)
      .slice(0, MAX_TERMS)
      .map((term) => (isQuestion ? markAsking(term, asking) : term)),
    phrases,
    isQuestion,
    isAboutAsker: isQuestion && isAboutAsker(rest, all, language),
    dates: findDates(text),
    parts: [],
  };
}

/**
 * Reads a question.
 *
 * @example
 * analyzeQuery("where did we put fooBar?").terms.map((term) => term.words); // [["put"], ["foo", "bar"]]
 */
export function analyzeQuery(text: string): Query {
  const question = text.slice(0, MAX_QUESTION_CHARS);
  const parts = splitQuestions(question)
    .map(analyzePart)
    .filter(({ terms, phrases }) => terms.length + phrases.length > 0);
  return { ...analyzePart(question), text, parts: parts.length > 1 ? parts : [] };
}

/** The questions in a text, each without the sentences before it. Text after the last question mark is not a question. */
function splitQuestions(text: string): string[] {
  const marked = text.split(/[?？]/).slice(0, -1);
  return marked.map((part) => `${part.trim().split(SENTENCE_END).at(-1) ?? part}?`);
}

const segmenter = new Intl.Segmenter("zh", { granularity: "word" });

/** Words of adjacent glyphs, each as its glyphs, without purely grammatical ones. */
export function segmentGlyphs(glyphs: readonly string[]): string[][] {
  const words = [...segmenter.segment(glyphs.join(""))].map(({ segment }) => wordsOf(segment));
  const content = words.filter((word) => word.length > 0 && !word.every((glyph) => STOP_GLYPHS.has(glyph)));
  return content.length > 0 ? content : [[...glyphs]];
}
