/**
 * The kind of the character at a place in a text (`text/text-units.ts`), as needed to find words. ASCII comes from a table made at load;
 * everything else is decided once per character from its Unicode properties and cached, so scanning stays fast.
 */

/** Separates words: spaces, most punctuation, symbols, controls, lone surrogates. */
const BREAK = 0;
/** A letter that is not upper case, in a script with spaces between words. */
export const LOWER = 1;
/** An upper-case letter. */
export const UPPER = 2;
/** A decimal digit. */
export const DIGIT = 3;
/** The underscore, which belongs to an identifier but not to its pieces. */
export const UNDERSCORE = 4;
/** Joins the parts of a path, address, version or compound when it is between two word characters. */
export const JOINER = 5;
/** The apostrophes of "don't". */
export const APOSTROPHE = 6;
/** A combining mark: it belongs to the character before it. */
export const MARK = 7;
/** A character that is searched for by itself: scripts without spaces between words (Chinese, Japanese, Thai …), Hangul, emoji. */
export const GLYPH = 8;

const UNKNOWN = 255;

/** Kinds of the characters of the basic plane, by code unit; those above ASCII are filled in when first met. */
const kinds = new Uint8Array(0x10000).fill(UNKNOWN);
for (let unit = 0; unit < 0x80; unit++) kinds[unit] = kindOfAscii(String.fromCharCode(unit));

function kindOfAscii(character: string): number {
  if (/[a-z]/.test(character)) return LOWER;
  if (/[A-Z]/.test(character)) return UPPER;
  if (/[0-9]/.test(character)) return DIGIT;
  if (character === "_") return UNDERSCORE;
  if (character === "'") return APOSTROPHE;
  return "./\\-@".includes(character) ? JOINER : BREAK;
}

const GLYPH_PATTERN =
  /^[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{sc=Tibetan}]$/u;

function kindOfCodePoint(character: string): number {
  if (character === "\u2019" || character === "\u02bc") return APOSTROPHE;
  if (/^\p{M}$/u.test(character)) return MARK;
  if (/^[\p{L}\p{N}]$/u.test(character)) {
    if (GLYPH_PATTERN.test(character)) return GLYPH;
    if (/^\p{Nd}$/u.test(character)) return DIGIT;
    return /^[\p{Lu}\p{Lt}]$/u.test(character) ? UPPER : LOWER;
  }
  return /^\p{Extended_Pictographic}$/u.test(character) && character > "\u203c" ? GLYPH : BREAK;
}

/** The kind of the character at `at`. For a character of two units, {@link unitsAt} says how far to step. */
export function kindAt(units: Uint16Array, at: number): number {
  const unit = units[at] as number;
  const known = kinds[unit] as number;
  return known === UNKNOWN ? findKind(units, at, unit) : known;
}

function findKind(units: Uint16Array, at: number, unit: number): number {
  if (unit >= 0xd800 && unit <= 0xdfff) return kindOfPair(units, at);
  const kind = kindOfCodePoint(String.fromCharCode(unit));
  kinds[unit] = kind;
  return kind;
}

/** 2 where a surrogate pair starts, otherwise 1. */
export function unitsAt(units: Uint16Array, at: number): number {
  const unit = units[at] as number;
  if (unit < 0xd800 || unit > 0xdbff) return 1;
  const next = units[at + 1] as number;
  return next >= 0xdc00 && next <= 0xdfff ? 2 : 1;
}

const kindsOfPairs = new Map<number, number>();

function kindOfPair(units: Uint16Array, at: number): number {
  if (unitsAt(units, at) === 1) return BREAK;
  const character = String.fromCharCode(units[at] as number, units[at + 1] as number);
  const codePoint = character.codePointAt(0) as number;
  let kind = kindsOfPairs.get(codePoint);
  if (kind === undefined) {
    kind = kindOfCodePoint(character);
    kindsOfPairs.set(codePoint, kind);
  }
  return kind;
}
