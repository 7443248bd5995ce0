/** The engine's text analysis: the entry point for words, questions, snippets and the literals of a regex. Pure; knows no store. */

export { ANALYSIS_VERSION, FTS_TOKENIZE, analyzeForIndex, decodeTerms, encodeForIndex } from "./analyze.ts";
export type { IndexTerms, ReadTerms } from "./analyze.ts";
export { findDates, isNearDate } from "./dates.ts";
export type { NamedDate } from "./dates.ts";
export { buildClues, buildNameClues } from "./build-clues.ts";
export type { QueryClue } from "./build-clues.ts";
export { holdsClue, nameClue, readTextTerms } from "./clue.ts";
export type { TextClue, TextTerms } from "./clue.ts";
export { DoubtReader } from "./doubtful-words.ts";
export type { SpellingDoubt } from "./doubtful-words.ts";
export { readLiteralClue } from "./literal-clues.ts";
export type { LiteralClue } from "./literal-clues.ts";
export { findMatches, verbatimShare } from "./matches.ts";
export { analyzeQuery } from "./query.ts";
export type { Query } from "./query.ts";
export { looksLikeRegex, MAX_PATTERN_CHARS, requiredLiterals } from "./regex.ts";
export { makeSnippet } from "./snippet.ts";
export type { SnippetRange } from "./snippet.ts";
export { numberSink, Spelling } from "./spelled-words.ts";
export type { SpelledSink } from "./spelled-words.ts";
