/**
 * Whether a text holds an expression of `match.ts`, without an index: for texts that are in the index together with something that does
 * not count. Reads exactly what `match.ts` writes and follows FTS5: phrases, a prefix at the end of one, NEAR, AND, OR.
 */
import { decodeTerms, encodeForIndex } from "./analyze.ts";

/** A text as the index sees it. */
export interface TextTerms {
  readonly words: readonly string[];
  readonly idents: readonly string[];
}

export function readTextTerms(text: string): TextTerms {
  const { words, idents } = encodeForIndex(text);
  return { words: splitTerms(decodeTerms(words)), idents: splitTerms(decodeTerms(idents)) };
}

const splitTerms = (text: string): string[] => (text === "" ? [] : text.split(" "));

type Test = (terms: TextTerms) => boolean;

const TOKEN = /\s*(?:"((?:[^"]|"")*)"|(words|idents)\s*:|(AND|OR)\b|NEAR(\()|([(),*])|(\d+))/y;

type Token =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "column"; readonly column: keyof TextTerms }
  | { readonly kind: "mark"; readonly mark: string };

/** Compiles an expression; it can then be asked about many texts. */
export function compileMatch(match: string): Test {
  const tokens = readTokens(match);
  const parser = new MatchParser(tokens, match);
  return parser.parse();
}

function readTokens(match: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < match.trimEnd().length) {
    const found = TOKEN.exec(match);
    if (found === null) throw unreadable(match);
    const [, text, column, operator, near, mark, number] = found;
    if (text !== undefined) tokens.push({ kind: "text", text: text.replaceAll('""', '"') });
    else if (column !== undefined) tokens.push({ kind: "column", column: column as keyof TextTerms });
    else
      tokens.push({ kind: "mark", mark: near === undefined ? (operator ?? mark ?? number ?? "") : "NEAR" });
  }
  return tokens;
}

const unreadable = (match: string): Error => new Error(`not an expression of match.ts: ${match}`);

class MatchParser {
  readonly #tokens: readonly Token[];
  readonly #match: string;
  #at = 0;

  constructor(tokens: readonly Token[], match: string) {
    this.#tokens = tokens;
    this.#match = match;
  }

  parse(): Test {
    const test = this.#any();
    if (this.#at < this.#tokens.length) throw unreadable(this.#match);
    return test;
  }

  #any(): Test {
    const tests = [this.#all()];
    while (this.#take("OR")) tests.push(this.#all());
    return (terms) => tests.some((test) => test(terms));
  }

  #all(): Test {
    const tests = [this.#one()];
    while (this.#take("AND")) tests.push(this.#one());
    return (terms) => tests.every((test) => test(terms));
  }

  #one(): Test {
    if (this.#take("(")) {
      const test = this.#any();
      this.#need(")");
      return test;
    }
    const token = this.#tokens[this.#at++];
    if (token?.kind !== "column") throw unreadable(this.#match);
    const { column } = token;
    if (this.#take("NEAR")) return this.#near(column);
    const phrase = splitTerms(this.#text());
    const isPrefix = this.#take("*");
    return (terms) => holdsPhrase(terms[column], phrase, isPrefix);
  }

  #near(column: keyof TextTerms): Test {
    const [first, second] = [this.#text(), this.#text()];
    this.#need(",");
    const token = this.#tokens[this.#at++];
    const between = token?.kind === "mark" ? Number(token.mark) : Number.NaN;
    this.#need(")");
    return (terms) => areNear(terms[column], first, second, between);
  }

  #text(): string {
    const token = this.#tokens[this.#at++];
    if (token?.kind !== "text") throw unreadable(this.#match);
    return token.text;
  }

  #take(mark: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "mark" || token.mark !== mark) return false;
    this.#at += 1;
    return true;
  }

  #need(mark: string): void {
    if (!this.#take(mark)) throw unreadable(this.#match);
  }
}

function holdsPhrase(terms: readonly string[], phrase: readonly string[], isPrefix: boolean): boolean {
  const last = phrase.length - 1;
  if (last < 0) return false;
  const fits = (term: string | undefined, at: number): boolean =>
    at === last && isPrefix ? (term?.startsWith(phrase[at] as string) ?? false) : term === phrase[at];
  return terms.some((_, start) => phrase.every((_word, at) => fits(terms[start + at], at)));
}

function areNear(terms: readonly string[], first: string, second: string, between: number): boolean {
  const places = (wanted: string): number[] =>
    terms.flatMap((term, place) => (term === wanted ? [place] : []));
  const seconds = places(second);
  return places(first).some((place) => seconds.some((other) => Math.abs(place - other) - 1 <= between));
}
