/**
 * Redaction at the door: what matches one of the patterns is replaced before anything is stored, so that no body, file, term, summary or
 * backup ever holds it. What becomes of the values is decided in `vault.ts`.
 *
 * Invariants: the same bytes with the same patterns give the same bytes; around the placeholders everything is as it came, byte for byte,
 * and with the cut bytes put back it is what arrived; a JSON line stays JSON, because a placeholder stands inside a string or is one.
 */
import { isUtf8 } from "node:buffer";
import { asBuffer, decodeLiteral, iterateStrings, mapTextOffsets } from "../message/json-spans.ts";
import { EngineError } from "../model/errors.ts";
import type { ByteRange } from "../model/message.ts";
import type { REDACTION_SETS } from "../model/setting-types.ts";

/** Sets that can be named in the list of patterns. */
const SETS: Readonly<Record<(typeof REDACTION_SETS)[number], readonly RegExp[]>> = {
  "@keys": [
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/gu,
    /\bsk-[A-Za-z0-9_-]{20,}/gu,
    /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/gu,
    /\bAIza[A-Za-z0-9_-]{35}/gu,
    /\bglpat-[A-Za-z0-9_-]{20,}/gu,
  ],
  "@tokens": [
    /\bgh[pousr]_[A-Za-z0-9]{36,}/gu,
    /\bgithub_pat_[A-Za-z0-9_]{40,}/gu,
    /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/gu,
    /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/gu,
  ],
  // No card begins with 1, as times in milliseconds do.
  "@cards": [/\b[2-6]\d(?:[ -]?\d){11,17}\b/gu],
};

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  readonly accepts: (value: string) => boolean;
  /** Whether it looks at numbers of JSON as well as at its strings. */
  readonly seesNumbers: boolean;
}

/** What was taken out: where its placeholder stands in the redacted bytes, and the bytes that stood there. */
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

/** Null when there is nothing to redact. */
export function compileRedaction(patterns: readonly string[]): Redact | null {
  const rules = patterns.flatMap(compileRule);
  if (rules.length === 0) return null;
  return (arrival) => {
    const bytes = asBuffer(arrival);
    const cuts = isJson(bytes) ? findInJson(bytes, rules) : findInText(bytes, rules);
    return cuts.length === 0 ? { bytes: arrival, values: [] } : replaceCuts(bytes, cuts);
  };
}

/** Puts what was taken out back: the bytes that arrived. */
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
  const set = SETS[pattern as keyof typeof SETS] as readonly RegExp[] | undefined;
  if (set !== undefined) {
    const accepts = pattern === "@cards" ? hasCheckDigit : isSomething;
    const seesNumbers = pattern === "@cards";
    return set.map((expression) => ({ name: pattern.slice(1), pattern: expression, accepts, seesNumbers }));
  }
  try {
    const expression = new RegExp(pattern, "gu");
    return [{ name: `pattern-${index + 1}`, pattern: expression, accepts: isSomething, seesNumbers: false }];
  } catch (error) {
    throw new EngineError(
      "config",
      `cannot use the redaction pattern ${index + 1}: ${(error as Error).message}`,
      {
        hint: "lcm config explain redactPatterns says where it was set",
        cause: error,
      },
    );
  }
}

const isSomething = (value: string): boolean => value !== "";

/** Card numbers end in a digit that follows from the others; other long numbers rarely fit. */
function hasCheckDigit(value: string): boolean {
  const digits = [...value.replaceAll(/\D/g, "")].map(Number).reverse();
  const sum = digits.reduce(
    (total, digit, at) => total + (at % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2),
    0,
  );
  return sum % 10 === 0 && digits.some((digit) => digit !== 0);
}

/** A stretch to take out, of bytes or of a text. */
interface Cut {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

interface ByteCut extends Cut {
  /** Stands outside of strings, so that the placeholder has to be one. */
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
    // A copy: the arrival's memory may be handed to somebody else.
    const original = Buffer.from(bytes.subarray(cut.start, cut.end));
    values.push({ at: size, length: placeholder.length, original });
    size += placeholder.length;
    from = cut.end;
  }
  pieces.push(bytes.subarray(from));
  return { bytes: Buffer.concat(pieces), values };
}

/** What the rules match, in order. Matches that overlap are taken out as one, under the name of the rule that comes first. */
function findMatches(text: string, rules: readonly Rule[]): Cut[] {
  const matches: (Cut & { rank: number })[] = [];
  for (const [rank, { name, pattern, accepts }] of rules.entries())
    for (const match of text.matchAll(pattern))
      if (accepts(match[0]))
        matches.push({ start: match.index, end: match.index + match[0].length, name, rank });
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

/** Bytes that are no JSON; where they are no UTF-8 either, each counts as one character. */
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

/** Goes from string to string, so that a pattern sees what was said and not how JSON writes it, and can break nothing around it. */
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
  // A text that cannot be mapped to its bytes goes as a whole.
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
