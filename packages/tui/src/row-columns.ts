/**
 * The first columns of a message row: time and role. The day is shown where it changes, on the first visible row and on the chosen one; a narrow
 * list has only the time, and a short word for the role. Pure.
 */
import { formatCount, formatTime, toOneLine } from "@lossless/core/doors";
import { cell, span, type Paint, type Span } from "./paint.ts";

/** Below this a row has no room for the year, and below the other no room for the day. */
const YEAR_FROM = 72;
const DAY_FROM = 56;
const DAY_CHARS = "2026-02-14 ".length;
const YEAR_CHARS = "2026-".length;

const SHORT_WORDS: Readonly<Record<string, string>> = { assistant: "asst", system: "sys" };

export interface RowFacts {
  readonly at: number | null;
  /** The time of the row above; null where the day must be shown. */
  readonly above: number | null;
  readonly who: string;
  /** What its colour says; otherwise the same. */
  readonly role?: string;
  readonly tokens?: number;
}

export function renderRowColumns(
  { at, above, who, role, tokens }: RowFacts,
  columns: number,
  timezone: string,
  paint: Paint,
): Span[] {
  const isNarrow = columns < DAY_FROM;
  const word = isNarrow ? (SHORT_WORDS[role ?? who] ?? role ?? who) : who;
  const style = paint.role(role ?? who);
  return [
    span(`${writeTime(at, above, columns, timezone)} `, paint.faint),
    cell(toOneLine(word), isNarrow ? 4 : 10, { style }),
    ...(tokens === undefined || isNarrow
      ? []
      : [cell(formatCount(tokens), 7, { right: true, style: paint.faint }), span(" ")]),
    span(" "),
  ];
}

function writeTime(at: number | null, above: number | null, columns: number, timezone: string): string {
  const time = formatTime(at, timezone);
  if (at === null) return time.padStart(columns < DAY_FROM ? 5 : columns < YEAR_FROM ? 11 : 16);
  if (columns < DAY_FROM) return time.slice(DAY_CHARS);
  const isSameDay =
    above !== null && formatTime(above, timezone).slice(0, DAY_CHARS) === time.slice(0, DAY_CHARS);
  const whole = isSameDay ? " ".repeat(DAY_CHARS) + time.slice(DAY_CHARS) : time;
  return columns < YEAR_FROM ? whole.slice(YEAR_CHARS) : whole;
}
