/**
 * What is known about a regular expression without running it: whether a question is meant as one, and which strings every match must
 * contain, so that a search can skip texts without them. Conservative: anything optional, repeated from zero, an alternative or not
 * understood gives nothing; a returned literal is certain. The caller ignores the case of literals when the expression does.
 */

/** Escapes for one certain character. */
const CONTROL_ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", f: "\f", v: "\v" };
/** Escaped letters and digits that denote a class, an assertion, a reference or a property. */
const OPEN_ESCAPE = /[dDwWsSbBpPkxuc0-9]/;

/** Reads a pattern and collects the runs of certain characters. */
class LiteralReader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  /** Literals of the whole pattern. */
  read(): string[] {
    return this.#readAlternatives();
  }

  /** Reads up to `)` or the end. With more than one alternative nothing is certain. */
  #readAlternatives(): string[] {
    let literals = this.#readSequence();
    while (this.#pattern[this.#at] === "|") {
      this.#at++;
      this.#readSequence();
      literals = [];
    }
    return literals;
  }

  #readSequence(): string[] {
    const literals: string[] = [];
    let literal = "";
    const close = (): void => {
      if (literal !== "") literals.push(literal);
      literal = "";
    };
    while (this.#at < this.#pattern.length && !"|)".includes(this.#pattern[this.#at] as string)) {
      const atom = this.#readAtom();
      const quantifier = this.#readQuantifier();
      if (atom.character !== undefined && quantifier === "once") {
        literal += atom.character;
        continue;
      }
      if (atom.character !== undefined && quantifier === "repeated") literal += atom.character;
      close();
      if (quantifier !== "optional") literals.push(...atom.inner);
    }
    close();
    return literals;
  }

  #readAtom(): { character?: string; inner: string[] } {
    const character = this.#take();
    if (character === "(") return { inner: this.#readGroup() };
    if (character === "[") this.#skipClass();
    else if (character === "\\") return this.#readEscape();
    else if (!".^$".includes(character)) return { character, inner: [] };
    return { inner: [] };
  }

  /** The next character, both units of a pair. */
  #take(): string {
    const character = String.fromCodePoint(this.#pattern.codePointAt(this.#at) as number);
    this.#at += character.length;
    return character;
  }

  #readGroup(): string[] {
    const opening = /^\?(?:<(?![=!])[^>]*>|[a-z-]*:|<?[=!])/.exec(this.#pattern.slice(this.#at))?.[0] ?? "";
    this.#at += opening.length;
    const inner = this.#readAlternatives();
    this.#at++;
    // What a look-around sees is not part of the match, or must be absent; a group with its own flags may ignore case.
    return /[=!]$|^\?[a-z-]+:/.test(opening) ? [] : inner;
  }

  #skipClass(): void {
    while (this.#at < this.#pattern.length) {
      const character = this.#take();
      if (character === "\\") this.#at++;
      else if (character === "]") return;
    }
  }

  #readEscape(): { character?: string; inner: string[] } {
    const letter = this.#take();
    const control = CONTROL_ESCAPES[letter];
    if (control !== undefined) return { character: control, inner: [] };
    if (!OPEN_ESCAPE.test(letter)) return { character: letter, inner: [] };
    // The rest of \u0041, \x41, \k<name>, \p{…} or \12 belongs to the escape and gives no certain literal here.
    const rest =
      /^(?:\{[^}]*\}|<[^>]*>)/.exec(this.#pattern.slice(this.#at))?.[0].length ??
      lengthOfCode(letter, this.#pattern, this.#at);
    this.#at += "uxpPk0123456789c".includes(letter) ? rest : 0;
    return { inner: [] };
  }

  #readQuantifier(): "once" | "optional" | "repeated" {
    const found = /^(?:[*+?]|\{(\d+)(?:,\d*)?\})\??/.exec(this.#pattern.slice(this.#at));
    if (!found) return "once";
    this.#at += found[0].length;
    if (found[1] !== undefined) return Number(found[1]) === 0 ? "optional" : "repeated";
    return found[0].startsWith("+") ? "repeated" : "optional";
  }
}

function lengthOfCode(letter: string, pattern: string, at: number): number {
  const digits = /^[0-9a-f]{1,4}/i.exec(pattern.slice(at))?.[0].length ?? 0;
  if (letter === "u") return Math.min(4, digits);
  if (letter === "x") return Math.min(2, digits);
  if (letter === "c") return 1;
  return /^\d*/.exec(pattern.slice(at))?.[0].length ?? 0;
}

/**
 * The literals that any match of `pattern` contains, longest first; empty when nothing is certain or the pattern is not valid.
 *
 * @example
 * requiredLiterals("foo(bar|baz)?_qux\\d+"); // ["_qux", "foo"]
 */
export function requiredLiterals(pattern: string): string[] {
  try {
    void new RegExp(pattern);
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
  const literals = new LiteralReader(pattern).read();
  return [...new Set(literals)].toSorted((a, b) => b.length - a.length);
}

/** Constructs that are common in patterns and rare in questions. */
const REGEX_SIGNS = [
  /\\[bBdDwWsSnrt.()[\]{}*+?|^$/]/,
  /\.[*+]/,
  /\[[^\]\s]+\][*+?{]/,
  /\[(?:\^[^\]]+|[^\]]*\w-\w[^\]]*)\]/,
  /\([^)]*\|[^)]*\)/,
  /\(\?[:=!<]/,
  /^\^\S|\S\$$/,
  /\w\|\w/,
  /\)[*+?]|\w\{\d+(?:,\d*)?\}/,
];

/** Longer ones are refused as expressions, and take long to check. */
export const MAX_PATTERN_CHARS = 500;

/** Whether a full-text question is written like a regular expression, so that the result can point to the other mode. */
export function looksLikeRegex(text: string): boolean {
  return text.length <= MAX_PATTERN_CHARS && REGEX_SIGNS.some((sign) => sign.test(text));
}
