/**
 * Stored text that is Markdown as lines with styles: headings, lists, quotes, code, emphasis, links. Goes line by line, so that a broken or
 * huge text costs no more than its length, and drops nothing but the signs it shows as a style. Pure.
 *
 * Invariant: the text was made printable first, so styles are the only escape sequences. Without colour it is shown as it was written: there
 * the signs are all that marks a heading or a word.
 */
import { makePrintable } from "@lossless/core/doors";
import type { Paint, Style } from "./paint.ts";
import type { StyledRange, TextLine } from "./wrapped-text.ts";

/** Longer lines are data, not prose. */
const MAX_PROSE_CHARS = 2_000;
const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s*(?:-\s*){3,}$|^\s*(?:\*\s*){3,}$|^\s*(?:_\s*){3,}$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(?=\S)/;
const QUOTE = /^\s*>\s?/;
/** Code; strong; emphasis with either sign; a link. Each alternative stops at its own sign, so no text takes long. */
const INLINE =
  /`([^`]+)`|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])|(?<![\w_])_([^\s_](?:[^_]*[^\s_])?)_(?![\w_])|\[([^[\]]+)\]\(([^()\s]+)\)/g;

export function toMarkdownLines(text: string, paint: Paint): TextLine[] {
  const lines = makePrintable(text).split("\n");
  if (!paint.isColoured) return lines.map((line) => ({ text: line }));
  let fence: { readonly sign: string; readonly isDiff: boolean } | null = null;
  return lines.map((line): TextLine => {
    const [, sign = "", language = ""] = FENCE.exec(line) ?? [];
    if (fence !== null) {
      if (sign === "" || !sign.startsWith(fence.sign)) return renderCode(line, fence.isDiff, paint);
      fence = null;
      return { text: line, style: paint.faint };
    }
    if (sign === "") return renderProse(line, paint);
    fence = { sign, isDiff: language === "diff" || language === "patch" };
    return { text: line, style: paint.faint };
  });
}

function renderCode(text: string, isDiff: boolean, paint: Paint): TextLine {
  const style = !isDiff
    ? paint.code
    : text.startsWith("+")
      ? paint.good
      : text.startsWith("-")
        ? paint.bad
        : paint.faint;
  return { text, style };
}

function renderProse(line: string, paint: Paint): TextLine {
  if (line.length > MAX_PROSE_CHARS) return { text: line };
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const level = heading[1]?.length ?? 1;
    return renderInline(heading[2] ?? "", paint, level <= 2 ? paint.heading : paint.title);
  }
  if (RULE.test(line)) return { text: line, style: paint.faint };
  const quote = QUOTE.exec(line)?.[0];
  if (quote !== undefined)
    return lead("│ ", renderInline(line.slice(quote.length), paint, paint.faint), paint.faint);
  const item = ITEM.exec(line);
  if (item === null) return renderInline(line, paint);
  const [whole, indent = "", sign = "", box] = item;
  const bullet = /\d/.test(sign) ? sign : "•";
  const mark = `${indent}${bullet} ${box === undefined ? "" : box === " " ? "☐ " : "☑ "}`;
  return lead(mark, renderInline(line.slice(whole.length), paint), paint.name);
}

/** A line behind a mark; what does not fit goes on below its text. */
function lead(mark: string, { text, style, ranges = [] }: TextLine, markStyle: Style): TextLine {
  const moved = ranges.map((range) => ({
    ...range,
    start: range.start + mark.length,
    end: range.end + mark.length,
  }));
  return {
    text: mark + text,
    style,
    ranges: [{ start: 0, end: mark.length, style: markStyle }, ...moved],
    hang: mark.length,
  };
}

function renderInline(source: string, paint: Paint, style?: Style): TextLine {
  const ranges: StyledRange[] = [];
  let text = "";
  let at = 0;
  const add = (piece: string, pieceStyle: Style): void => {
    ranges.push({ start: text.length, end: text.length + piece.length, style: pieceStyle });
    text += piece;
  };
  for (const match of source.matchAll(INLINE)) {
    const [whole, code, strong, starred, underlined, label, address] = match;
    text += source.slice(at, match.index);
    at = match.index + whole.length;
    if (code !== undefined) add(code, paint.code);
    else if (strong !== undefined) add(strong, paint.title);
    else if (label !== undefined) {
      add(label, paint.name);
      if (address !== undefined && address !== label) add(` (${address})`, paint.faint);
    } else add(starred ?? underlined ?? "", paint.emphasis);
  }
  return { text: text + source.slice(at), style, ranges };
}
