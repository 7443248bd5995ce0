/**
 * Base64 inside text: where it is and how many bytes it encodes. Nobody searches for it, it floods an index, and it is useless in a
 * summary, so readable text shows a short note in its place. Pure and linear: one probe every `MIN_SPAN` characters finds every span at
 * least that long.
 */

/** Shorter spans are left alone: hashes, tokens and long identifiers are worth searching for. */
const MIN_SPAN = 256;
/** Wrapped base64 has lines of equal length, 64 or 76 in practice; lists of names do not. */
const MIN_LINE = 60;

export interface Base64Span {
  /** Offsets of the base64 characters in the text, padding included. */
  readonly start: number;
  readonly end: number;
  /** Where `data:<type>;base64,` begins when the span is part of a data URL, else `start`. */
  readonly outerStart: number;
  readonly mimeType?: string;
  /** Bytes the span decodes to. */
  readonly byteLength: number;
}

/** 1 for the base64 alphabet, 2 for line breaks, 0 for everything else. */
const CLASS = new Uint8Array(128);
for (const char of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
  CLASS[char.charCodeAt(0)] = 1;
}
CLASS[0x0a] = 2;
CLASS[0x0d] = 2;

const classAt = (text: string, index: number): number => CLASS[text.charCodeAt(index)] ?? 0;

/** Long base64 spans in a text, in order. */
export function findBase64Spans(text: string): Base64Span[] {
  const spans: Base64Span[] = [];
  let settled = 0;
  for (let probe = MIN_SPAN - 1; probe < text.length; probe += MIN_SPAN) {
    if (probe < settled || classAt(text, probe) === 0) continue;
    const [first, last] = expandSpan(text, probe, settled);
    settled = last;
    if (last - first < MIN_SPAN) continue;
    const span = readSpan(text, first, last);
    if (span) spans.push(span);
  }
  return spans;
}

/** The longest stretch of base64 characters and line breaks around `probe`, starting no earlier than `from`. */
function expandSpan(text: string, probe: number, from: number): [number, number] {
  let first = probe;
  while (first > from && classAt(text, first - 1) !== 0) first--;
  let last = probe + 1;
  while (last < text.length && classAt(text, last) !== 0) last++;
  return [first, last];
}

function readSpan(text: string, first: number, last: number): Base64Span | null {
  const bounds = trimToLines(text, first, last);
  if (bounds === null) return null;
  const [start, bodyEnd] = bounds;
  let end = bodyEnd;
  while (end < bodyEnd + 2 && text[end] === "=") end++;
  const body = text.slice(start, bodyEnd);
  if (!looksRandom(body)) return null;
  const prefix = /data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,$/.exec(
    text.slice(Math.max(0, start - 128), start),
  );
  const mimeType = prefix?.[1]?.toLowerCase();
  return {
    start,
    end,
    outerStart: prefix ? start - prefix[0].length : start,
    mimeType,
    byteLength: Math.floor(countSymbols(body) * 0.75),
  };
}

type Line = readonly [start: number, end: number];

/**
 * Without line breaks the stretch is the span. With them, the span is the longest block of lines of one length, with the
 * shorter line that ends it, or the longest single line.
 */
function trimToLines(text: string, first: number, last: number): Line | null {
  const lines = splitLines(text, first, last);
  let best: Line = [first, first];
  for (let i = 0; i < lines.length;) {
    const end = endOfBlock(text, lines, i);
    const block: Line = [(lines[i] as Line)[0], (lines[end - 1] as Line)[1]];
    if (widthOf(block) > widthOf(best)) best = block;
    i = end;
  }
  return widthOf(best) >= MIN_SPAN ? best : null;
}

/** One past the last line of the block that begins with line `from`. */
function endOfBlock(text: string, lines: readonly Line[], from: number): number {
  const width = widthOf(lines[from] as Line);
  let end = from + 1;
  if (width < MIN_LINE) return end;
  while (end < lines.length && widthOf(lines[end] as Line) === width) end++;
  const closing = lines[end];
  return end - from > 1 && closing && closesBlock(text, closing, width) ? end + 1 : end;
}

/** A shorter line ends a block only if it completes a group of four; otherwise it is the text that follows. */
function closesBlock(text: string, line: Line, width: number): boolean {
  const padding = text.startsWith("==", line[1]) ? 2 : text[line[1]] === "=" ? 1 : 0;
  return widthOf(line) > 0 && widthOf(line) < width && (widthOf(line) + padding) % 4 === 0;
}

const widthOf = ([start, end]: Line): number => end - start;

function splitLines(text: string, first: number, last: number): Line[] {
  const lines: Line[] = [];
  let start = first;
  for (let i = first; i <= last; i++) {
    if (i < last && classAt(text, i) === 1) continue;
    lines.push([start, i]);
    if (text[i] === "\r" && text[i + 1] === "\n") i++;
    start = i + 1;
  }
  return lines;
}

/** Encoded data mixes capitals, small letters and digits; hex dumps, rulers and repeated letters do not. */
function looksRandom(body: string): boolean {
  return /[A-Z]/.test(body) && /[a-z]/.test(body) && /[0-9]/.test(body);
}

function countSymbols(body: string): number {
  let count = 0;
  for (let i = 0; i < body.length; i++) if (classAt(body, i) === 1) count++;
  return count;
}

/** Decoded size of a base64 string, without decoding it. */
export function base64ByteLength(base64: string): number {
  let symbols = base64.length;
  while (symbols > 0 && base64[symbols - 1] === "=") symbols--;
  if (base64.includes("\n")) symbols = countSymbols(base64);
  return Math.floor(symbols * 0.75);
}

export interface ReadableText {
  readonly text: string;
  /** Bytes of the base64 that was omitted. */
  readonly hiddenBytes: number;
}

/** The text with a note in place of every long base64 span. */
export function hideBase64(text: string): ReadableText {
  if (text.length < MIN_SPAN) return { text, hiddenBytes: 0 };
  const spans = findBase64Spans(text);
  if (spans.length === 0) return { text, hiddenBytes: 0 };
  let shown = "";
  let at = 0;
  let hiddenBytes = 0;
  for (const span of spans) {
    shown += `${text.slice(at, span.outerStart)}[${span.mimeType ?? "base64"} data, ${span.byteLength} bytes]`;
    at = span.end;
    hiddenBytes += span.byteLength;
  }
  return { text: shown + text.slice(at), hiddenBytes };
}
