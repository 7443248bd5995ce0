/**
 * The vocabulary of a run of sources: every identifier, path, number, name and content word, how often it was said, by whom, and when last.
 * The extractive summariser weights sentences by it. One pass over the text, no dictionary, any language.
 */

export const TERM_KINDS = ["word", "name", "number", "compound", "identifier", "path", "script"] as const;
export type TermKind = (typeof TERM_KINDS)[number];

/** Who wrote a text. What people and the agent say or pass to tools says more about what matters than bulk output. */
export type Voice = "user" | "agent" | "bulk";

/**
 * Relative worth of a term by its kind. Identifiers cannot be guessed again once they are gone; words usually can. `script` is a pair of
 * characters of a script written without spaces; a sentence has many of them.
 */
const KIND_WORTH: Record<TermKind, number> = {
  word: 0.12,
  name: 0.7,
  number: 0.8,
  compound: 0.4,
  identifier: 1,
  path: 1.1,
  script: 0.12,
};

/** How much more names count where an agent works with tools. */
const WORK_FACTOR = 2;

const UNSPACED = "\\u3040-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff\\u0e00-\\u0e7f";
const LETTER = "A-Za-z0-9_\\u00c0-\\u0dff\\u0e80-\\u1fff\\uac00-\\ud7af";
/** `1,184,302` and `06:30` are one number each. */
const NUMBER = `\\d{1,3}(?:,\\d{3})+(?:\\.\\d+)?%?(?![${LETTER}])|\\d{1,2}:\\d{2}(?::\\d{2})?(?![${LETTER}])`;
/** Marks are bounded, so that a ruler of dashes costs no more than any other text. */
const TOKEN = new RegExp(
  `${NUMBER}|[$@~./-]{0,3}[${LETTER}]+(?:[$@~./-]{1,3}[${LETTER}]+)*%?|[${UNSPACED}]+`,
  "g",
);
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`);

/** Function words without content. Short on purpose: rarity does most of the work. */
const STOP_WORDS = new Set(
  (
    "a an the and or but if then else than that this these those there here it its itself is am are was were be been being do does did done " +
    "have has had having will would can could shall should may might must not no yes of in on at to from by for with without about into onto " +
    "over under after before between through during as so such too very just also only even still yet again more most much many some any all " +
    "each every both few other another same own i me my mine we us our ours you your yours he him his she her hers they them their theirs what " +
    "which who whom whose when where why how up down out off back let lets get gets got go going goes went make makes made see look looks like " +
    "now well okay ok really thing things something anything nothing lot bit kind sort way need want know think one two dont doesnt im ive ill " +
    "youre thats theres hey hi hello thanks thank please great nice good cool wow haha yeah oh"
  ).split(" "),
);

/** Words for a time are as hard to recover as numbers. */
const TIME_WORDS = new Set(
  (
    "january february march april june july august september october november december monday tuesday wednesday thursday friday " +
    "saturday sunday yesterday today tomorrow tonight weekend week month year ago annually weekly daily monthly"
  ).split(" "),
);

export interface Term {
  readonly text: string;
  readonly kind: TermKind;
  /** Messages in which a person or the agent used it, and messages in which it occurs at all. */
  spoken: number;
  seen: number;
  /** Whether a person used it. */
  byUser: boolean;
  /** Ordinal of the last source it occurs in. */
  last: number;
  lastSpoken: number;
  /** Id of the term that this one ends in (`hooks.go` in `a/b/hooks.go`), or −1: showing this one shows that one. */
  piece: number;
  weight: number;
}

export class Vocabulary {
  readonly terms: Term[] = [];
  /** Terms that code declares or calls. */
  readonly functions = new Set<number>();
  readonly #ids = new Map<string, number>();

  /** Reads a text said in source `at` and returns the ids of its terms, each once, in order of appearance. */
  observe(text: string, at: number, voice: Voice): number[] {
    const found: number[] = [];
    const unique = new Set<number>();
    const codeOnly = voice === "bulk";
    let whole = -1;
    scanTerms(text, codeOnly, (term, kind, isPiece) => {
      const id = this.#intern(term, kind);
      if (isPiece) (this.terms[whole] as Term).piece = id;
      else whole = id;
      if (unique.has(id)) return;
      unique.add(id);
      found.push(id);
      this.#count(id, at, voice);
    });
    return found;
  }

  /** Adds known uses whose text is not available. */
  useAgain(id: number, times: number): void {
    (this.terms[id] as Term).spoken += times;
  }

  idOf(text: string): number | undefined {
    return this.#ids.get(text);
  }

  /**
   * Sets every weight: worth of the kind × how much it was used × how recently. `recency` is how strongly age discounts: weak inside a
   * leaf, whose future use is unknown, strong when older summaries are condensed. `isWork`: an agent works with tools, and needs the names
   * of what it works on again.
   */
  weigh(sources: number, { recency, isWork }: { readonly recency: number; readonly isWork: boolean }): void {
    const inUse = isWork ? WORK_FACTOR : 1;
    for (const term of this.terms) {
      const age = sources <= 1 ? 0 : (sources - 1 - term.last) / (sources - 1);
      const freshness = 1 - recency + recency * Math.exp(-age / 0.15);
      const worth = KIND_WORTH[term.kind];
      if (isPlain(term.kind)) {
        const rarity = Math.log1p(sources / term.seen) / Math.log1p(sources);
        term.weight = worth * (0.4 + rarity + (term.byUser ? 0.3 : 0)) * (0.6 + 0.4 * freshness);
      } else {
        const use = Math.log1p(3 * term.spoken + 0.5 * term.seen) + (term.byUser ? 0.7 : 0);
        term.weight = inUse * worth * use * freshness * shapeFactor(term.text);
      }
    }
  }

  #intern(text: string, kind: TermKind): number {
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = this.terms.length;
    this.terms.push({
      text,
      kind,
      spoken: 0,
      seen: 0,
      byUser: false,
      last: -1,
      lastSpoken: -1,
      piece: -1,
      weight: 0,
    });
    this.#ids.set(text, id);
    return id;
  }

  #count(id: number, at: number, voice: Voice): void {
    const term = this.terms[id] as Term;
    if (at > term.last) {
      term.last = at;
      term.seen++;
    }
    if (voice === "bulk") return;
    if (at > term.lastSpoken) {
      term.lastSpoken = at;
      term.spoken++;
    }
    if (voice === "user") term.byUser = true;
  }
}

export const isPlain = (kind: TermKind): boolean =>
  kind === "word" || kind === "script" || kind === "name" || kind === "number";

/** Very short or very long tokens (minified code, encoded blobs), host names and imports say less. */
function shapeFactor(text: string): number {
  if (text.length > 100 || /^[\w-]+\.(?:com|org|net|io|dev)\b/.test(text)) return 0.5;
  if (/[0-9a-f]{8}-[0-9a-f]{4}-|^__\w+__$/.test(text)) return 0.5;
  return text.length < 4 ? 0.6 : 1;
}

/** Receives a term; `isPiece` marks the last piece of the term that was visited just before. */
type Visit = (term: string, kind: TermKind, isPiece: boolean) => void;

/** Calls `visit` for each term of the text. With `codeOnly`, only terms with the shape of code: bulk output is not prose. */
export function scanTerms(text: string, codeOnly: boolean, visit: Visit): void {
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const token = isEscaped(text, match.index) ? match[0].slice(1) : match[0];
    if (token.length > 160 || isTagName(text, match.index, token)) continue;
    if (token.charCodeAt(0) > 0xdff && IS_UNSPACED.test(token)) {
      if (!codeOnly) visitPairs(token, visit);
      continue;
    }
    visitToken(token, codeOnly, startsSentence(text, match.index), visit);
  }
}

/** The `n` of a line break written as two characters is not part of the word after it. */
function isEscaped(text: string, at: number): boolean {
  return at > 0 && text.charCodeAt(at - 1) === 92 && "nrt".includes(text.charAt(at));
}

/** `</system-reminder>` is markup, not a place. */
function isTagName(text: string, at: number, token: string): boolean {
  return (
    at > 0 &&
    text.charCodeAt(at - 1) === 60 &&
    (token.startsWith("/") || text.charAt(at + token.length) === ">")
  );
}

function visitPairs(run: string, visit: Visit): void {
  if (run.length === 1) visit(run, "script", false);
  for (let i = 0; i + 1 < run.length; i++) visit(run.slice(i, i + 2), "script", false);
}

/** What is left of `2026-05-01T09:30:00.000Z` between its colons looks like an identifier but is not one. */
const TIMESTAMP_PIECE = /^(?:\d{4}-\d{2}-\d{2}T\d{2}\d*Z?|[\d.]*\d{2,}Z)$/;

function visitToken(raw: string, codeOnly: boolean, atStart: boolean, visit: Visit): void {
  const token = trimToken(raw);
  if (token.length < 2 || TIMESTAMP_PIECE.test(token)) return;
  const kind = classify(token, atStart);
  if (kind === "identifier" || kind === "path" || kind === "compound") {
    if (token.length < 3) return;
    visit(token, kind, false);
    visitLastPiece(token, visit);
    return;
  }
  if (codeOnly) return;
  if (kind === "number") {
    visit(token, kind, false);
    return;
  }
  const lower = token.toLowerCase();
  if (STOP_WORDS.has(lower)) return;
  const stemmed = stem(lower);
  if (TIME_WORDS.has(stemmed)) visit(stemmed, "number", false);
  else visit(kind === "name" ? token : stemmed, kind, false);
}

/** `a/b/hooks.go` also mentions `hooks.go`, `paths.RepoRoot` mentions `RepoRoot`. */
function visitLastPiece(token: string, visit: Visit): void {
  const slash = token.lastIndexOf("/");
  if (slash > 0 && slash < token.length - 3) {
    const piece = token.slice(slash + 1);
    const kind = classify(piece, true);
    if (kind === "identifier" || kind === "path") visit(piece, kind, true);
    return;
  }
  const dot = token.lastIndexOf(".");
  if (slash >= 0 || dot < 1 || dot > token.length - 5) return;
  const piece = token.slice(dot + 1);
  if (classify(piece, true) === "identifier") visit(piece, "identifier", true);
}

function trimToken(raw: string): string {
  let start = 0;
  while (start < raw.length && isTrimmable(raw, start)) start++;
  const token = start === 0 ? raw : raw.slice(start);
  return token.startsWith("//") ? token.replace(/^\/+/, "") : token;
}

function isTrimmable(raw: string, at: number): boolean {
  const char = raw.charAt(at);
  if (char === "-") return !(raw.charAt(at + 1) === "-" && /[a-z]/i.test(raw.charAt(at + 2)));
  if (char === ".") return raw.charAt(at + 1) === "." || !/[\w/]/.test(raw.charAt(at + 1));
  return char === "$";
}

/** The kind of a token, by its shape alone. */
function classify(token: string, atStart: boolean): TermKind {
  const shape = readShape(token);
  if (shape.letters === 0) return "number";
  if (token.startsWith("--")) return "identifier";
  if (shape.slash > 0) return looksLikePath(token, shape) ? "path" : "compound";
  if (shape.dot > 0) return classifyDotted(token);
  if (shape.underscore > 0 || shape.hump) return "identifier";
  if (shape.hyphen > 0) return shape.hyphen > 2 || shape.digits > 0 ? "identifier" : "compound";
  if (shape.digits > 0) return classifyMixed(token, shape);
  if (shape.capitals === token.length && token.length > 1) return "name";
  return shape.startsUpper && !atStart ? "name" : "word";
}

interface Shape {
  letters: number;
  digits: number;
  capitals: number;
  underscore: number;
  slash: number;
  dot: number;
  hyphen: number;
  hump: boolean;
  startsUpper: boolean;
}

function readShape(token: string): Shape {
  const shape: Shape = {
    letters: 0,
    digits: 0,
    capitals: 0,
    underscore: 0,
    slash: 0,
    dot: 0,
    hyphen: 0,
    hump: false,
    startsUpper: false,
  };
  let previousLower = false;
  for (let i = 0; i < token.length; i++) {
    const code = token.charCodeAt(i);
    const lower = code >= 97 && code <= 122;
    const upper = code >= 65 && code <= 90;
    if (lower || upper || code > 0xbf) shape.letters++;
    if (upper) {
      shape.capitals++;
      if (i === 0) shape.startsUpper = true;
      if (previousLower) shape.hump = true;
    } else if (code >= 48 && code <= 57) shape.digits++;
    else if (code === 95) shape.underscore++;
    else if (code === 47) shape.slash++;
    else if (code === 46) shape.dot++;
    else if (code === 45) shape.hyphen++;
    previousLower = lower;
  }
  return shape;
}

/** `and/or` is prose; `src/a`, `/etc`, `a/b/c`, `x/y.ts` are places. */
function looksLikePath(token: string, shape: Shape): boolean {
  if (/^[~./@]/.test(token) || shape.slash > 1 || shape.dot > 0 || shape.underscore > 0) return true;
  return shape.digits > 0 && shape.letters > shape.digits;
}

function classifyDotted(token: string): TermKind {
  if (/^v?\d+(\.\d+)+/.test(token)) return "identifier";
  if (/^\.?[\w-]+(\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}$/.test(token) && token.length > 3) return "path";
  return token.length > 4 ? "identifier" : "word";
}

function classifyMixed(token: string, shape: Shape): TermKind {
  if (/^\d+(st|nd|rd|th|s|ms|am|pm|k|kb|mb|gb|x|h|m|d|px|€|%)$/i.test(token)) return "number";
  return shape.letters > 0 && token.length > 2 ? "identifier" : "number";
}

function startsSentence(text: string, at: number): boolean {
  let i = at - 1;
  while (i >= 0 && (text.charCodeAt(i) <= 32 || "*_`\"'([".includes(text.charAt(i)))) i--;
  return i < 0 || ".!?:\n|>#".includes(text.charAt(i)) || text.slice(i + 1, at).includes("\n");
}

/** Enough of a stem for counting: plural and possessive. */
function stem(word: string): string {
  if (word.length > 4 && word.endsWith("s") && !word.endsWith("ss")) return word.slice(0, -1);
  return word;
}
