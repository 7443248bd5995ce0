/**
 * Renders stored Markdown as styled lines: headings, lists, quotes, code, tables, emphasis, links. Works line by line, so that a broken or huge
 * text costs no more than its length, and drops only the characters it shows as a style. Pure.
 *
 * Invariant: the text was made printable first, so styles are the only escape sequences. Without colour everything but tables is shown as
 * written: then those characters are the only marks of a heading or a word.
 */
import { displayWidth, makePrintable } from "@lossless/core/doors";
import { findTable, type FoundTable } from "./markdown-table.ts";
import type { Paint, Style } from "./paint.ts";
import { CELL_BORDER, type Table, type TableRow } from "./table-layout.ts";
import type { StyledRange, TextLine } from "./wrapped-text.ts";

/** Longer lines are data, not prose. */
const MAX_PROSE_CHARS = 2_000;
const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s*(?:-\s*){3,}$|^\s*(?:\*\s*){3,}$|^\s*(?:_\s*){3,}$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(?=\S)/;
const QUOTE = /^\s*>\s?/;
/** Code; strong; emphasis with either character; a link. Each alternative stops at its own character, so no text takes long. */
const INLINE =
  /`([^`]+)`|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])|(?<![\w_])_([^\s_](?:[^_]*[^\s_])?)_(?![\w_])|\[([^[\]]+)\]\(([^()\s]+)\)/g;

export function toMarkdownLines(text: string, paint: Paint): TextLine[] {
  const lines = makePrintable(text).split("\n");
  const shown: TextLine[] = [];
  let fence: Fence | null = null;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const [, sign = "", language = ""] = FENCE.exec(line) ?? [];
    const table = fence === null && sign === "" ? findTable(lines, at, MAX_PROSE_CHARS) : null;
    if (table !== null) {
      for (const row of renderTable(table, paint)) shown.push(row);
      at += table.lines - 1;
      continue;
    }
    shown.push(paint.isColoured ? renderLine(line, sign, fence, paint) : { text: line });
    if (fence === null && sign !== "") fence = { sign, isDiff: language === "diff" || language === "patch" };
    else if (fence !== null && sign !== "" && sign.startsWith(fence.sign)) fence = null;
  }
  return shown;
}

interface Fence {
  readonly sign: string;
  readonly isDiff: boolean;
}

/** Renders a line inside or outside a fence, or the fence itself. */
function renderLine(line: string, sign: string, fence: Fence | null, paint: Paint): TextLine {
  if (fence !== null && (sign === "" || !sign.startsWith(fence.sign)))
    return renderCode(line, fence.isDiff, paint);
  return sign === "" ? renderProse(line, paint) : { text: line, style: paint.faint };
}

function renderTable({ rows, aligns }: FoundTable, paint: Paint): TextLine[] {
  const cells = rows.map((row, at) =>
    row.map((text) =>
      paint.isColoured ? renderInline(text, paint, at === 0 ? paint.title : undefined) : { text },
    ),
  );
  const heads = (cells[0] ?? []).map(({ text }) => text);
  const widths = heads.map((_, column) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[column]?.text ?? "")), 1),
  );
  const table: Table = { heads, aligns, widths, ruleStyle: paint.faint, isEmpty: rows.length === 1 };
  const [head, ...body] = cells.map((row, at) => joinCells(row, { table, at: at === 0 ? "head" : at - 1 }));
  const rule: TextLine = { text: "", row: { table, at: "rule", cells: [] } };
  return head === undefined ? [] : [head, rule, ...body];
}

/** The cells of a row as one line: searches match in it, and wrapping separates its cells again. */
function joinCells(cells: readonly TextLine[], row: Pick<TableRow, "table" | "at">): TextLine {
  const places: { start: number; end: number }[] = [];
  const ranges: StyledRange[] = [];
  let text = "";
  for (const cell of cells) {
    if (places.length > 0) text += CELL_BORDER;
    const start = text.length;
    for (const range of cell.ranges ?? [])
      ranges.push({ ...range, start: range.start + start, end: range.end + start });
    text += cell.text;
    places.push({ start, end: text.length });
  }
  return { text, style: cells[0]?.style, ranges, row: { ...row, cells: places } };
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

/** A line after a list mark; what does not fit is indented below its text. */
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
