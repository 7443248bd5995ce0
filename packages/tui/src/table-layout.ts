/** The column widths of a table in a pane: as wide as their cells if that fits, otherwise the wide ones share the rest. Pure. */
import { displayWidth } from "@lossless/core/doors";
import type { Style } from "./paint.ts";

export type Align = "left" | "right" | "center";

/** What all rows of a table share. */
export interface Table {
  readonly heads: readonly string[];
  readonly aligns: readonly Align[];
  /** The width of the widest cell of each column. */
  readonly widths: readonly number[];
  readonly ruleStyle: Style;
  /** It has only a header. */
  readonly isEmpty: boolean;
}

/** A line of a text that is a row of a table. */
export interface TableRow {
  readonly table: Table;
  /** The header, the rule below it, or a row from 0. */
  readonly at: "head" | "rule" | number;
  /** Where its cells are in the text of the line, in UTF-16 units. */
  readonly cells: readonly { readonly start: number; readonly end: number }[];
}

export const CELL_BORDER = " │ ";
export const RULE_BORDER = "─┼─";
/** Up to here, a table that does not fit is shown one line per cell. */
const NARROW_COLUMNS = 40;
/** The minimum width of a wrapped cell. */
const MIN_CELL_COLUMNS = 10;

/** Null: there is no room for columns; each cell gets its own line. */
export function fitColumns(widths: readonly number[], columns: number): readonly number[] | null {
  let room = columns - CELL_BORDER.length * (widths.length - 1);
  if (widths.reduce((sum, width) => sum + width, 0) <= room) return widths;
  if (columns <= NARROW_COLUMNS) return null;
  const fitted = [...widths];
  // The narrowest first: what they leave is for the others.
  const order = widths.map((_, at) => at).toSorted((a, b) => (widths[a] ?? 0) - (widths[b] ?? 0));
  for (const [done, at] of order.entries()) {
    const share = Math.floor(room / (order.length - done));
    const width = Math.min(widths[at] ?? 0, share);
    if (width < Math.min(widths[at] ?? 0, MIN_CELL_COLUMNS)) return null;
    fitted[at] = width;
    room -= width;
  }
  return fitted;
}

/** Padded with spaces according to the alignment of its column. */
export function alignCell(text: string, width: number, align: Align = "left"): string {
  const missing = Math.max(0, width - displayWidth(text));
  const before = align === "right" ? missing : align === "center" ? Math.floor(missing / 2) : 0;
  return " ".repeat(before) + text + " ".repeat(missing - before);
}
