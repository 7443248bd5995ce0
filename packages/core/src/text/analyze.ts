/**
 * Turns a text into the terms of the full-text index. The index stores two columns of space-joined terms and splits them at spaces only;
 * every rule about what a word is lives here and in `scan.ts`, the same for indexing and for questions and for every backend.
 *
 * `words` holds, in text order, stems, pieces of identifiers and single glyphs, so that phrases and parts of identifiers are found as runs
 * of words. `idents` holds identifiers whole, folded, each once. A term contains letters, digits, marks, emoji and `_ - . / @` only.
 * Beside the terms, the words are collected as the text spells them, for regular expressions (`spelled-words.ts`).
 */

import { foldGlyph, foldWord } from "./fold.ts";
import { scan } from "./scan.ts";
import type { ScanSink } from "./scan.ts";
import { MAX_SPELLED_LENGTH, OPAQUE } from "./spelled-words.ts";
import type { Spelling, WordNote } from "./spelled-words.ts";
import { stem } from "./stem.ts";
import { WordTable } from "./word-table.ts";

/** Changes whenever the same text would give other terms: an index built with another version has to be rebuilt. */
export const ANALYSIS_VERSION = 1;

/** The FTS5 `tokenize` option that keeps the terms made here whole: only spaces separate. */
export const FTS_TOKENIZE = "ascii tokenchars '_-./@'";

export interface IndexTerms {
  readonly words: string;
  readonly idents: string;
}

/** Gives the terms of a message; what its text spells goes into the spelling. */
export type ReadTerms = (spelling: Spelling | null) => IndexTerms;

/** Decimals and times: logs and tables are full of them, and their pieces in `words` find them just as well. */
const NUMERIC = /^(?:[+-]?\d+(?:[.:]\d+)?z?|\d{4}-\d\d-\d\d(?:t\d\d)?)$/;

/** ASCII that no term may contain: the index would split there. Folding can bring it in (㈱ becomes "(株)"). */
// oxlint-disable-next-line no-control-regex -- the control characters are among them
const FOREIGN = /[\u0000-\u002c\u003a-\u003f\u005b-\u005e\u0060\u007b-\u007f]/g;
/** "go-git's" speaks of "go-git". */
const CONTRACTION = /['’ʼ]\p{L}{0,2}$/u;

interface KnownWord extends WordNote {
  readonly term: string;
  readonly spelled: string;
  /** The last spelling it was given to, by number. */
  givenTo: number;
}

/** Texts repeat their words, so what is known of one is remembered. */
const knownWords = new WordTable<KnownWord>((word) => ({
  term: stem(foldWord(word)).replaceAll(FOREIGN, ""),
  spelled: word.toLowerCase(),
  givenTo: 0,
  notedBy: 0,
  note: 0,
}));

/** The index term of a word as it stands in the text. */
export const termOfWord = (word: string): string => knownWords.get(word, 0, word.length).term;

/** What most identifiers are made of; folding one of these is lower-casing it. */
const PLAIN_IDENTIFIER = /^[A-Za-z0-9_./@-]+$/;

/** The index term of an identifier as a whole. */
export function termOfIdentifier(identifier: string): string {
  if (PLAIN_IDENTIFIER.test(identifier)) return identifier.toLowerCase();
  return foldWord(identifier.replace(CONTRACTION, "")).replaceAll("\\", "/").replaceAll(FOREIGN, "");
}

/**
 * The terms of a text, ready to be stored; its words as spelled go into `spelling`.
 *
 * @example
 * analyzeForIndex("Fixed parseConfig"); // { words: "fix pars config", idents: "parseconfig" }, spelled: fixed parse config parseconfig
 */
export function analyzeForIndex(text: string, spelling: Spelling | null = null): IndexTerms {
  const words: string[] = [];
  const idents = new Set<string>();
  const pieces: ScanSink = {
    word(start, end) {
      const known = knownWords.get(text, start, end);
      if (known.term !== "") words.push(known.term);
      if (spelling === null || known.givenTo === spelling.number) return;
      known.givenTo = spelling.number;
      spelling.add(known.spelled, known);
    },
    identifier(start, end) {
      idents.add(text.slice(start, end));
    },
    glyph(start, end) {
      const term = foldGlyph(text.slice(start, end)).toLowerCase().replaceAll(FOREIGN, "");
      if (term !== "") words.push(term);
    },
  };
  if (spelling !== null) {
    pieces.payload = () => spelling.add(OPAQUE);
    pieces.run = (start, end) =>
      spelling.add(end - start > MAX_SPELLED_LENGTH ? OPAQUE : text.slice(start, end).toLowerCase());
  }
  scan(text, pieces);
  const terms = new Set<string>();
  for (const identifier of idents) {
    const term = termOfIdentifier(identifier);
    if (term !== "" && !NUMERIC.test(term)) terms.add(term);
  }
  return { words: words.join(" "), idents: [...terms].join(" ") };
}
