/**
 * Colours by meaning, and lines of a given width. Text is cut before it is coloured, so that no line is ever wider than the terminal. Without
 * colour nothing is lost: the chosen row also has a marker character.
 */
import { stripVTControlCharacters, styleText } from "node:util";
import { displayWidth, toOneLine, truncateToWidth } from "@lossless/core/doors";

type Format = Parameters<typeof styleText>[0];
export type Style = (text: string) => string;

export interface Paint {
  readonly isColoured: boolean;
  readonly title: Style;
  readonly heading: Style;
  readonly emphasis: Style;
  readonly code: Style;
  readonly faint: Style;
  readonly good: Style;
  readonly bad: Style;
  readonly warning: Style;
  readonly name: Style;
  readonly match: Style;
  readonly selected: Style;
  readonly role: (role: string) => Style;
}

const ROLES: Readonly<Record<string, Format>> = {
  user: "cyan",
  assistant: "green",
  tool: "yellow",
  system: "magenta",
};

const plain: Style = (text) => text;

export function createPaint(isColoured: boolean): Paint {
  const style = (format: Format): Style =>
    isColoured ? (text) => styleText(format, text, { validateStream: false }) : plain;
  const roles = Object.fromEntries(Object.entries(ROLES).map(([role, format]) => [role, style(format)]));
  const otherRole = style("blue");
  return {
    isColoured,
    title: style("bold"),
    heading: style(["bold", "magenta"]),
    emphasis: style("italic"),
    code: style("blue"),
    faint: style("dim"),
    good: style("green"),
    bad: style("red"),
    warning: style("yellow"),
    name: style("cyan"),
    match: style(["bold", "yellow"]),
    selected: style("inverse"),
    role: (role) => roles[role] ?? otherRole,
  };
}

/** A piece of a line. Its text must be printable: one line, no control characters. */
export interface Span {
  readonly text: string;
  readonly style?: Style;
}

export const span = (text: string, style?: Style): Span => (style === undefined ? { text } : { text, style });

/** Stored text as a span. */
export const storedSpan = (text: string, style?: Style): Span => span(toOneLine(text), style);

/** Spans one after the other, cut at the width. */
export function renderSpans(spans: readonly Span[], columns: number): string {
  let left = columns;
  let line = "";
  for (const { text, style } of spans) {
    if (left <= 0) break;
    if (text === "") continue;
    const kept = truncateToWidth(text, left);
    left -= displayWidth(kept);
    line += style === undefined ? kept : style(kept);
    if (kept !== text) break;
  }
  return line;
}

/** Padded with spaces to the width; for lines that are marked as a whole, and for text to the left of something. */
export function padLine(line: string, columns: number): string {
  return line + " ".repeat(Math.max(0, columns - displayWidth(line)));
}

/** Cuts a line to the terminal's width, whatever it contains. Lines are built to fit; this is for terminals too small for that. */
export function clipLine(line: string, columns: number): string {
  return displayWidth(line) <= columns ? line : truncateToWidth(stripVTControlCharacters(line), columns);
}

/** A cell of a table, of exactly this width. */
export function cell(text: string, columns: number, options: { right?: boolean; style?: Style } = {}): Span {
  const cut = columns <= 0 ? "" : truncateToWidth(text, columns);
  const padding = " ".repeat(Math.max(0, columns - displayWidth(cut)));
  return span(options.right === true ? padding + cut : cut + padding, options.style);
}

/** A row of a list; the chosen one has a marker and is marked as a whole. */
export function renderRow(
  spans: readonly Span[],
  { columns, isSelected, paint }: { columns: number; isSelected: boolean; paint: Paint },
): string {
  const marker = span(isSelected ? "▸ " : "  ");
  if (!isSelected) return renderSpans([marker, ...spans], columns);
  // Colours inside a marked line are hard to read: the mark is enough.
  const line = renderSpans([marker, ...spans.map(({ text }) => span(text))], columns);
  return paint.selected(padLine(line, columns));
}
