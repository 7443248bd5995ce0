/**
 * Which summaries are about a user's question. Compares texts and uses no index: index scores change with every new message, and the front
 * of a context must not. Pure.
 */
import { analyzeQuery, readTextTerms } from "../text/index.ts";

/** More than a few would leave no room for the rest. */
const MAX_RELEVANT = 8;
/** A summary that scores less than this share of the best one is not about the question. */
const NEAR_BEST = 0.5;

/** The ids of the texts that are about the question, the best first. The fewer texts have a term, the more it counts. */
export function rankByQuestion(
  question: string,
  texts: readonly { readonly id: string; readonly text: string }[],
): string[] {
  const { terms } = analyzeQuery(question);
  const read = texts.map(({ text }) => new Set(readTextTerms(text).words));
  const scores = texts.map(() => 0);
  for (const { words } of terms) {
    const holders = read.flatMap((known, index) => (words.every((word) => known.has(word)) ? [index] : []));
    const weight = Math.log(texts.length / Math.max(1, holders.length));
    for (const index of holders) scores[index] = (scores[index] ?? 0) + weight;
  }
  const best = Math.max(0, ...scores);
  if (best === 0) return [];
  return texts
    .map(({ id }, index) => ({ id, score: scores[index] ?? 0 }))
    .filter(({ score }) => score >= NEAR_BEST * best)
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, MAX_RELEVANT)
    .map(({ id }) => id);
}
