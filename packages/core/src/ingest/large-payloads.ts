/**
 * Finds what is too large to stay in a message's row (pasted files, long tool output, images, base64 in the middle of a text), cuts it out
 * of the arrival bytes, and puts it back. Cuts are inside string literals, so the remaining body is still JSON and the text around a
 * payload stays where it was. A payload is stored decoded, as a person would want the file, together with the way back to its original
 * bytes. Invariant: splice(cut(bytes)) is the identical bytes. Whatever no encoding reproduces is kept raw, as it was written.
 */
import { assert } from "../model/errors.ts";
import type { ByteRange, MessageView, PartView } from "../model/message.ts";
import { cutRanges, encodePayload, type Splice } from "../store/splice.ts";
import type { PayloadEncoding } from "../store/store.ts";
import { findBase64Spans } from "../message/base64.ts";
import { guessTextType, sniffMimeType } from "./media-types.ts";
import { asBuffer, decodeLiteral, iterateLongStrings, mapTextOffsets } from "../message/json-spans.ts";

export type PayloadKind = "file_block" | "tool_output" | "image" | "file" | "base64" | "text";

/** One payload; its range is cut from the arrival bytes, its content goes into the file. */
export interface Payload extends Splice {
  readonly kind: PayloadKind;
  readonly mimeType: string;
  readonly fileName?: string;
  readonly content: Buffer;
  /** The count that was compared with the threshold. */
  readonly tokens: number;
  /** The part that contains the payload; null when it is outside of all parts, where no model sees it. */
  readonly partOrdinal: number | null;
}

export interface PayloadLimits {
  readonly thresholdTokens: number;
  readonly estimate: (text: string) => number;
}

/** Payloads of at least `thresholdTokens`, in the order of the bytes, without overlap. */
export function findLargePayloads(arrival: Uint8Array, view: MessageView, limits: PayloadLimits): Payload[] {
  const bytes = asBuffer(arrival);
  // No text has more tokens than bytes, so shorter literals can be skipped.
  const minBytes = Math.max(1, limits.thresholdTokens);
  if (bytes.length < minBytes) return [];
  const payloads: Payload[] = [];
  for (const literal of iterateLongStrings(bytes, minBytes)) {
    const part = findPart(view, literal);
    const isUserText = part?.type === "text" && view.role === "user";
    payloads.push(...findInLiteral({ bytes, literal, part, isUserText, limits }));
  }
  return payloads;
}

/** The part that contains a range. */
function findPart(view: MessageView, { at, length }: ByteRange): PartView | null {
  return view.parts.find((part) => part.at <= at && at + length <= part.at + part.length) ?? null;
}

/** A string literal under inspection. */
interface LongString {
  readonly bytes: Buffer;
  readonly literal: ByteRange;
  readonly part: PartView | null;
  readonly isUserText: boolean;
  readonly limits: PayloadLimits;
}

/** A stretch of the decoded text that will be cut. Offsets are UTF-16. */
interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly kind: PayloadKind;
  readonly isBase64: boolean;
  readonly tokens: number;
  readonly mimeType?: string | undefined;
  readonly fileName?: string | undefined;
}

function findInLiteral(source: LongString): Payload[] {
  const { bytes, literal } = source;
  const text = decodeLiteral(bytes, literal);
  if (text === null) return [];
  const stretches = chooseStretches(text, source);
  if (stretches.length === 0) return [];
  const bounds = mapTextOffsets(
    bytes,
    literal,
    stretches.flatMap(({ start, end }) => [start, end]),
  );
  if (bounds === null) return [takeWhole(source, text)];
  return stretches.map((stretch, i) => {
    const at = bounds[2 * i] as number;
    const range = { at, length: (bounds[2 * i + 1] as number) - at };
    return makePayload(source, range, text.slice(stretch.start, stretch.end), stretch);
  });
}

/** The content of a literal that is not valid UTF-8 and so has no exact text. */
function takeWhole(source: LongString, text: string): Payload {
  const range = { at: source.literal.at + 1, length: source.literal.length - 2 };
  const whole = { start: 0, end: text.length, kind: kindOfText(source.part), isBase64: false };
  return makePayload(source, range, text, { ...whole, tokens: countTokens(text, source.limits) });
}

/** Files first, then base64, then any text between them that is still too long. */
function chooseStretches(text: string, source: LongString): Stretch[] {
  const { thresholdTokens } = source.limits;
  const files = source.isUserText ? findFileBlocks(text, source.limits) : [];
  const chosen = files.filter((file) => file.tokens >= thresholdTokens);
  for (const span of findBase64Stretches(text, source.part)) {
    if (span.tokens >= thresholdTokens && !chosen.some((other) => overlaps(other, span))) chosen.push(span);
  }
  chosen.sort((a, b) => a.start - b.start);
  const rest: Stretch[] = [];
  for (const [start, end] of gapsBetween(chosen, text.length)) {
    const tokens = countTokens(text.slice(start, end), source.limits);
    if (end > start && tokens >= thresholdTokens) {
      rest.push({ start, end, kind: kindOfText(source.part), isBase64: false, tokens });
    }
  }
  return [...chosen, ...rest].sort((a, b) => a.start - b.start);
}

function overlaps(a: Stretch, b: Stretch): boolean {
  return a.start < b.end && b.start < a.end;
}

function gapsBetween(stretches: readonly Stretch[], length: number): [number, number][] {
  const gaps: [number, number][] = [];
  let at = 0;
  for (const { start, end } of stretches) {
    gaps.push([at, start]);
    at = end;
  }
  gaps.push([at, length]);
  return gaps;
}

function kindOfText(part: PartView | null): PayloadKind {
  if (part?.type === "tool_result") return "tool_output";
  return part?.type === "file" ? "file" : "text";
}

const CHARS_PER_BASE64_TOKEN = 4;

/** Tokens of a text: base64 counts by the character, the rest by the estimate. */
function countTokens(text: string, { estimate }: PayloadLimits): number {
  let words = "";
  let at = 0;
  let base64Chars = 0;
  for (const { start, end } of findBase64Spans(text)) {
    words += text.slice(at, start);
    base64Chars += end - start;
    at = end;
  }
  return estimate(words + text.slice(at)) + Math.ceil(base64Chars / CHARS_PER_BASE64_TOKEN);
}

/** The text between `<file name="…" mime="…">` and `</file>`, without the line breaks next to the tags. */
function findFileBlocks(text: string, limits: PayloadLimits): Stretch[] {
  const blocks: Stretch[] = [];
  const opening = /<file\s([^<>]*)>/g;
  for (let match = opening.exec(text); match; match = opening.exec(text)) {
    const fileName = readAttribute(match[1] as string, "name");
    const mimeType = readAttribute(match[1] as string, "mime");
    const close = text.indexOf("</file>", opening.lastIndex);
    if (close < 0) break;
    if (fileName === undefined && mimeType === undefined) continue;
    const [start, end] = trimLineBreaks(text, opening.lastIndex, close);
    const inner = text.slice(start, end);
    const [span] = findBase64Spans(inner);
    const isBase64 = span !== undefined && span.start === 0 && span.end === inner.length;
    const tokens = isBase64 ? Math.ceil(inner.length / CHARS_PER_BASE64_TOKEN) : countTokens(inner, limits);
    blocks.push({ start, end, kind: "file_block", isBase64, tokens, mimeType, fileName });
    opening.lastIndex = close;
  }
  return blocks;
}

function readAttribute(attributes: string, name: string): string | undefined {
  const match = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"']+))`).exec(attributes);
  const value = match?.[1] ?? match?.[2] ?? match?.[3];
  return value === "" ? undefined : value;
}

function trimLineBreaks(text: string, from: number, to: number): [number, number] {
  let start = from;
  let end = to;
  if (text.startsWith("\r\n", start)) start += 2;
  else if (text[start] === "\n") start++;
  if (end > start && text[end - 1] === "\n") end--;
  if (end > start && text[end - 1] === "\r") end--;
  return [Math.min(start, to), Math.max(end, Math.min(start, to))];
}

function findBase64Stretches(text: string, part: PartView | null): Stretch[] {
  const isMedia = part?.type === "image" || part?.type === "file";
  return findBase64Spans(text).map(({ start, end, mimeType }) => ({
    start,
    end,
    kind: isMedia ? (part.type as "image" | "file") : "base64",
    isBase64: true,
    tokens: Math.ceil((end - start) / CHARS_PER_BASE64_TOKEN),
    mimeType: mimeType ?? (isMedia ? part.mimeType : undefined),
    fileName: isMedia ? part.fileName : undefined,
  }));
}

function makePayload(source: LongString, range: ByteRange, text: string, stretch: Stretch): Payload {
  const cut = source.bytes.subarray(range.at, range.at + range.length);
  const { encoding, content } = chooseEncoding(cut, text, stretch.isBase64);
  const fileName = stretch.fileName ?? (source.part?.type === "file" ? source.part.fileName : undefined);
  return {
    at: range.at,
    length: range.length,
    kind: stretch.kind,
    encoding,
    mimeType: chooseMimeType(source, stretch, encoding, content),
    fileName,
    content,
    tokens: stretch.tokens,
    partOrdinal: source.part?.ordinal ?? null,
  };
}

/** Base64 that could not be decoded without loss is a text file full of base64, whatever it encodes. */
function chooseMimeType(
  source: LongString,
  stretch: Stretch,
  encoding: PayloadEncoding,
  content: Buffer,
): string {
  if (stretch.isBase64) {
    return encoding === "base64" ? (stretch.mimeType ?? sniffMimeType(content)) : "text/plain";
  }
  const declared = stretch.mimeType ?? (source.part?.type === "file" ? source.part.mimeType : undefined);
  return declared ?? guessTextType(content);
}

/**
 * The most useful form of a payload from which the cut bytes can be reproduced: decoded base64, then text as JSON.stringify or an
 * ASCII-only writer escapes it. What none of them reproduces (lone surrogates, other escapes) stays raw.
 */
function chooseEncoding(cut: Buffer, text: string, isBase64: boolean): Encoded {
  const candidates: Encoded[] = [];
  if (isBase64) candidates.push({ encoding: "base64", content: Buffer.from(text, "base64") });
  const utf8 = Buffer.from(text, "utf8");
  candidates.push({ encoding: "json", content: utf8 }, { encoding: "json-ascii", content: utf8 });
  const exact = candidates.find(({ encoding, content }) => encodePayload(content, encoding).equals(cut));
  return exact ?? { encoding: "raw", content: Buffer.from(cut) };
}

type Encoded = Pick<Payload, "encoding" | "content">;

/** The bytes without their payloads. Before anything is cut, every payload is proven to be restorable. */
export function cutPayloads(arrival: Uint8Array, payloads: readonly Splice[]): { body: Buffer } {
  const bytes = asBuffer(arrival);
  const ordered = payloads.toSorted((a, b) => a.at - b.at);
  let from = 0;
  for (const { at, length, encoding, content } of ordered) {
    assert(at >= from && at + length <= bytes.length, "payloads overlap or lie outside the message");
    const original = bytes.subarray(at, at + length);
    assert(encodePayload(content, encoding).equals(original), "a payload does not come back");
    from = at + length;
  }
  return { body: cutRanges(bytes, ordered) };
}
