/** A list and its detail: side by side on a wide terminal, one above the other on a narrow one. Pure. */
import { toOneLine } from "@lossless/core/doors";
import { padLine, renderSpans, span, type Paint } from "./paint.ts";
import type { Size } from "./screen.ts";

export interface Panes {
  readonly list: Size;
  readonly detail: Size;
  readonly isSideBySide: boolean;
}

const WIDE_COLUMNS = 116;
const BORDER = " │ ";

export function splitPanes({ columns, rows }: Size, wideColumns = WIDE_COLUMNS): Panes {
  if (columns >= wideColumns) {
    const list = Math.floor((columns - BORDER.length) * 0.56);
    return {
      list: { columns: list, rows },
      detail: { columns: columns - BORDER.length - list, rows: Math.max(1, rows - 1) },
      isSideBySide: true,
    };
  }
  const detail = rows < 10 ? 0 : Math.floor(rows * 0.42);
  return {
    list: { columns, rows: Math.max(1, rows - detail - (detail > 0 ? 1 : 0)) },
    detail: { columns, rows: detail },
    isSideBySide: false,
  };
}

/** Both panes as lines; the title is above the detail. */
export function joinPanes(
  { list, detail, isSideBySide }: Panes,
  content: { readonly list: readonly string[]; readonly title: string; readonly detail: readonly string[] },
  paint: Paint,
): string[] {
  const title = toOneLine(content.title);
  const listLines = fill(content.list, list.rows);
  if (detail.rows === 0) return listLines;
  if (!isSideBySide) {
    const rule = renderSpans([span("── ", paint.faint), span(title, paint.faint), span(" ")], detail.columns);
    return [...listLines, rule, ...fill(content.detail, detail.rows)];
  }
  const right = [
    renderSpans([span(title, paint.faint)], detail.columns),
    ...fill(content.detail, detail.rows),
  ];
  const border = paint.faint(BORDER);
  return listLines.map((line, at) => `${padLine(line, list.columns)}${border}${right[at] ?? ""}`);
}

function fill(lines: readonly string[], rows: number): string[] {
  return Array.from({ length: rows }, (_, at) => lines[at] ?? "");
}
