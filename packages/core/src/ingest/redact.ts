/**
 * Redaction at the door: what matches one of the patterns is replaced before anything is stored, so that no body, file, term, summary or
 * backup ever holds it. The value is dropped; nothing here keeps it.
 *
 * Invariants: the same bytes with the same patterns give the same bytes; what matches nothing is stored as it came, byte for byte; a JSON
 * line stays the JSON it was, because only the insides of its strings are touched.
 */
import { EngineError } from "../model/errors.ts";

/** Sets that can be named in the list of patterns. */
const SETS: Readonly<Record<string, readonly RegExp[]>> = {
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
  "@cards": [/\b\d(?:[ -]?\d){12,18}\b/gu],
};

export const REDACTION_SETS: readonly string[] = Object.keys(SETS);

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  readonly accepts: (value: string) => boolean;
}

/** Redacts bytes, or gives back the same ones when nothing matches. */
export type Redact = (bytes: Uint8Array) => Uint8Array;

/** Null when there is nothing to redact. */
export function compileRedaction(patterns: readonly string[]): Redact | null {
  const rules = patterns.flatMap(compileRule);
  if (rules.length === 0) return null;
  return (bytes) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
    const redacted = isJson(text) ? redactStrings(text, rules) : applyRules(text, rules);
    return redacted === text ? bytes : Buffer.from(redacted);
  };
}

function compileRule(pattern: string, index: number): Rule[] {
  const set = SETS[pattern];
  if (set !== undefined) {
    const accepts = pattern === "@cards" ? hasCheckDigit : isSomething;
    return set.map((expression) => ({ name: pattern.slice(1), pattern: expression, accepts }));
  }
  try {
    return [{ name: `pattern-${index + 1}`, pattern: new RegExp(pattern, "gu"), accepts: isSomething }];
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

function applyRules(text: string, rules: readonly Rule[]): string {
  let out = text;
  for (const { name, pattern, accepts } of rules) {
    out = out.replaceAll(pattern, (match) => (accepts(match) ? `[redacted:${name}]` : match));
  }
  return out;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** Goes from string to string, so that a pattern sees what was said and not how JSON writes it, and can break nothing around it. */
function redactStrings(json: string, rules: readonly Rule[]): string {
  const pieces: string[] = [];
  let from = 0;
  for (let start = json.indexOf('"'); start >= 0; start = json.indexOf('"', from)) {
    const end = findClosingQuote(json, start);
    const literal = json.slice(start, end);
    const value = JSON.parse(literal) as string;
    const redacted = applyRules(value, rules);
    pieces.push(json.slice(from, start), redacted === value ? literal : JSON.stringify(redacted));
    from = end;
  }
  pieces.push(json.slice(from));
  return pieces.join("");
}

/** The place behind the string that starts here. */
function findClosingQuote(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); ; at = json.indexOf('"', at + 1)) {
    let slashes = 0;
    while (json[at - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
}
