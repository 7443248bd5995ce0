/** The text analysis of the engine: one door to words, questions, snippets and the literals of a regex. Pure; knows no store. */

export { ANALYSIS_VERSION, FTS_TOKENIZE, analyzeForIndex } from "./analyze.ts";
export type { IndexTerms } from "./analyze.ts";
export { requiredLiterals } from "./literals.ts";
export { findMatches } from "./matches.ts";
export type { TextRange } from "./matches.ts";
export { analyzeQuery, buildMatch, looksLikeRegex } from "./query.ts";
export type { MatchMode, Query, QueryTerm } from "./query.ts";
export { makeSnippet } from "./snippet.ts";
export type { Snippet, SnippetRange } from "./snippet.ts";
