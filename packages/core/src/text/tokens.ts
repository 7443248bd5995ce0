/**
 * The engine's only token estimate. It reads a text once, counts what tokenizers charge for (words and their length, capitals, digit
 * groups, punctuation, indentation, letters of each script) and weights the counts. The weights were fitted to the o200k vocabulary on
 * prose, chat, code, JSON, agent logs and a dozen languages; `bench/tokens.ts` prints the error. Stored counts are uncalibrated; a model's
 * factor, learnt from reported usage, is applied when a budget is decided.
 */

import { returnUnits, takeUnits } from "./text-units.ts";
import type { TextUnits } from "./text-units.ts";

/** The cost of an image, whatever its size: about what providers charge for a picture of a megapixel. */
export const IMAGE_TOKENS = 1500;

/** The cost of a message besides its content: role, separators, envelope. */
export const MESSAGE_OVERHEAD_TOKENS = 4;

// What is counted. A feature is an index into the counts and into WEIGHTS.

/** A word after a space, which tokenizers keep with it. */
const SPACED_WORD = 0;
/** A piece of a word right after something else: a hump, a name after a dot, the rest of a word after an accent. */
const JOINED_WORD = 1;
/** Letters of a piece beyond {@link SHORT_WORD}. */
const LONG_LETTERS = 2;
/** Capitals after the first of a piece. */
const CAPITALS = 3;
/** Groups of up to three digits. */
const DIGIT_GROUPS = 4;
/** Runs of punctuation with a word right after them, which often share a token. */
const PUNCTUATION = 5;
/** Changes of character inside such a run. */
const MORE_PUNCTUATION = 6;
/** Runs of line ends; punctuation includes those after it in its own token. */
const LINE_ENDS = 7;
/** Indentation after a line end. */
const INDENTS = 8;
/** Runs of blanks elsewhere, and tabs. */
const GAPS = 9;
/** Letters right after digits: hashes, versions. */
const MIXED = 10;
const HAN = 11;
const KANA = 12;
const HANGUL = 13;
const THAI = 14;
const CYRILLIC = 15;
const ARABIC = 16;
const INDIC = 17;
const GREEK = 18;
/** Accented Latin letters: the pieces around them are already counted. */
const ACCENTED = 19;
/** Typographic marks, arrows, full-width signs. */
const SYMBOLS = 20;
/** Characters beyond the basic plane. */
const EMOJI = 21;
const OTHER = 22;
/** Runs of punctuation before a space, a line end or the end. */
const CLOSING_PUNCTUATION = 23;

/** Tokens per feature: non-negative least squares on the relative error, each kind of text weighing the same. */
const WEIGHTS = new Float64Array(24);
WEIGHTS[SPACED_WORD] = 0.92;
WEIGHTS[JOINED_WORD] = 1.1;
WEIGHTS[LONG_LETTERS] = 0.39;
WEIGHTS[CAPITALS] = 0.03;
WEIGHTS[DIGIT_GROUPS] = 1.12;
WEIGHTS[PUNCTUATION] = 0.68;
WEIGHTS[MORE_PUNCTUATION] = 0.1;
WEIGHTS[LINE_ENDS] = 1.2;
WEIGHTS[INDENTS] = 1.2;
WEIGHTS[GAPS] = 1.44;
WEIGHTS[MIXED] = 0.07;
WEIGHTS[HAN] = 0.74;
WEIGHTS[KANA] = 0.68;
WEIGHTS[HANGUL] = 0.72;
WEIGHTS[THAI] = 0.43;
WEIGHTS[CYRILLIC] = 0.29;
WEIGHTS[ARABIC] = 0.38;
WEIGHTS[INDIC] = 0.38;
WEIGHTS[GREEK] = 0.41;
WEIGHTS[ACCENTED] = 0.04;
WEIGHTS[SYMBOLS] = 0.95;
WEIGHTS[EMOJI] = 1.66;
WEIGHTS[OTHER] = 1.46;
WEIGHTS[CLOSING_PUNCTUATION] = 0.97;

/** A word up to this many letters is mostly one token. */
const SHORT_WORD = 8;

/** Kinds of ASCII characters. */
const PUNCT = 0;
const LETTER = 1;
const CAPITAL = 2;
const NUMBER = 3;
const BLANK = 4;
const NEWLINE = 5;
const WIDE = 6;

/** By UTF-16 unit. */
const kinds = new Uint8Array(65_536).fill(WIDE);
for (let unit = 0; unit < 128; unit++) kinds[unit] = kindOfAscii(unit);

function kindOfAscii(unit: number): number {
  if (unit >= 0x61 && unit <= 0x7a) return LETTER;
  if (unit >= 0x41 && unit <= 0x5a) return CAPITAL;
  if (unit >= 0x30 && unit <= 0x39) return NUMBER;
  if (unit === 0x20 || unit === 0x09) return BLANK;
  return unit === 0x0a || unit === 0x0d ? NEWLINE : PUNCT;
}

/** The feature of a character beyond ASCII. Ranges are ordered by frequency. */
function wideFeature(unit: number): number {
  if (unit >= 0x4e00 && unit <= 0x9fff) return HAN;
  if (unit >= 0x3040 && unit <= 0x30ff) return KANA;
  if (unit >= 0xac00 && unit <= 0xd7a3) return HANGUL;
  if (unit >= 0x0400 && unit <= 0x052f) return CYRILLIC;
  if (unit >= 0x00c0 && unit <= 0x024f) return ACCENTED;
  if (unit >= 0x0590 && unit <= 0x08ff) return ARABIC;
  if (unit >= 0x0900 && unit <= 0x0dff) return INDIC;
  if (unit >= 0x0e00 && unit <= 0x0eff) return THAI;
  if (unit >= 0x0370 && unit <= 0x03ff) return GREEK;
  if (unit >= 0x1e00 && unit <= 0x1eff) return ACCENTED;
  if (unit >= 0x2000 && unit <= 0x2bff) return SYMBOLS;
  if (unit >= 0x3000 && unit <= 0x303f) return SYMBOLS;
  if (unit >= 0xff00 && unit <= 0xffef) return SYMBOLS;
  if (unit >= 0x00a0 && unit <= 0x00bf) return SYMBOLS;
  if (unit >= 0xd800 && unit <= 0xdbff) return EMOJI;
  if (unit >= 0xdc00 && unit <= 0xdfff) return -1;
  return OTHER;
}

/** The counts for the current text, by feature. */
const counts = new Float64Array(WEIGHTS.length);

const LINE_END = 0x0a;

function isWhite(unit: number): boolean {
  return kinds[unit] === BLANK || kinds[unit] === NEWLINE;
}

/**
 * Adds the features of the units to the counts, in one pass. Every message is counted when it arrives and its runs are a few units long, so
 * this is one function with its counts in variables; each branch consumes a run and classifies it.
 */
function countUnits({ units, length }: TextUnits): void {
  // So no run has to check for the end of the text.
  units[length] = LINE_END;
  let spaced = 0;
  let joined = 0;
  let longLetters = 0;
  let capitals = 0;
  let digitGroups = 0;
  let mixed = 0;
  let open = 0;
  let closing = 0;
  let changes = 0;
  let lineEnds = 0;
  let indents = 0;
  let gaps = 0;
  let before = BLANK;
  let at = 0;
  while (at < length) {
    let start = at;
    let kind = kinds[units[at] as number] as number;
    if (kind === LETTER || kind === CAPITAL) {
      if (before === BLANK || before === NEWLINE) spaced++;
      else joined++;
      if (before === NUMBER) mixed++;
      // One piece of a word: capitals, then small letters, as tokenizers cut `fooBar` and keep `HTTPServer`.
      for (;;) {
        if (kind === CAPITAL) {
          do at++;
          while (kinds[units[at] as number] === CAPITAL);
          capitals += at - start - 1;
        }
        while (kinds[units[at] as number] === LETTER) at++;
        if (at - start > SHORT_WORD) longLetters += at - start - SHORT_WORD;
        // Usually a space and the next word follow.
        kind = kinds[units[at + 1] as number] as number;
        if (units[at] !== 0x20 || (kind !== LETTER && kind !== CAPITAL)) break;
        spaced++;
        start = ++at;
      }
      before = LETTER;
    } else if (kind === BLANK) {
      // One space belongs to the word after it; more are a separate token.
      do at++;
      while (kinds[units[at] as number] === BLANK);
      if (at - start > 1 || units[start] === 0x09) {
        if (before === NEWLINE) indents++;
        else gaps++;
      }
      before = BLANK;
    } else if (kind === PUNCT) {
      // Common pairs are one token; a repeated character (a ruler of dashes) costs almost nothing.
      let last = units[at] as number;
      let unit = units[++at] as number;
      for (; kinds[unit] === PUNCT; unit = units[++at] as number) {
        if (unit !== last) changes++;
        last = unit;
      }
      if (isWhite(unit)) closing++;
      else open++;
      before = PUNCT;
    } else if (kind === NUMBER) {
      do at++;
      while (kinds[units[at] as number] === NUMBER);
      digitGroups += Math.ceil((at - start) / 3);
      before = NUMBER;
    } else if (kind === NEWLINE) {
      do at++;
      while (kinds[units[at] as number] === NEWLINE);
      if (before !== PUNCT) lineEnds++;
      before = NEWLINE;
    } else {
      const feature = wideFeature(units[at] as number);
      if (feature >= 0) add(feature, 1);
      at++;
      before = WIDE;
    }
  }
  add(SPACED_WORD, spaced);
  add(JOINED_WORD, joined);
  add(LONG_LETTERS, longLetters);
  add(CAPITALS, capitals);
  add(DIGIT_GROUPS, digitGroups);
  add(MIXED, mixed);
  add(PUNCTUATION, open);
  add(CLOSING_PUNCTUATION, closing);
  add(MORE_PUNCTUATION, changes);
  add(LINE_ENDS, lineEnds);
  add(INDENTS, indents);
  add(GAPS, gaps);
}

function add(feature: number, amount: number): void {
  counts[feature] = (counts[feature] as number) + amount;
}

/** Units per token in a long run of one ASCII character, as the o200k vocabulary has them. The rest has one token per unit. */
const RUNS: readonly (readonly [units: number, characters: string])[] = [
  [2, "\0\r&DGHJKNPQRSTUVWZ[]`gjnpqtuwz{}"],
  [3, "0123456789"],
  [4, "\"$'(),BCEILMOY\\bcdehikmrsvy|"],
  [8, "<>?@AF^aflox"],
  [16, "\t\n!:;X"],
  [32, "%+~"],
  [64, "#*-./=_"],
  [128, " "],
];
const runUnits = new Float64Array(128).fill(1);
for (const [units, characters] of RUNS)
  for (const character of characters) runUnits[character.charCodeAt(0)] = units;
/** Of `\r\n`. */
const LINE_END_PAIRS = 8;

/** Shorter runs occur in ordinary text, which the weights were fitted to. */
const MIN_RUN = 16;
/** Fewer are within the error of the estimate: a ruler must not change how much of a history is shown. */
const MIN_EXTRA = 16;
/** Any such run has the same unit at two neighbours of these steps. */
const RUN_STEP = MIN_RUN / 2;

/**
 * The tokens that a text has beyond its estimate because it repeats one character: the estimate counts such a run as one token, as short ones
 * mostly are, but 1,000 brackets are 500. Stored counts are without them.
 */
export function countRepeats(text: string): number {
  const { length } = text;
  let extra = 0;
  let before = -1;
  for (let at = 0; at < length; at += RUN_STEP) {
    const unit = text.charCodeAt(at);
    const isEqual = unit === before;
    before = unit;
    // Most that are equal are so by chance.
    if (!isEqual || !isSame(text.charCodeAt(at - 1), unit)) continue;
    let start = at;
    let end = at + 1;
    while (start > 0 && isSame(text.charCodeAt(start - 1), unit)) start--;
    while (end < length && isSame(text.charCodeAt(end), unit)) end++;
    if (end - start < MIN_RUN) continue;
    const isPairs = kinds[unit] === NEWLINE && text.charCodeAt(start) !== text.charCodeAt(start + 1);
    const more = runTokens(unit, end - start, isPairs) - countedTokens(unit, end - start);
    if (more >= MIN_EXTRA) extra += more;
    // The next step is behind the run.
    at += Math.floor((end - 1 - at) / RUN_STEP) * RUN_STEP;
  }
  return Math.round(extra);
}

/** The estimate of what is sent to a model: of a text that repeats characters more than its stored count says. */
export const estimateSentTokens = (text: string): number => estimateTextTokens(text) + countRepeats(text);

/** Line ends of either kind are one run. */
const isSame = (unit: number, other: number): boolean =>
  unit === other || (kinds[unit] === NEWLINE && kinds[other] === NEWLINE);

function runTokens(unit: number, length: number, isPairs: boolean): number {
  if (unit < 128) return length / (isPairs ? LINE_END_PAIRS : (runUnits[unit] as number));
  const feature = wideFeature(unit);
  // Rulers and the like have tokens of their own, and kana one each. Of other characters a token has at least one byte.
  if (feature === SYMBOLS || feature === EMOJI || feature < 0) return 0;
  return length * (feature === KANA ? 1 : unit < 0x800 ? 2 : 3);
}

/** What the estimate has for a run. */
function countedTokens(unit: number, length: number): number {
  const kind = kinds[unit];
  if (kind === WIDE) return length * (WEIGHTS[wideFeature(unit)] ?? 0);
  if (kind === NUMBER) return length / 3;
  if (kind !== LETTER && kind !== CAPITAL) return 1;
  const letters = 1 + (length - SHORT_WORD) * (WEIGHTS[LONG_LETTERS] as number);
  return kind === LETTER ? letters : letters + (length - 1) * (WEIGHTS[CAPITALS] as number);
}

/** The estimated tokens of a text; 0 for an empty one, at least 1 otherwise. */
export function estimateTextTokens(text: string): number {
  if (text === "") return 0;
  counts.fill(0);
  const units = takeUnits(text);
  countUnits(units);
  returnUnits(units);
  let tokens = 0;
  for (let feature = 0; feature < WEIGHTS.length; feature++) {
    tokens += (counts[feature] as number) * (WEIGHTS[feature] as number);
  }
  return Math.max(1, Math.round(tokens));
}

/** How a model's own count compares with the estimate. */
export interface Calibration {
  /** Multiply an estimate by this. */
  readonly factor: number;
  /** How many reports went into it. */
  readonly samples: number;
}

/** A model without reports yet. */
export const UNCALIBRATED: Calibration = { factor: 1, samples: 0 };

export const MIN_FACTOR = 0.6;
export const MAX_FACTOR = 1.8;

/** Below this, the host's additions outweigh the messages. */
const MIN_REPORTED_TOKENS = 500;
/** The weight of a new report once there are several; the first ones weigh more. */
const STEADY_SHARE = 0.1;
/** How far, as a ratio, one report may be off: a retry counted twice or a truncated prompt must not move the factor much. */
const MAX_SURPRISE = 1.25;
const MAX_FIRST_SURPRISE = 2;

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/**
 * Learns from one request: our estimate and what the model's provider reported. Small or implausible reports change nothing. The factor
 * stays within {@link MIN_FACTOR} and {@link MAX_FACTOR}.
 */
export function calibrate(
  state: Calibration,
  report: { readonly estimated: number; readonly reported: number },
): Calibration {
  const { estimated, reported } = report;
  const usable = estimated >= MIN_REPORTED_TOKENS && reported >= MIN_REPORTED_TOKENS;
  if (!usable || !Number.isFinite(reported / estimated)) return state;
  const share = Math.max(STEADY_SHARE, 1 / (state.samples + 1));
  const limit = Math.log(state.samples < 3 ? MAX_FIRST_SURPRISE : MAX_SURPRISE);
  const surprise = clamp(Math.log(reported / estimated / state.factor), -limit, limit);
  const factor = clamp(state.factor * Math.exp(share * surprise), MIN_FACTOR, MAX_FACTOR);
  return { factor, samples: state.samples + 1 };
}

/** An estimate in the tokens of a calibrated model, rounded up so that a budget is never overrun by rounding. */
export function applyFactor(tokens: number, factor: number): number {
  return Math.ceil(tokens * clamp(factor, MIN_FACTOR, MAX_FACTOR));
}

/** The largest estimate that `applyFactor` keeps within a number of the model's tokens. */
export function removeFactor(tokens: number, factor: number): number {
  return Math.floor(tokens / clamp(factor, MIN_FACTOR, MAX_FACTOR) + 1e-6);
}
