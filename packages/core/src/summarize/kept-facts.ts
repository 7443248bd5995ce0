/**
 * Whether a summary still shows what its sources are about. Long sources are judged by the identifiers they use repeatedly; short ones by
 * every identifier, number and name, of which one is enough, or else by the words they use most. A summary without any of these has lost
 * the thread, however well it reads.
 */
import { scanTerms, type TermKind } from "./terms.ts";

/** Only the most used are checked: a summary leaves most of a long list out, and should. */
const MAX_WANTED = 40;
/** With fewer repeated identifiers chance decides too much: all facts count then. */
const MIN_REPEATED = 12;
/** Sources with fewer facts and words than this contain nothing that could be lost. */
const MIN_TERMS = 8;
/** A summary that shows fewer than this share of the most used identifiers has lost the thread of the work. */
const MIN_KEPT_SHARE = 0.08;
/** Without a single fact, a summary must at least be about the same things. */
const MIN_WORDS_SHARE = 0.2;

const CODE: ReadonlySet<TermKind> = new Set(["identifier", "path"]);
const FACTS: ReadonlySet<TermKind> = new Set(["identifier", "path", "compound", "number", "name"]);
const WORDS: ReadonlySet<TermKind> = new Set(["word", "script"]);

/** Identifiers and paths that the sources use more than once, most used first. */
export const rankIdentifiers = (text: string): string[] =>
  rankTerms(text, CODE, (term, count) => count > 1 && term.length > 3);

export function dropsFacts(summary: string, sourcesText: string): boolean {
  const repeated = rankIdentifiers(sourcesText);
  if (repeated.length >= MIN_REPEATED)
    return countShown(summary, repeated) < repeated.length * MIN_KEPT_SHARE;
  const plain = sourcesText.replace(STAMP, "");
  const facts = [...countTerms(plain, FACTS).keys()];
  const words = rankTerms(plain, WORDS);
  if (facts.length + words.length < MIN_TERMS || countShown(summary, facts) > 0) return false;
  return countShown(summary, words) < words.length * MIN_WORDS_SHARE;
}

/** The engine's prefix of a message: when, and who. Not part of what was said. */
const STAMP = /^\[[^\]\n]*\] (?:[^\n:]{1,60}:)?/gm;

function rankTerms(
  text: string,
  kinds: ReadonlySet<TermKind>,
  counts: (term: string, count: number) => boolean = () => true,
): string[] {
  return [...countTerms(text, kinds)]
    .filter(([term, count]) => counts(term, count))
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, MAX_WANTED)
    .map(([term]) => term);
}

function countTerms(text: string, kinds: ReadonlySet<TermKind>): Map<string, number> {
  const counts = new Map<string, number>();
  scanTerms(text, kinds === CODE, (term, kind, isPiece) => {
    if (!isPiece && kinds.has(kind)) counts.set(term, (counts.get(term) ?? 0) + 1);
  });
  return counts;
}

function countShown(summary: string, wanted: readonly string[]): number {
  const text = summary.toLowerCase();
  return wanted.filter((term) => text.includes(lastPiece(term.toLowerCase()))).length;
}

const lastPiece = (term: string): string => term.slice(term.lastIndexOf("/") + 1) || term;
