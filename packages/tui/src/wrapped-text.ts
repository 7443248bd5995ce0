/** A long text as lines of a pane, wrapped as far as the user has scrolled. Opening a text of a megabyte costs no more than its first screen. */
import { makePrintable, truncateToWidth, wrapToWidth } from "@lossless/core/doors";
import type { Style } from "./paint.ts";
import { alignCell, CELL_BORDER, fitColumns, RULE_BORDER, type TableRow } from "./table-layout.ts";

/** A part of a line with its own style, in UTF-16 units. */
export interface StyledRange {
  readonly start: number;
  readonly end: number;
  readonly style: Style;
}

/** A line of a text before it is wrapped. */
export interface TextLine {
  readonly text: string;
  readonly style?: Style | undefined;
  /** Where ranges overlap, the last one wins. */
  readonly ranges?: readonly StyledRange[];
  /** The indentation of continuation lines, in columns. */
  readonly hang?: number;
  /** Set for a row of a table, which is drawn as one. */
  readonly row?: TableRow;
}

/** Wrapping a line takes time that grows faster than its length; longer ones are wrapped in pieces. */
const MAX_PIECE_CHARS = 2_000;
/** A larger hanging indent than this share of the pane is ignored. */
const MAX_HANG_SHARE = 0.5;
/** The indentation of continuation lines in a cell. */
const LIST_HANG = 2;

export class WrappedText {
  readonly #source: readonly TextLine[];
  readonly #columns: number;
  readonly #lines: string[] = [];
  /** For each line of the source that was wrapped, where it begins. */
  readonly #starts: number[] = [];

  constructor(source: readonly TextLine[], columns: number) {
    this.#source = source;
    this.#columns = Math.max(1, columns);
  }

  /** This many lines from an index; fewer at the end. */
  read(from: number, count: number): readonly string[] {
    this.#wrapUpTo(from + count);
    return this.#lines.slice(from, from + count);
  }

  /** How many lines there are. Wraps everything. */
  count(): number {
    this.#wrapUpTo(Number.POSITIVE_INFINITY);
    return this.#lines.length;
  }

  /** The nearest index from which a full screen can be shown. */
  clampTop(top: number, rows: number): number {
    this.#wrapUpTo(top + rows);
    return Math.max(0, Math.min(top, this.#lines.length - rows));
  }

  /** The line of the pane for a place of the source. */
  find(sourceLine: number, offset: number): number {
    while (this.#starts.length <= sourceLine && this.#wrapNext());
    const source = this.#source[sourceLine];
    const start = this.#starts[sourceLine];
    if (source === undefined || start === undefined) return 0;
    if (source.row !== undefined) return start;
    // Up to the end of its word, which may wrap to the next line.
    const end = source.text.indexOf(" ", offset);
    const text = source.text.slice(
      0,
      end < 0 ? offset + this.#columns : Math.min(end, offset + this.#columns),
    );
    const before = wrapLine({ text, hang: source.hang ?? 0 }, this.#columns);
    return start + Math.max(0, before.length - 1);
  }

  #wrapUpTo(count: number): void {
    while (this.#lines.length < count && this.#wrapNext());
  }

  #wrapNext(): boolean {
    const line = this.#source[this.#starts.length];
    if (line === undefined) return false;
    this.#starts.push(this.#lines.length);
    for (const wrapped of wrapLine(line, this.#columns)) this.#lines.push(wrapped);
    return true;
  }
}

function wrapLine(source: TextLine, columns: number): string[] {
  if (source.row !== undefined) return drawRow(source, source.row, columns);
  const { text, style, ranges = [], hang = 0 } = source;
  const indent = hang > columns * MAX_HANG_SHARE ? 0 : hang;
  const [mark, rest] = [text.slice(0, indent), text.slice(indent)];
  const lines: string[] = [];
  let at = indent;
  for (const piece of splitPieces(rest)) {
    for (const line of wrapToWidth(piece, columns - indent)) {
      // Wrapping only omits spaces, so each line is found at or after the end of the one before.
      const start = Math.max(at, text.indexOf(line, at));
      at = start + line.length;
      const first = lines.length === 0 ? paintRange(mark, 0, style, ranges) : " ".repeat(indent);
      lines.push(first + paintRange(line, start, style, ranges));
    }
  }
  return lines;
}

/** A row of a table as high as its highest cell; one line per cell if the pane is too narrow for columns. */
function drawRow(line: TextLine, { table, at, cells }: TableRow, columns: number): string[] {
  const widths = fitColumns(table.widths, columns);
  if (widths === null) return listCells(line, { table, at, cells }, columns);
  if (at === "rule") return [table.ruleStyle(widths.map((width) => "─".repeat(width)).join(RULE_BORDER))];
  const border = table.ruleStyle(CELL_BORDER);
  const wrapped = cells.map((cell, column) => wrapLine(cutLine(line, cell), widths[column] ?? 1));
  const height = Math.max(1, ...wrapped.map(({ length }) => length));
  return Array.from({ length: height }, (_, row) =>
    wrapped
      .map((texts, column) => alignCell(texts[row] ?? "", widths[column] ?? 1, table.aligns[column]))
      .join(border)
      .trimEnd(),
  );
}

/** Each cell after the header of its column, with a gap between rows. The headers have their own lines only if there are no rows. */
function listCells(line: TextLine, { table, at, cells }: TableRow, columns: number): string[] {
  if (at === "rule") return [];
  const listed = cells.flatMap((cell, column) => {
    if (at === "head") return table.isEmpty ? wrapLine(cutLine(line, cell), columns) : [];
    const label = `${truncateToWidth(table.heads[column] ?? "", Math.max(1, Math.floor(columns / 2)))}: `;
    const { text, ranges = [], ...rest } = cutLine(line, cell);
    const moved = ranges.map((range) => ({
      ...range,
      start: range.start + label.length,
      end: range.end + label.length,
    }));
    const named = [{ start: 0, end: label.length, style: table.ruleStyle }, ...moved];
    return wrapLine({ ...rest, text: label + text, ranges: named, hang: LIST_HANG }, columns);
  });
  return at === "head" || at === 0 ? listed : ["", ...listed];
}

/** A part of a line, in its styles. */
function cutLine(
  { text, style, ranges = [] }: TextLine,
  { start, end }: TableRow["cells"][number],
): TextLine {
  const own = ranges.filter((range) => range.start < end && range.end > start);
  return {
    text: text.slice(start, end),
    style,
    ranges: own.map((range) => ({ ...range, start: range.start - start, end: range.end - start })),
  };
}

/** A piece of a line that begins at an offset, in its styles. */
function paintRange(
  text: string,
  start: number,
  style: Style | undefined,
  ranges: readonly StyledRange[],
): string {
  if (text === "") return "";
  const end = start + text.length;
  const seen = ranges.filter((range) => range.start < end && range.end > start);
  if (seen.length === 0) return style === undefined ? text : style(text);
  const cuts = new Set([start, end]);
  for (const range of seen) cuts.add(Math.max(start, range.start)).add(Math.min(end, range.end));
  const places = [...cuts].toSorted((a, b) => a - b);
  return places
    .slice(0, -1)
    .map((from, index) => {
      const piece = text.slice(from - start, (places[index + 1] ?? end) - start);
      const own = seen.findLast((range) => range.start <= from && range.end > from)?.style ?? style;
      return own === undefined ? piece : own(piece);
    })
    .join("");
}

function splitPieces(text: string): string[] {
  if (text.length <= MAX_PIECE_CHARS) return [text];
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    let end = at + MAX_PIECE_CHARS;
    // Not between the two halves of a surrogate pair.
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end += 1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** Stored text as safe lines: nothing in it can move the cursor or change colours. */
export function toTextLines(text: string, style?: Style): TextLine[] {
  return makePrintable(text)
    .split("\n")
    .map((line) => (style === undefined ? { text: line } : { text: line, style }));
}
