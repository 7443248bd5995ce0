/** Markdown tables: a header line, a line of dashes, and rows while lines have bars. Pure. */
import type { Align } from "./table-layout.ts";

const BAR = /(?<!\\)\|/;
const DASHES = /^:?-+:?$/;

export interface FoundTable {
  readonly aligns: readonly Align[];
  /** The header, then the rows; each has as many cells as the header. */
  readonly rows: readonly (readonly string[])[];
  /** Number of lines it takes. */
  readonly lines: number;
}

/** The table that begins at a line, or null. Lines longer than `maxChars` are data. */
export function findTable(lines: readonly string[], at: number, maxChars: number): FoundTable | null {
  const isRow = (line: string | undefined): line is string =>
    line !== undefined && line.length <= maxChars && BAR.test(line);
  const [head, dashes] = [lines[at], lines[at + 1]];
  if (!isRow(head) || !isRow(dashes)) return null;
  const heads = splitCells(head);
  const marks = splitCells(dashes);
  if (marks.length !== heads.length || !marks.every((mark) => DASHES.test(mark))) return null;
  const rows = [heads];
  let end = at + 2;
  for (let line = lines[end]; isRow(line); line = lines[end]) {
    rows.push(fillCells(splitCells(line), heads.length));
    end += 1;
  }
  return { aligns: marks.map(readAlign), rows, lines: end - at };
}

function splitCells(line: string): string[] {
  const cells = line
    .trim()
    .split(BAR)
    .map((cell) => cell.trim().replaceAll(String.raw`\|`, "|"));
  // The bars at both ends are a frame.
  if (cells.length > 1 && cells[0] === "") cells.shift();
  if (cells.length > 1 && cells.at(-1) === "") cells.pop();
  return cells;
}

/** Nothing is dropped: extra cells go into the last one. */
function fillCells(cells: readonly string[], count: number): string[] {
  const kept = Array.from({ length: count }, (_, at) => cells[at] ?? "");
  if (cells.length > count) kept[count - 1] = cells.slice(count - 1).join(" | ");
  return kept;
}

function readAlign(mark: string): Align {
  if (!mark.endsWith(":")) return "left";
  return mark.startsWith(":") ? "center" : "right";
}
