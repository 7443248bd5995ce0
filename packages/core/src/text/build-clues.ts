/**
 * Splits a question into clues, each with its weight, for the ranking in `recall/rank.ts`, which needs to know what was found where.
 * Nothing typed is ever an operator: a clue is a value (`clue.ts`).
 */

import { nameClue } from "./clue.ts";
import type { TextClue } from "./clue.ts";
import { segmentGlyphs } from "./query.ts";
import type { Query, QueryTerm, TermForm } from "./query.ts";
import { STOP_GLYPHS } from "./vocabulary.ts";

/** One thing that a question asks for. */
export interface QueryClue {
  readonly sought: TextClue;
  /** The weight of a match, compared with 1 for a plain word. */
  readonly weight: number;
  /** Whether a document needs it to match everything asked for. */
  readonly required: boolean;
  /** Whether it also counts for the messages around the one that contains it. Single glyphs are too common for that. */
  readonly spreads: boolean;
}

/** Weights of clues other than plain words. Doubling or halving one of them changed recall@10 of no measured set by more than .02. */
const PHRASE_WEIGHT = 2;
const EXACT_IDENT_WEIGHT = 1;
const PIECE_WEIGHT = 0.2;
/** A word that only asks says little; with half or twice the weight recall@10 stayed the same. */
const ASKING_WEIGHT = 0.2;
const NEAR_WEIGHT = 0.3;
const NEAR_DISTANCE = 3;
const GLYPH_PAIR_WEIGHT = 0.5;
const LONG_GLYPH_WORD_WEIGHT = 0.5;
/** A question with more clues is a pasted text; the rest would only slow it down. */
const MAX_CLUES = 160;

const phraseOf = (words: readonly string[]): TextClue => ({ kind: "phrase", words });

const identifierOf = (identifier: string): TextClue => ({ kind: "identifier", identifier });

function anyOf(clues: readonly TextClue[]): TextClue {
  const [first] = clues;
  return first !== undefined && clues.length === 1 ? first : { kind: "any", of: clues };
}

function formsOf(term: QueryTerm): TermForm[] {
  return term.unescaped === undefined ? [term] : [term, term.unescaped];
}

/** The whole term: as a phrase or as an identifier, in each of its forms. */
function findWhole(term: QueryTerm): TextClue[] {
  if (term.isPrefix) return [{ kind: "prefix", words: term.words }];
  return formsOf(term).flatMap(({ words, ident }) =>
    ident === "" ? [phraseOf(words)] : [phraseOf(words), identifierOf(ident)],
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

const CLUE: Omit<QueryClue, "sought"> = { weight: 1, required: false, spreads: true };

function phraseClues(words: readonly string[]): QueryClue[] {
  const pieces = words.length > 1 ? words : [];
  return [
    { ...CLUE, sought: phraseOf(words), weight: PHRASE_WEIGHT, required: true },
    ...pieces.map((word) => ({ ...CLUE, sought: phraseOf([word]), weight: PIECE_WEIGHT })),
  ];
}

function termClues(term: QueryTerm): QueryClue[] {
  if (term.kind === "glyphs") return glyphClues(term.words);
  const whole: QueryClue = { ...CLUE, sought: anyOf(findWhole(term)), required: true };
  if (term.kind === "word") return [term.isAsking ? { ...whole, weight: ASKING_WEIGHT } : whole];
  const idents = formsOf(term).filter(({ ident }) => ident !== "");
  const exact = {
    ...CLUE,
    sought: anyOf(idents.map(({ ident }) => identifierOf(ident))),
    weight: EXACT_IDENT_WEIGHT,
  };
  const pieces = term.words.length > 1 ? [...new Set(term.words)] : [];
  return [
    whole,
    exact,
    ...pieces.map((word) => ({ ...CLUE, sought: phraseOf([word]), weight: PIECE_WEIGHT })),
  ];
}

function glyphClues(glyphs: readonly string[]): QueryClue[] {
  const alone = { ...CLUE, spreads: false };
  return [
    ...segmentGlyphs(glyphs).map((word) => ({
      ...alone,
      sought: phraseOf(word),
      weight: word.length > 2 ? LONG_GLYPH_WORD_WEIGHT : 0,
      required: true,
    })),
    ...singleGlyphs(glyphs).map((glyph) => ({ ...alone, sought: phraseOf([glyph]) })),
    ...glyphPairs(glyphs).map((pair) => ({ ...alone, sought: phraseOf(pair), weight: GLYPH_PAIR_WEIGHT })),
  ];
}

/** Terms that are adjacent both in the question and in the text belong together. */
function nearClues(terms: readonly QueryTerm[]): QueryClue[] {
  const clues: QueryClue[] = [];
  const spelled = terms.filter(({ kind }) => kind !== "glyphs");
  for (let at = 1; at < spelled.length; at++) {
    const first = spelled[at - 1]?.words.at(-1);
    const second = spelled[at]?.words[0];
    if (first === undefined || second === undefined || first === second) continue;
    const sought: TextClue = { kind: "near", words: [first, second], between: NEAR_DISTANCE - 1 };
    clues.push({ ...CLUE, sought, weight: NEAR_WEIGHT });
  }
  return clues;
}

/** What to look for, each thing once; a thing that occurs twice keeps its higher weight. */
export function buildClues(query: Query): QueryClue[] {
  const clues = [
    ...query.phrases.flatMap(phraseClues),
    ...query.terms.flatMap(termClues),
    ...nearClues(query.terms),
  ];
  const unique = new Map<string, QueryClue>();
  for (const clue of clues) {
    const name = nameClue(clue.sought);
    const known = unique.get(name);
    unique.set(name, known ? mergeClues(known, clue) : clue);
  }
  return [...unique.values()].slice(0, MAX_CLUES);
}

function mergeClues(one: QueryClue, other: QueryClue): QueryClue {
  return {
    sought: one.sought,
    weight: Math.max(one.weight, other.weight),
    required: one.required || other.required,
    spreads: one.spreads && other.spreads,
  };
}

/** A person whom a question may name. */
interface NameClue {
  /** As a clue of the question: the name anywhere. */
  readonly sought: TextClue;
  /** The name at the beginning, where the speaker of a message is. */
  readonly speaking: TextClue;
}

const NAME = /^\p{Lu}/u;

/** Every word of a question that is written like a name. */
export function buildNameClues(query: Query): NameClue[] {
  const names = query.terms.filter(({ kind, text }) => kind === "word" && NAME.test(text));
  return names.map((term) => ({
    sought: anyOf(findWhole(term)),
    speaking: { kind: "first", word: term.words[0] as string },
  }));
}
