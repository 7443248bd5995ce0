/**
 * How many columns of a terminal a text takes, and fitting text into columns. Pure. Chinese, Japanese, Korean and emoji take two
 * columns, marks that combine with the letter before take none.
 */

import { stripVTControlCharacters } from "node:util";

const ASCII = /^[\x20-\x7e]*$/;
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

/** Columns a text takes; the codes of colours take none. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  const visible = text.includes("\u001B") ? stripVTControlCharacters(text) : text;
  let width = 0;
  for (const grapheme of splitGraphemes(visible)) width += graphemeWidth(grapheme);
  return width;
}

/** The text, cut with an ellipsis when it takes more columns than there are. */
export function truncateToWidth(text: string, columns: number): string {
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

/** Breaks a text into lines of at most so many columns, at spaces where there are any. Spaces it begins with are kept. */
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
    line = word;
    while (displayWidth(line) > columns) {
      const head = takeColumns(line, columns);
      lines.push(head);
      line = line.slice(head.length);
    }
  }
  return [...lines, line ?? ""];
}

/** The longest beginning that fits, at least one character of it. */
function takeColumns(text: string, columns: number): string {
  let taken = "";
  let width = 0;
  for (const grapheme of splitGraphemes(text)) {
    width += graphemeWidth(grapheme);
    if (width > columns && taken !== "") break;
    taken += grapheme;
  }
  return taken;
}
