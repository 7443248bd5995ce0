/** Clues as FTS5 queries. Every term is quoted, so no character of a question is ever parsed as an operator. */
import type { TextClue } from "@lossless/core/ports";

/**
 * @example
 * toMatch({ kind: "any", of: [{ kind: "phrase", words: ["git", "store"] }, { kind: "identifier", identifier: "gitstore" }] });
 * // (words : "git store" OR idents : "gitstore")
 */
export function toMatch(clue: TextClue): string {
  switch (clue.kind) {
    case "phrase":
      return `words : ${quote(clue.words.join(" "))}`;
    case "prefix":
      return `words : ${quote(clue.words.join(" "))} *`;
    case "first":
      return `words : ^ ${quote(clue.word)}`;
    case "identifier":
      return `idents : ${quote(clue.identifier)}`;
    case "near":
      return `words : NEAR(${clue.words.map(quote).join(" ")}, ${clue.between})`;
    case "any":
      return `(${clue.of.map(toMatch).join(" OR ")})`;
    case "all":
      return `(${clue.of.map(toMatch).join(" AND ")})`;
  }
}

const quote = (value: string): string => `"${value.replaceAll('"', '""')}"`;
