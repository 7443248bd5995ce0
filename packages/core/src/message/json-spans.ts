/**
 * Finds where values stand in JSON text, in bytes, without parsing what lies between. Parts of a message are stored as
 * ranges of its arrival bytes, and large payloads are cut out of the middle of a string; both need exact places that
 * `JSON.parse` does not give. Everything is iterative, so nesting has no limit.
 * Invariant: on text that `JSON.parse` accepts, the slice at a range parses to the value `JSON.parse` shows there
 * (of repeated keys the last one). On other bytes the answer is null or ends early; nothing is read out of bounds.
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

/** Keys and short words end within this many bytes; a loop is then cheaper than a native search. */
const SHORT_STRING_BYTES = 32;

export interface MemberSpan {
  readonly key: string;
  /** The key's literal, quotes included. */
  readonly keyRange: ByteRange;
  readonly value: ByteRange;
}

/** The same memory as a Buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The range of the one value in the text, without the white space (and byte order mark) around it. */
export function findRoot(bytes: Buffer): ByteRange | null {
  return valueAt(bytes, startOfText(bytes));
}

/** Where a text begins, behind a byte order mark and white space. */
export function startOfText(bytes: Buffer): number {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return skipWhitespace(bytes, hasMark ? 3 : 0);
}

/** Where a text ends, before white space: of a text that parses, the end of its value. */
export function endOfText(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && isWhitespace(bytes[end - 1])) end--;
  return end;
}

/**
 * The range of the value at a path, counted from the root or from `within`.
 *
 * @example findSpan(Buffer.from('{"a":[1,"x"]}'), ["a", 1]) // { at: 8, length: 3 }
 */
export function findSpan(
  bytes: Buffer,
  path: readonly (string | number)[],
  within: ByteRange | null = findRoot(bytes),
): ByteRange | null {
  let range = within;
  for (const step of path) {
    if (range === null) return null;
    range = typeof step === "number" ? findElement(bytes, range, step) : findMember(bytes, range, step);
  }
  return range;
}

function findElement(bytes: Buffer, array: ByteRange, index: number): ByteRange | null {
  let count = 0;
  for (const element of iterateElements(bytes, array)) if (count++ === index) return element;
  return null;
}

function findMember(bytes: Buffer, object: ByteRange, key: string): ByteRange | null {
  let found: ByteRange | null = null;
  for (const member of iterateMembers(bytes, object)) if (member.key === key) found = member.value;
  return found;
}

/** Where the value of each key stands; of repeated keys the last one. Empty for anything but an object. */
export function mapMembers(bytes: Buffer, object: ByteRange): Map<string, ByteRange> {
  const ranges = new Map<string, ByteRange>();
  for (const member of iterateMembers(bytes, object)) ranges.set(member.key, member.value);
  return ranges;
}

/** The members of an object in the order of the text, repeated keys included. */
export function* iterateMembers(bytes: Buffer, object: ByteRange): Generator<MemberSpan> {
  if (bytes[object.at] !== OPEN_OBJECT) return;
  let at = skipWhitespace(bytes, object.at + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = endOfString(bytes, at);
    if (keyEnd < 0) return;
    const keyRange = { at, length: keyEnd - at };
    const key = decodeLiteral(bytes, keyRange);
    const colon = skipWhitespace(bytes, keyEnd);
    const value = bytes[colon] === COLON ? valueAt(bytes, colon + 1) : null;
    if (key === null || value === null) return;
    yield { key, keyRange, value };
    at = skipWhitespace(bytes, value.at + value.length);
    if (bytes[at] !== COMMA) return;
    at = skipWhitespace(bytes, at + 1);
  }
}

/** The elements of an array in order. */
export function* iterateElements(bytes: Buffer, array: ByteRange): Generator<ByteRange> {
  if (bytes[array.at] !== OPEN_ARRAY) return;
  let at = skipWhitespace(bytes, array.at + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_ARRAY) {
    const value = valueAt(bytes, at);
    if (value === null) return;
    yield value;
    at = skipWhitespace(bytes, value.at + value.length);
    if (bytes[at] !== COMMA) return;
    at = skipWhitespace(bytes, at + 1);
  }
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

function valueAt(bytes: Buffer, from: number): ByteRange | null {
  const at = skipWhitespace(bytes, from);
  const end = endOfValue(bytes, at);
  return end < 0 ? null : { at, length: end - at };
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
function endOfValue(bytes: Buffer, at: number): number {
  const first = bytes[at];
  if (first === QUOTE) return endOfString(bytes, at);
  if (first === OPEN_OBJECT || first === OPEN_ARRAY) return endOfContainer(bytes, at);
  let end = at;
  while (end < bytes.length && !endsScalar(bytes[end] as number)) end++;
  return end > at ? end : -1;
}

function endsScalar(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_OBJECT || byte === CLOSE_ARRAY || byte <= 0x20;
}

function endOfContainer(bytes: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < bytes.length) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      if (at < 0) return -1;
      continue;
    }
    at++;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if ((byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && --depth === 0) return at;
  }
  return -1;
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

/** The text a string literal stands for; null when it is no valid literal. Bytes that are no UTF-8 become U+FFFD. */
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
 * Byte offsets at which the given positions of the decoded text stand in its literal. Positions are UTF-16 offsets in
 * ascending order; the text's length maps to the closing quote. Null when a position falls inside a character
 * that the literal writes as one, or when the literal is no UTF-8 and its text therefore lossy.
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
