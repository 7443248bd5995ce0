/**
 * Cuts a snippet out of a text: the stretch that matches most of the question, in whole words, from the start of its sentence if that fits,
 * with "…" where something was omitted. White space is shown as single spaces. Pure; work is bounded for texts of any size.
 */

import { findTermMatches, mergeRanges } from "./matches.ts";
import type { TermMatch, TextRange } from "./matches.ts";
import type { Query } from "./query.ts";

export type SnippetRange = TextRange;

export interface Snippet {
  readonly text: string;
  /** Where `text` matches the question: in order, not overlapping, in UTF-16 units of `text`. */
  readonly ranges: readonly SnippetRange[];
}

/** How much of a text is searched at a time, and in total: a snippet of a huge text need not be the best one. */
const BLOCK_CHARS = 50_000;
const MAX_BLOCKS = 20;
const ELLIPSIS = "…";
const SENTENCE_END = /[.!?。！？…]["'”’)\]]*\s|[。！？]|\n/g;

interface Window extends TextRange {
  readonly matches: readonly TermMatch[];
  readonly score: number;
}

/** A snippet of at most `maxChars` characters. Without a match it is the beginning of the text. */
export function makeSnippet(text: string, query: Query, options: { readonly maxChars: number }): Snippet {
  const maxChars = Math.max(8, options.maxChars);
  const best = findBestWindow(text, query, maxChars - 2);
  const range = growWindow(text, best ?? { start: 0, end: 0 }, maxChars - 2);
  return render(text, range, best?.matches ?? []);
}

function findBestWindow(text: string, query: Query, maxChars: number): Window | undefined {
  let best: Window | undefined;
  let blockStart = 0;
  for (let block = 0; block < MAX_BLOCKS && blockStart < text.length; block++) {
    const blockEnd = Math.min(text.length, blockStart + BLOCK_CHARS);
    const { matches, asked } = findTermMatches(text.slice(blockStart, blockEnd), query);
    if (asked === 0) return undefined;
    const shifted = matches.map((match) => ({
      ...match,
      start: match.start + blockStart,
      end: match.end + blockStart,
    }));
    const window = bestWindowOf(shifted, maxChars);
    if (window && (!best || window.score > best.score)) best = window;
    if (best && new Set(best.matches.map((match) => match.asked)).size === asked) return best;
    // Blocks overlap by one snippet, so that a stretch across the seam is seen whole.
    blockStart = blockEnd === text.length ? blockEnd : blockEnd - Math.min(maxChars, BLOCK_CHARS / 2);
  }
  return best;
}

/** Slides over the matches; a window scores by how many different items it matches, then by how often. */
function bestWindowOf(matches: readonly TermMatch[], maxChars: number): Window | undefined {
  let best: Window | undefined;
  let first = 0;
  for (let last = 0; last < matches.length; last++) {
    const end = (matches[last] as TermMatch).end;
    while (first < last && end - (matches[first] as TermMatch).start > maxChars) first++;
    const inside = matches.slice(Math.max(first, last - 30), last + 1);
    const score = scoreOf(inside);
    if (!best || score > best.score)
      best = { start: (inside[0] as TermMatch).start, end, matches: inside, score };
  }
  return best;
}

function scoreOf(matches: readonly TermMatch[]): number {
  const wholes = new Set<number>();
  const pieces = new Set<number>();
  for (const { asked, whole } of matches) (whole ? wholes : pieces).add(asked);
  return wholes.size * 10 + pieces.size * 4 + Math.min(matches.length, 9) * 0.1;
}

/** Widens the matched stretch to `maxChars`: back to the start of the sentence if that is near, then forward, ending on whole words. */
function growWindow(text: string, matched: TextRange, maxChars: number): TextRange {
  const room = Math.max(0, maxChars - (matched.end - matched.start));
  const earliest = Math.max(
    0,
    matched.start - (text.length - matched.end < room / 2 ? room : Math.floor(room / 2)),
  );
  const start = earliest === 0 ? 0 : startOfPassage(text, earliest, matched.start);
  const latest = Math.min(text.length, start + maxChars);
  return {
    start,
    end: latest === text.length ? latest : endOfPassage(text, Math.min(matched.end, latest), latest),
  };
}

function startOfPassage(text: string, earliest: number, latest: number): number {
  const before = text.slice(Math.max(0, earliest - 1), latest);
  const offset = Math.max(0, earliest - 1);
  for (const end of before.matchAll(SENTENCE_END)) return offset + end.index + end[0].length;
  const space = before.search(/\s/);
  return space >= 0 ? offset + space + 1 : wholeCharacter(text, earliest);
}

function endOfPassage(text: string, earliest: number, latest: number): number {
  if (/\s/.test(text[latest] ?? " ")) return latest;
  const after = text.slice(earliest, latest);
  const space = after.search(/\s\S*$/);
  return space >= 0 ? earliest + space : wholeCharacter(text, latest);
}

/** Moves a cut out of the middle of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

function render(text: string, range: TextRange, matches: readonly TermMatch[]): Snippet {
  const lead = text.slice(0, range.start).trim() === "" ? "" : ELLIPSIS;
  const tail = text.slice(range.end).trim() === "" ? "" : ELLIPSIS;
  let out = lead;
  /** The new offset of each unit of the passage: white space shrinks. */
  const offsets = new Int32Array(range.end - range.start + 1);
  for (let at = range.start; at < range.end; at++) {
    const isSpace = /\s/.test(text[at] as string);
    const atStart = out.length === lead.length;
    if (isSpace && (atStart || out.endsWith(" "))) {
      offsets[at - range.start] = out.length;
      continue;
    }
    offsets[at - range.start] = out.length;
    out += isSpace ? " " : text[at];
  }
  offsets[range.end - range.start] = out.length;
  const body = out.trimEnd();
  const ranges = matches
    .filter(({ start, end }) => start >= range.start && end <= range.end)
    .map(({ start, end }) => ({
      start: offsets[start - range.start] as number,
      end: Math.min(body.length, offsets[end - range.start] as number),
    }));
  return { text: body + tail, ranges: mergeRanges(ranges) };
}
