/**
 * How many terminal columns a text takes, and fitting text into columns. Pure. Chinese, Japanese, Korean and emoji take two columns,
 * combining marks none.
 */

import { stripVTControlCharacters } from "node:util";

/**
 * Characters that take one column each in any context: Latin, Greek, Cyrillic, punctuation, arrows, lines and blocks. Most texts have no
 * others, and need not be segmented.
 */
const SIMPLE =
  /^[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u21ff\u2400-\u2426\u2500-\u25fc]*$/;
const WIDE =
  /\p{Emoji_Presentation}|\p{RI}|\uFE0F|[\u1100-\u115F\u2E80-\u303E\u3041-\u4DBF\u4E00-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18CFF}\u{1B000}-\u{1B2FF}\u{20000}-\u{3FFFD}]/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;

let graphemes: Intl.Segmenter | null = null;

function* splitGraphemes(text: string): Generator<string, void, void> {
  graphemes ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  for (const { segment } of graphemes.segment(text)) yield segment;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}

/** Columns a text takes; colour codes take none. */
export function displayWidth(text: string): number {
  if (SIMPLE.test(text)) return text.length;
  const visible = text.includes("\u001B") ? stripVTControlCharacters(text) : text;
  if (visible !== text && SIMPLE.test(visible)) return visible.length;
  let width = 0;
  for (const grapheme of splitGraphemes(visible)) width += graphemeWidth(grapheme);
  return width;
}

/** The text, cut with an ellipsis if it is too wide. */
export function truncateToWidth(text: string, columns: number): string {
  if (SIMPLE.test(text))
    return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1)).trimEnd()}…`;
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const grapheme of splitGraphemes(text)) {
    width += graphemeWidth(grapheme);
    if (width > columns - 1) break;
    kept += grapheme;
  }
  return `${kept.trimEnd()}…`;
}

/** Breaks a text into lines of at most this many columns, at spaces if there are any. Leading spaces are kept. */
export function wrapToWidth(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line: string | null = null;
  for (const word of text.split(" ")) {
    const longer: string = line === null ? word : `${line} ${word}`;
    if (displayWidth(longer) <= columns) {
      line = longer;
      continue;
    }
    if (line !== null && line.trim() !== "") lines.push(line);
    line = "";
    for (const piece of cutToColumns(word, columns)) {
      if (line !== "") lines.push(line);
      line = piece;
    }
  }
  return [...lines, line ?? ""];
}

/** A word in pieces that fit, each with at least one character. */
function* cutToColumns(word: string, columns: number): Generator<string, void, void> {
  let piece = "";
  let width = 0;
  for (const grapheme of splitGraphemes(word)) {
    const added = graphemeWidth(grapheme);
    if (width + added > columns && piece !== "") {
      yield piece;
      piece = "";
      width = 0;
    }
    piece += grapheme;
    width += added;
  }
  yield piece;
}
