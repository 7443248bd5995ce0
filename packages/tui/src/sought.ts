/** A search hit in a text: where it is, and which words are marked. Pure. */
import type { GrepHit } from "@lossless/core";
import type { Paint } from "./paint.ts";
import type { TextLine } from "./wrapped-text.ts";

/** The match in a message or summary, as the hit shows it. */
export interface Sought extends Pick<GrepHit, "snippet" | "ranges"> {
  /** What other hits of the same search matched: a snippet need not contain every word. */
  readonly words?: Iterable<string>;
}

/** The matches of a snippet, in lower case. */
export const listMatches = ({ snippet, ranges }: Pick<GrepHit, "snippet" | "ranges">): string[] =>
  ranges
    .map(({ start, end }) => snippet.slice(start, end).trim().toLowerCase())
    .filter((word) => word !== "");

export interface MarkedText {
  readonly lines: readonly TextLine[];
  /** The place of the hit; null if the text has none of its words. */
  readonly place: { readonly line: number; readonly offset: number } | null;
}

/** A hit spans a few lines of its text: the snippet has them as one. */
const SPAN_LINES = 3;
const WORD = /[\p{L}\p{N}_]+/gu;

export const leaveUnmarked = (lines: readonly TextLine[]): MarkedText => ({ lines, place: null });

export const markWith =
  (sought: Sought, paint: Paint) =>
  (lines: readonly TextLine[]): MarkedText =>
    markSought(lines, sought, paint);

/** The text with every word of the hit marked. The place is the marked word with most of the snippet's words around it. */
function markSought(lines: readonly TextLine[], sought: Sought, paint: Paint): MarkedText {
  const pattern = makePattern(sought);
  if (pattern === null) return { lines, place: null };
  const around = new Set(sought.snippet.toLowerCase().match(WORD));
  let place: MarkedText["place"] = null;
  let best = 0;
  const marked = lines.map((line, at): TextLine => {
    const found = [...line.text.matchAll(pattern)];
    const [first] = found;
    if (first === undefined) return line;
    const score = countWords(lines, at, around);
    if (score > best) {
      best = score;
      place = { line: at, offset: first.index };
    }
    const ranges = found.map(({ 0: word, index }) => ({
      start: index,
      end: index + word.length,
      style: paint.match,
    }));
    return { ...line, ranges: [...(line.ranges ?? []), ...ranges] };
  });
  return { lines: marked, place };
}

function makePattern(sought: Sought): RegExp | null {
  const words = new Set([...listMatches(sought), ...(sought.words ?? [])]);
  if (words.size === 0) return null;
  // The longest first: one word may begin with another.
  const sources = [...words].toSorted((a, b) => b.length - a.length).map(toSource);
  return new RegExp(sources.join("|"), "giu");
}

/** A match starts at a word boundary; any white space may be between its parts. */
function toSource(word: string): string {
  const source = word
    .split(/\s+/u)
    .map(RegExp.escape)
    .join(String.raw`\s+`);
  return /^[\p{L}\p{N}_]/u.test(word) ? String.raw`(?<![\p{L}\p{N}_])${source}` : source;
}

function countWords(lines: readonly TextLine[], at: number, words: ReadonlySet<string>): number {
  const text = lines
    .slice(at, at + SPAN_LINES)
    .map((line) => line.text.slice(0, 10_000))
    .join("\n");
  return new Set(
    text
      .toLowerCase()
      .match(WORD)
      ?.filter((word) => words.has(word)),
  ).size;
}
