/** Tables for people: columns as wide as their content. On a terminal one column shrinks so that lines do not wrap; in pipes nothing is cut. */
import { displayWidth, truncateToWidth } from "@lossless/core/doors";

export interface Column {
  readonly title: string;
  readonly align?: "left" | "right";
  /** This column is cut when the terminal is too narrow. */
  readonly flexible?: true;
  /** Omitted if the terminal is too narrow for a useful flexible column: the highest number first. */
  readonly dropped?: number;
  readonly style?: (text: string) => string;
}

export interface TableOptions {
  /** Columns of the terminal; null means no limit. */
  readonly maxWidth: number | null;
  readonly styleTitle?: (text: string) => string;
}

const GAP = "  ";
const MIN_FLEXIBLE = 12;
/** The minimum width of a flexible column before other columns are omitted. */
const WANTED_FLEXIBLE = 36;

export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  options: TableOptions,
): string {
  const measure = (column: Column, at: number): number =>
    Math.max(displayWidth(column.title), ...rows.map((row) => displayWidth(row[at] ?? "")));
  const narrower = dropColumn(columns, columns.map(measure), options.maxWidth);
  if (narrower !== null) {
    const keep = <T>(cells: readonly T[]): T[] => cells.filter((_cell, at) => at !== narrower);
    return renderTable(keep(columns), rows.map(keep), options);
  }
  const natural = columns.map(measure);
  const widths = fitWidths(columns, natural, options.maxWidth);
  const styleTitle = options.styleTitle ?? ((text: string) => text);
  const renderRow = (cells: readonly string[], isTitle: boolean): string =>
    columns
      .map((column, at) => {
        const width = widths[at] ?? 0;
        const text = truncateToWidth(cells[at] ?? "", width);
        const padding = " ".repeat(width - displayWidth(text));
        const style = isTitle ? styleTitle : (column.style ?? ((plain: string) => plain));
        const styled = text === "" ? "" : style(text);
        const isLast = at === columns.length - 1;
        return column.align === "right" ? padding + styled : isLast ? styled : styled + padding;
      })
      .join(GAP)
      .trimEnd();
  const titles = columns.map((column) => column.title);
  return [renderRow(titles, true), ...rows.map((row) => renderRow(row, false))].join("\n");
}

/** The column to omit, or null if the table fits, or nothing can be omitted. */
function dropColumn(
  columns: readonly Column[],
  natural: readonly number[],
  maxWidth: number | null,
): number | null {
  const wanted = natural.map((width, at) =>
    columns[at]?.flexible ? Math.min(width, WANTED_FLEXIBLE) : width,
  );
  const total = wanted.reduce((sum, width) => sum + width, 0) + GAP.length * (columns.length - 1);
  if (maxWidth === null || total <= maxWidth) return null;
  const [first] = columns
    .map(({ dropped }, at) => ({ at, dropped }))
    .filter(({ dropped }) => dropped !== undefined)
    .toSorted((a, b) => (b.dropped ?? 0) - (a.dropped ?? 0));
  return first?.at ?? null;
}

function fitWidths(
  columns: readonly Column[],
  natural: readonly number[],
  maxWidth: number | null,
): number[] {
  const total = natural.reduce((sum, width) => sum + width, 0) + GAP.length * (columns.length - 1);
  if (maxWidth === null || total <= maxWidth) return [...natural];
  const over = total - maxWidth;
  return natural.map((width, at) =>
    columns[at]?.flexible ? Math.max(Math.min(width, MIN_FLEXIBLE), width - over) : width,
  );
}

/** Names and values, one pair per line, values aligned. */
export function renderPairs(
  pairs: readonly (readonly [name: string, value: string])[],
  styleName: (text: string) => string = (text) => text,
): string {
  const width = Math.max(...pairs.map(([name]) => displayWidth(name)));
  return pairs
    .map(([name, value]) => {
      const padding = " ".repeat(width - displayWidth(name));
      return `${styleName(name)}${padding}  ${value}`.trimEnd();
    })
    .join("\n");
}
