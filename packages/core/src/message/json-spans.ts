/**
 * Finds the byte ranges of values in JSON text, without parsing what is between them. Parts of a message are stored as ranges of its
 * arrival bytes, and large payloads are cut out of the middle of a string; both need exact places that `JSON.parse` does not give.
 * Everything is iterative, so nesting has no limit. Invariant: on text that `JSON.parse` accepts, the slice at a range parses to the value
 * that `JSON.parse` returns there (of repeated keys the last one). For other bytes the result is null or ends early; nothing is read out of
 * bounds.
 */
import { isUtf8 } from "node:buffer";
import type { ByteRange } from "../model/message.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Keys and short words end within this many bytes; a loop is then faster than a native search. */
const SHORT_STRING_BYTES = 32;

/** JSON text in which several ranges are looked up. */
export interface JsonSource {
  readonly bytes: Buffer;
  /**
   * Start and end of containers that were skipped, as consecutive numbers: an envelope, the message in it and its blocks are nested, and
   * would be walked once for each.
   */
  readonly noted: number[];
}

/** The depth of a message's blocks in the envelope member that contains it. */
const NOTED_DEPTH = 3;
/** Searching more of them would take longer than walking. */
const MAX_NOTED = 64;

/** The same memory as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The range of the one value in the text, without the white space (and byte order mark) around it. */
export function findRoot(bytes: Buffer): ByteRange | null {
  const at = startOfText(bytes);
  const end = endOfValue(bytes, at, null);
  return end < 0 ? null : { at, length: end - at };
}

/** The start of a text, after a byte order mark and white space. */
export function startOfText(bytes: Buffer): number {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return skipWhitespace(bytes, hasMark ? 3 : 0);
}

/** The end of a text, before white space: if the text parses, the end of its value. */
export function endOfText(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && isWhitespace(bytes[end - 1])) end--;
  return end;
}

/**
 * The range of the value at a path, counted from the root or from `within`.
 *
 * @example findSpan({ bytes: Buffer.from('{"a":[1,"x"]}'), noted: [] }, ["a", 1]) // { at: 8, length: 3 }
 */
export function findSpan(
  source: JsonSource,
  path: readonly (string | number)[],
  within: ByteRange | null = findRoot(source.bytes),
): ByteRange | null {
  let range = within;
  for (const step of path) {
    if (range === null) return null;
    range =
      typeof step === "number"
        ? (listElements(source, range)[step] ?? null)
        : findMember(source, range, step);
  }
  return range;
}

/** The range of the value of a key; of repeated keys the last one. Null for anything but an object with the key. */
export function findMember({ bytes, noted }: JsonSource, object: ByteRange, key: string): ByteRange | null {
  let found = -1;
  let foundEnd = -1;
  let at = firstItem(bytes, object.at, OPEN_OBJECT);
  while (at >= 0 && bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at);
    const value = startOfMember(bytes, keyEnd);
    const end = value < 0 ? -1 : endOfValue(bytes, value, noted);
    if (end < 0) break;
    if (isLiteralOf(bytes, at, keyEnd, key)) {
      found = value;
      foundEnd = end;
    }
    at = nextItem(bytes, end);
  }
  return found < 0 ? null : { at: found, length: foundEnd - found };
}

/** The range of the value of each key; of repeated keys the last one. Empty for anything but an object. */
export function mapMembers(bytes: Buffer, object: ByteRange): Map<string, ByteRange> {
  const ranges = new Map<string, ByteRange>();
  let at = firstItem(bytes, object.at, OPEN_OBJECT);
  while (at >= 0 && bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at);
    const value = startOfMember(bytes, keyEnd);
    const end = value < 0 ? -1 : endOfValue(bytes, value, null);
    const key = end < 0 ? null : decodeLiteral(bytes, { at, length: keyEnd - at });
    if (key === null) break;
    ranges.set(key, { at: value, length: end - value });
    at = nextItem(bytes, end);
  }
  return ranges;
}

/** The elements of an array in order, of arrays of any length. */
export function* iterateElements(bytes: Buffer, array: ByteRange): Generator<ByteRange> {
  let at = firstItem(bytes, array.at, OPEN_ARRAY);
  while (at >= 0 && bytes[at] !== CLOSE_ARRAY) {
    const end = endOfValue(bytes, at, null);
    if (end < 0) return;
    yield { at, length: end - at };
    at = nextItem(bytes, end);
  }
}

/** The same at once. */
export function listElements({ bytes, noted }: JsonSource, array: ByteRange): ByteRange[] {
  const elements: ByteRange[] = [];
  let at = firstItem(bytes, array.at, OPEN_ARRAY);
  while (at >= 0 && bytes[at] !== CLOSE_ARRAY) {
    const end = endOfValue(bytes, at, noted);
    if (end < 0) break;
    elements.push({ at, length: end - at });
    at = nextItem(bytes, end);
  }
  return elements;
}

/** The offset of the first key or element, if the container has one; the end of the bytes or -1 if it is not such a container. */
function firstItem(bytes: Buffer, container: number, opening: number): number {
  return bytes[container] === opening ? skipWhitespace(bytes, container + 1) : -1;
}

/** The same for the key or element after one that ended. */
function nextItem(bytes: Buffer, end: number): number {
  const comma = skipWhitespace(bytes, end);
  return bytes[comma] === COMMA ? skipWhitespace(bytes, comma + 1) : -1;
}

/** The offset of the value after a key that ended, or -1. */
function startOfMember(bytes: Buffer, keyEnd: number): number {
  if (keyEnd < 0) return -1;
  const colon = skipWhitespace(bytes, keyEnd);
  return bytes[colon] === COLON ? skipWhitespace(bytes, colon + 1) : -1;
}

/** Whether a literal encodes a text. The first bytes nearly always decide; the rest is decoded only from an escape or beyond ASCII. */
function isLiteralOf(bytes: Buffer, at: number, end: number, text: string): boolean {
  const size = end - at - 2;
  const shared = Math.min(size, text.length);
  for (let i = 0; i < shared; i++) {
    const byte = bytes[at + 1 + i] as number;
    if (byte === BACKSLASH || byte >= 0x80) return decodeLiteral(bytes, { at, length: end - at }) === text;
    if (byte !== text.charCodeAt(i)) return false;
  }
  return size === text.length;
}

/** Every string value (not key) in the text whose literal has at least `minBytes`, in order. */
export function* iterateLongStrings(bytes: Buffer, minBytes: number): Generator<ByteRange> {
  for (const literal of iterateStrings(bytes)) {
    const end = literal.at + literal.length;
    if (literal.length >= minBytes && bytes[skipWhitespace(bytes, end)] !== COLON) yield literal;
  }
}

/** Every string literal in the text, keys included, in order. */
export function* iterateStrings(bytes: Buffer): Generator<ByteRange> {
  let at = bytes.indexOf(QUOTE);
  while (at >= 0) {
    const end = endOfString(bytes, at);
    if (end < 0) return;
    yield { at, length: end - at };
    at = bytes.indexOf(QUOTE, end);
  }
}

function skipWhitespace(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    if (!isWhitespace(bytes[at])) break;
  }
  return at;
}

function isWhitespace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** One past the value that starts at `at`, or -1 when there is none. */
function endOfValue(bytes: Buffer, at: number, noted: number[] | null): number {
  const first = bytes[at];
  if (first === QUOTE) return endOfString(bytes, at);
  if (first === OPEN_OBJECT || first === OPEN_ARRAY) {
    return noted === null ? endOfContainer(bytes, at, null) : endOfNoted(bytes, at, noted);
  }
  let end = at;
  while (end < bytes.length && !endsScalar(bytes[end] as number)) end++;
  return end > at ? end : -1;
}

function endsScalar(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY || byte <= 0x20;
}

/** The same for a container that may already have been skipped. */
function endOfNoted(bytes: Buffer, at: number, noted: number[]): number {
  for (let i = 0; i < noted.length; i += 2) if (noted[i] === at) return noted[i + 1] as number;
  return endOfContainer(bytes, at, noted);
}

/** By depth, the index at which the end of the open container will be noted; -1 if it will not. */
const openNotes = new Int32Array(NOTED_DEPTH);

function endOfContainer(bytes: Buffer, from: number, noted: number[] | null): number {
  const notedDepth = noted === null ? 0 : NOTED_DEPTH;
  let depth = 0;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (depth < notedDepth) openNotes[depth] = noteStart(noted as number[], at);
      depth++;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth--;
      if (depth < notedDepth) noteEnd(noted as number[], openNotes[depth] as number, at + 1);
      if (depth === 0) return at + 1;
    }
    at++;
  }
  return -1;
}

/** A container has no end until that is reached. */
function noteStart(noted: number[], at: number): number {
  return noted.length < 2 * MAX_NOTED ? noted.push(at, -1) - 1 : -1;
}

function noteEnd(noted: number[], index: number, end: number): void {
  if (index >= 0) noted[index] = end;
}

/** One past the closing quote of the literal that opens at `from`, or -1 when it never closes. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from + 1;
  const near = Math.min(bytes.length, at + SHORT_STRING_BYTES);
  for (; at < near; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) at++;
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    let before = quote - 1;
    while (before >= at && bytes[before] === BACKSLASH) before--;
    const escapes = quote - 1 - before;
    if (escapes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

/** The text of a string literal; null if the literal is not valid. Bytes that are not UTF-8 become U+FFFD. */
export function decodeLiteral(bytes: Buffer, literal: ByteRange): string | null {
  const end = literal.at + literal.length;
  if (literal.length <= SHORT_STRING_BYTES && !hasBackslash(bytes, literal.at, end)) {
    return bytes.toString("utf8", literal.at + 1, end - 1);
  }
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8", literal.at, end));
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

function hasBackslash(bytes: Buffer, at: number, end: number): boolean {
  for (let i = at; i < end; i++) if (bytes[i] === BACKSLASH) return true;
  return false;
}

/**
 * Byte offsets, in its literal, of the given positions of the decoded text. Positions are UTF-16 offsets in ascending order; the text's length
 * maps to the closing quote. Null when a position is inside a character that the literal writes as one, or when the literal is not UTF-8 and
 * its text therefore lossy.
 *
 * @example mapTextOffsets(Buffer.from('"a\\nb"'), { at: 0, length: 6 }, [1, 2]) // [2, 4]
 */
export function mapTextOffsets(
  bytes: Buffer,
  literal: ByteRange,
  positions: readonly number[],
): number[] | null {
  const end = literal.at + literal.length - 1;
  if (!isUtf8(bytes.subarray(literal.at, end))) return null;
  const offsets: number[] = [];
  let at = literal.at + 1;
  let position = 0;
  for (const target of positions) {
    while (position < target && at < end) {
      const byte = bytes[at] as number;
      if (byte === BACKSLASH) at += bytes[at + 1] === LETTER_U ? 6 : 2;
      else at += sequenceLength(byte);
      position += byte >= 0xf0 ? 2 : 1;
    }
    if (position !== target) return null;
    offsets.push(at);
  }
  return offsets;
}

function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}
