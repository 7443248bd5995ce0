/**
 * Redaction on ingest: text that matches one of the patterns is replaced before anything is stored, so that no body, file, term, summary or
 * backup ever contains it. `vault.ts` decides what happens to the values.
 *
 * Invariants: the same bytes with the same patterns give the same bytes (unless a pattern reaches its time limit); outside the placeholders
 * every byte is as it arrived, and with the cut bytes put back the result is what arrived; a JSON line stays JSON, because a placeholder is
 * inside a string or is one. Built-in sets take time linear in the text. User patterns are stopped after a time limit; a text that could
 * not be checked in time is replaced whole, because storing a possible secret cannot be undone.
 */
import { isUtf8 } from "node:buffer";
import { asBuffer, decodeLiteral, iterateStrings, mapTextOffsets } from "../message/json-spans.ts";
import { EngineError } from "../model/errors.ts";
import type { ByteRange } from "../model/message.ts";
import type { REDACTION_SETS } from "../settings/setting-types.ts";
import { runWithin } from "./time-limit.ts";

/** A stretch of a text. */
interface Span {
  readonly start: number;
  readonly end: number;
}

type FindSpans = (text: string) => Iterable<Span>;

/**
 * Where a value may begin: at the start of a word, or after an escape whose last letter looks like part of it: of JSON inside a JSON
 * string, of a URL (`%3D`) or of a terminal's colours.
 */
const START = String.raw`(?:\b|(?<=\\(?:[bfnrt]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})|%[0-9A-Fa-f]{2}|\[[0-9;]*m))`;
/** How much is checked before a word. */
const MAX_ESCAPE = 16;
/** At least this many characters of a key. Markdown may have a backslash before a sign, which is not shown. A long run needs no stack. */
const letters = (least: number, signs = "_-"): string =>
  String.raw`(?:[A-Za-z0-9${signs}]|\\{1,2}[${signs}]){${least}}[A-Za-z0-9${signs}]*(?:\\{1,2}[${signs}][A-Za-z0-9${signs}]*)*`;
const DASH = String.raw`\\{0,2}-`;
const LINE = String.raw`\\{0,2}_`;

/** Keys with a known prefix, and what follows. The prefix is searched first, because that is fast, then what precedes it is checked. */
const findPrefixed = (prefix: string, rest: string, accepts?: (value: string) => boolean): FindSpans =>
  findAll(new RegExp(`(?:${prefix})(?<=${START}(?:${prefix}))${rest}`, "gu"), accepts);

/** Sets that can be named in the list of patterns. */
const SETS: Readonly<Record<(typeof REDACTION_SETS)[number], readonly FindSpans[]>> = {
  "@keys": [
    findPrivateKeys,
    findPrefixed(`sk${DASH}`, letters(20)),
    findPrefixed("AKIA|ASIA", String.raw`[A-Z0-9]{16}\b`),
    findPrefixed("AIza", "[A-Za-z0-9_-]{35}"),
    findPrefixed(`glpat${DASH}`, letters(20)),
  ],
  "@tokens": [
    findPrefixed(`gh[pousr]${LINE}`, "[A-Za-z0-9]{36}[A-Za-z0-9]*"),
    findPrefixed(`github${LINE}pat${LINE}`, letters(40, "_")),
    findPrefixed(`xox[abeoprs]${DASH}`, letters(10, "-")),
    findWebTokens,
  ],
  // No card begins with 1, as times in milliseconds do; nor with the two characters of an escape.
  "@cards": [
    findPrefixed(String.raw`(?<!%[0-9A-Fa-f]?)[2-6]\d`, String.raw`(?:[ -]?\d){11,17}\b`, hasCheckDigit),
  ],
};

/** All user patterns together may run this long on one message, in processor time, and each of them {@link MS_PER_MEGABYTE} more. */
const MESSAGE_LIMIT_MS = 500;
/** After that, one pattern may still run this long on each text of the message, so that its short texts stay readable. */
const TEXT_LIMIT_MS = 10;
/** Several times what a pattern needs to read a text once: a long text must not be replaced only because it is long. */
const MS_PER_MEGABYTE = 100;
const allow = (length: number): number => Math.ceil((length / 1_000_000) * MS_PER_MEGABYTE);

interface Rule {
  readonly name: string;
  readonly find: FindSpans;
  /** Whether it also checks numbers in JSON, not only strings. */
  readonly seesNumbers: boolean;
  /** A user pattern: may take exponential time. */
  readonly isCustom: boolean;
}

/** A removed value: the range of its placeholder in the redacted bytes, and the original bytes. */
export interface RedactedValue extends ByteRange {
  readonly original: Uint8Array;
}

export interface Redacted {
  /** The bytes to store; the same ones when nothing matched. */
  readonly bytes: Uint8Array;
  /** In the order of the bytes. */
  readonly values: readonly RedactedValue[];
}

export type Redact = (bytes: Uint8Array) => Redacted;

/**
 * Null when there is nothing to redact. `onSlow` gets the names of the patterns (as in the placeholder) that reached the time limit in a
 * message.
 */
export function compileRedaction(
  patterns: readonly string[],
  onSlow: (names: readonly string[]) => void = () => {},
): Redact | null {
  const rules = patterns.flatMap(compileRule);
  if (rules.length === 0) return null;
  const hasCustom = rules.some((rule) => rule.isCustom);
  return (arrival) => {
    const bytes = asBuffer(arrival);
    const cuts = hasCustom ? findInTime(bytes, rules, onSlow) : findCuts(bytes, rules);
    return cuts.length === 0 ? { bytes: arrival, values: [] } : replaceCuts(bytes, cuts);
  };
}

const findCuts = (bytes: Buffer, rules: readonly Rule[]): ByteCut[] =>
  isJson(bytes) ? findInJson(bytes, rules) : findInText(bytes, rules);

function findInTime(
  bytes: Buffer,
  rules: readonly Rule[],
  onSlow: (names: readonly string[]) => void,
): ByteCut[] {
  const customs = rules.filter((rule) => rule.isCustom).length;
  const cuts = runWithin(MESSAGE_LIMIT_MS + customs * allow(bytes.length), () => findCuts(bytes, rules));
  if (cuts !== undefined) return cuts;
  const slow = new Set<string>();
  const limited = rules.map((rule) => (rule.isCustom ? limitRule(rule, () => slow.add(rule.name)) : rule));
  const found = findCuts(bytes, limited);
  if (slow.size > 0) onSlow([...slow]);
  return found;
}

function limitRule(rule: Rule, onSlow: () => void): Rule {
  const find = (text: string): Iterable<Span> => {
    const spans = runWithin(TEXT_LIMIT_MS + allow(text.length), () => [...rule.find(text)]);
    if (spans !== undefined) return spans;
    onSlow();
    return [{ start: 0, end: text.length }];
  };
  return { ...rule, find };
}

/** Puts the removed values back: the bytes that arrived. */
export function restoreArrival(stored: Uint8Array, values: readonly RedactedValue[]): Buffer {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const { at, length, original } of values) {
    pieces.push(stored.subarray(from, at), original);
    from = at + length;
  }
  pieces.push(stored.subarray(from));
  return Buffer.concat(pieces);
}

function compileRule(pattern: string, index: number): Rule[] {
  const set = SETS[pattern as keyof typeof SETS] as readonly FindSpans[] | undefined;
  if (set !== undefined)
    return set.map((find) => ({
      name: pattern.slice(1),
      find,
      seesNumbers: pattern === "@cards",
      isCustom: false,
    }));
  try {
    const find = findAll(new RegExp(pattern, "gu"));
    return [{ name: `pattern-${index + 1}`, find, seesNumbers: false, isCustom: true }];
  } catch (error) {
    throw new EngineError(
      "config",
      `cannot use the redaction pattern ${index + 1}: ${(error as Error).message}`,
      {
        step: { kind: "explain_setting", name: "redactPatterns" },
        cause: error,
      },
    );
  }
}

/** The matches of an expression, without empty ones. Linear if a match cannot begin inside a failed attempt. */
function findAll(pattern: RegExp, accepts: (value: string) => boolean = () => true): FindSpans {
  return function* find(text) {
    for (const match of text.matchAll(pattern))
      if (match[0] !== "" && accepts(match[0]))
        yield { start: match.index, end: match.index + match[0].length };
  };
}

const SPACE = String.raw`(?: |%20|\+)`;
const frameOf = (word: "BEGIN" | "END"): RegExp =>
  new RegExp(`-----${word}(?:[A-Z]|${SPACE}){1,40}?PRIVATE${SPACE}KEY(?:${SPACE}BLOCK)?-----`, "gu");

/**
 * Blocks from BEGIN to the next END; if none follows, the output was truncated, and the lines of the key are removed. The text is read
 * once.
 */
function* findPrivateKeys(text: string): Iterable<Span> {
  const [begin, end] = [frameOf("BEGIN"), frameOf("END")];
  let isClosed = true;
  for (let first = begin.exec(text); first !== null; first = begin.exec(text)) {
    end.lastIndex = begin.lastIndex;
    isClosed &&= end.test(text);
    const stop = isClosed ? end.lastIndex : findKeyEnd(text, begin.lastIndex);
    if (stop === null) continue;
    yield { start: first.index, end: stop };
    begin.lastIndex = stop;
  }
}

const KEY_LETTERS =
  "(?:[A-Za-z0-9+/]|%2[BbFf]){32}[A-Za-z0-9+/]*(?:%2[BbFf][A-Za-z0-9+/]*){0,100}(?:=|%3[Dd]){0,2}";
/** Headers may precede the first line of a key, and line numbers the others. */
const FIRST_KEY_LINE = new RegExp(`[^]{0,100}?${KEY_LETTERS}`, "uy");
const NEXT_KEY_LINE = new RegExp(`[^]{0,24}?${KEY_LETTERS}`, "uy");

/** The end of the base64 lines that follow the BEGIN of a key; null if there are none. */
function findKeyEnd(text: string, from: number): number | null {
  FIRST_KEY_LINE.lastIndex = from;
  if (!FIRST_KEY_LINE.test(text)) return null;
  let stop = FIRST_KEY_LINE.lastIndex;
  NEXT_KEY_LINE.lastIndex = stop;
  while (NEXT_KEY_LINE.test(text)) stop = NEXT_KEY_LINE.lastIndex;
  return stop;
}

/**
 * JSON web tokens: `eyJ….eyJ….…`. Searched from their first dot, which cannot be part of a segment: each segment is read at most three
 * times. A search for `eyJ` would read a run with many of them once for each.
 */
function* findWebTokens(text: string): Iterable<Span> {
  const rest = /\.(?=eyJ[\w-]{8}[\w-]*\.([\w-]{8}[\w-]*))/gu;
  let from = 0;
  for (let dot = rest.exec(text); dot !== null; dot = rest.exec(text)) {
    const start = findTokenStart(text, from, dot.index);
    if (start === null) continue;
    const end = text.indexOf(".", dot.index + 1) + 1 + (dot[1] ?? "").length;
    yield { start, end };
    from = end;
    rest.lastIndex = end;
  }
}

const TOKEN_HEAD = new RegExp(`eyJ(?<=${START}eyJ)[\\w-]{8}`, "gu");

/** The start of a web token's first segment, which ends at a dot: the first `eyJ` that may begin one in the run before the dot. */
function findTokenStart(text: string, from: number, dot: number): number | null {
  let wordStart = dot;
  while (wordStart > from && /[\w-]/u.test(text[wordStart - 1] as string)) wordStart -= 1;
  const before = Math.max(from, wordStart - MAX_ESCAPE);
  TOKEN_HEAD.lastIndex = wordStart - before;
  const found = TOKEN_HEAD.exec(text.slice(before, dot));
  return found === null ? null : before + found.index;
}

/** Card numbers end in a check digit; other long numbers rarely have a valid one. */
function hasCheckDigit(value: string): boolean {
  const digits = [...value.replaceAll(/\D/g, "")].map(Number).reverse();
  const sum = digits.reduce(
    (total, digit, at) => total + (at % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2),
    0,
  );
  return sum % 10 === 0 && digits.some((digit) => digit !== 0);
}

/** A stretch to remove, of bytes or of a text. */
interface Cut extends Span {
  readonly name: string;
}

interface ByteCut extends Cut {
  /** Is outside of strings, so the placeholder has to be one. */
  readonly isBare?: boolean;
}

const renderPlaceholder = ({ name, isBare }: ByteCut): string =>
  isBare === true ? `"[redacted:${name}]"` : `[redacted:${name}]`;

function replaceCuts(bytes: Buffer, cuts: readonly ByteCut[]): Redacted {
  const pieces: Buffer[] = [];
  const values: RedactedValue[] = [];
  let [from, size] = [0, 0];
  for (const cut of cuts) {
    const placeholder = Buffer.from(renderPlaceholder(cut));
    pieces.push(bytes.subarray(from, cut.start), placeholder);
    size += cut.start - from;
    // A copy: the arrival's memory may be transferred.
    const original = Buffer.from(bytes.subarray(cut.start, cut.end));
    values.push({ at: size, length: placeholder.length, original });
    size += placeholder.length;
    from = cut.end;
  }
  pieces.push(bytes.subarray(from));
  return { bytes: Buffer.concat(pieces), values };
}

/** The matches of the rules, in order. Overlapping matches are removed as one, under the name of the first rule. */
function findMatches(text: string, rules: readonly Rule[]): Cut[] {
  const matches: (Cut & { rank: number })[] = [];
  for (const [rank, { name, find }] of rules.entries())
    for (const { start, end } of find(text)) matches.push({ start, end, name, rank });
  matches.sort((a, b) => a.start - b.start || a.rank - b.rank);
  const cuts: (Cut & { rank: number })[] = [];
  for (const match of matches) {
    const last = cuts.at(-1);
    if (last === undefined || match.start >= last.end) {
      cuts.push(match);
      continue;
    }
    const first = match.rank < last.rank ? match : last;
    const end = Math.max(last.end, match.end);
    cuts[cuts.length - 1] = { start: last.start, end, name: first.name, rank: first.rank };
  }
  return cuts;
}

/** Bytes that are not JSON; if they are not UTF-8 either, each counts as one character. */
function findInText(bytes: Buffer, rules: readonly Rule[]): ByteCut[] {
  if (!isUtf8(bytes)) return findMatches(bytes.toString("latin1"), rules);
  const text = bytes.toString("utf8");
  let [at, position] = [0, 0];
  const toOffset = (target: number): number => {
    at += Buffer.byteLength(text.slice(position, target));
    position = target;
    return at;
  };
  return findMatches(text, rules).map((cut) => ({
    ...cut,
    start: toOffset(cut.start),
    end: toOffset(cut.end),
  }));
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString("utf8"));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Goes from string to string, so that a pattern sees the text and not its JSON encoding, and cannot break the JSON around it. */
function findInJson(bytes: Buffer, rules: readonly Rule[]): ByteCut[] {
  const forNumbers = rules.filter((rule) => rule.seesNumbers);
  const cuts: ByteCut[] = [];
  let from = 0;
  for (const literal of iterateStrings(bytes)) {
    cuts.push(...findInNumbers(bytes, from, literal.at, forNumbers), ...findInLiteral(bytes, literal, rules));
    from = literal.at + literal.length;
  }
  cuts.push(...findInNumbers(bytes, from, bytes.length, forNumbers));
  return cuts;
}

function findInLiteral(bytes: Buffer, literal: ByteRange, rules: readonly Rule[]): ByteCut[] {
  const text = decodeLiteral(bytes, literal) ?? "";
  const found = findMatches(text, rules);
  const [first] = found;
  if (first === undefined) return [];
  const offsets = mapTextOffsets(
    bytes,
    literal,
    found.flatMap(({ start, end }) => [start, end]),
  );
  // A text that cannot be mapped to its bytes is removed as a whole.
  if (offsets === null)
    return [{ start: literal.at + 1, end: literal.at + literal.length - 1, name: first.name }];
  return found.map(({ name }, index) => ({
    start: offsets[2 * index] as number,
    end: offsets[2 * index + 1] as number,
    name,
  }));
}

function findInNumbers(bytes: Buffer, from: number, to: number, rules: readonly Rule[]): ByteCut[] {
  if (rules.length === 0) return [];
  const cuts: ByteCut[] = [];
  for (const number of bytes.toString("latin1", from, to).matchAll(/-?\d[\d.eE+-]*/gu)) {
    const [match] = findMatches(number[0], rules);
    const start = from + number.index;
    if (match !== undefined)
      cuts.push({ start, end: start + number[0].length, name: match.name, isBare: true });
  }
  return cuts;
}
