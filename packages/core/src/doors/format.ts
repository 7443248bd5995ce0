/**
 * Numbers, sizes, times and stored text in readable form. Pure. Stored text is never trusted: characters that could move the cursor, change
 * colours or reverse the reading direction are made visible before they reach a terminal.
 */

export function formatCount(count: number): string {
  return count.toLocaleString("en");
}

/** `3 messages`, `1 message`. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** In powers of 1000, with three figures at most. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

export function formatSeconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return join(`${minutes} min`, seconds % 60, "s");
  return join(`${Math.floor(minutes / 60)} h`, minutes % 60, "min");
}

const join = (words: string, rest: number, unit: string): string =>
  rest === 0 ? words : `${words} ${rest} ${unit}`;

export function toIso(ms: number): string;
export function toIso(ms: number | null): string | null;
export function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

const formatters = new Map<string, Intl.DateTimeFormat>();

/** `2026-02-21 14:05` in the time zone of the settings. */
export function formatTime(ms: number | null, timezone: string): string {
  if (ms === null) return "–";
  let formatter = formatters.get(timezone);
  if (formatter === undefined) {
    // Swedish formats dates like ISO.
    formatter = new Intl.DateTimeFormat("sv-SE", {
      timeZone: timezone,
      dateStyle: "short",
      timeStyle: "short",
    });
    formatters.set(timezone, formatter);
  }
  return formatter.format(ms);
}

/** A period: the day and both times, or both days. */
export function formatSpan(earliest: number | null, latest: number | null, timezone: string): string {
  const [from, to] = [formatTime(earliest, timezone), formatTime(latest, timezone)];
  if (from === to) return from;
  const [fromDay = "", toDay = ""] = [from.split(" ")[0], to.split(" ")[0]];
  if (fromDay === toDay) return `${from}–${to.slice(toDay.length + 1)}`;
  const isSameYear = fromDay.slice(0, 5) === toDay.slice(0, 5);
  return `${fromDay} – ${isSameYear ? toDay.slice(5) : toDay}`;
}

/** `12 %`; a nonzero share is never shown as zero. */
export function formatShare(part: number, whole: number): string {
  const percent = whole <= 0 ? 0 : (100 * part) / whole;
  return percent > 0 && percent < 1 ? "<1 %" : `${Math.round(percent)} %`;
}

/** How many times smaller: `11.4 : 1`. */
export function formatCompression(raw: number, kept: number): string {
  return kept <= 0 ? "–" : `${(raw / kept).toFixed(1)} : 1`;
}

/** A share as a bar of blocks. */
export function renderBar(share: number, columns: number): string {
  const filled = Math.round(share * columns);
  return `${"█".repeat(filled)}${"░".repeat(columns - filled)}`;
}

const UNSAFE = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** Text that may be printed: line feeds and tabs stay, other control characters show as symbols. */
export function makePrintable(text: string): string {
  return text.replaceAll(/\r\n/g, "\n").replaceAll(UNSAFE, (character) => {
    if (character === "\n") return character;
    if (character === "\t") return "  ";
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : "�";
  });
}

/** The same on one line. */
export function toOneLine(text: string): string {
  return makePrintable(text.replaceAll(/\s+/gu, " "));
}

export const indent = (text: string): string => text.replaceAll(/^/gm, "  ");
