/**
 * A long text as lines of a pane, wrapped as far as one has scrolled. Opening a text of a megabyte costs no more than its first screen.
 */
import { makePrintable, wrapToWidth } from "@lossless/core/doors";
import type { Style } from "./paint.ts";

/** A line of a text before it is wrapped. */
export interface TextLine {
  readonly text: string;
  readonly style?: Style;
}

/** Wrapping a line takes time that grows faster than its length; longer ones are wrapped in pieces. */
const MAX_PIECE_CHARS = 2_000;

export class WrappedText {
  readonly #source: readonly TextLine[];
  readonly #columns: number;
  readonly #lines: string[] = [];
  #next = 0;

  constructor(source: readonly TextLine[], columns: number) {
    this.#source = source;
    this.#columns = Math.max(1, columns);
  }

  /** So many lines from a place on; fewer at the end. */
  read(from: number, count: number): readonly string[] {
    this.#wrapUpTo(from + count);
    return this.#lines.slice(from, from + count);
  }

  /** How many lines there are. Wraps everything. */
  count(): number {
    this.#wrapUpTo(Number.POSITIVE_INFINITY);
    return this.#lines.length;
  }

  /** The nearest place from which a screen of so many lines can be shown. */
  clampTop(top: number, rows: number): number {
    this.#wrapUpTo(top + rows);
    return Math.max(0, Math.min(top, this.#lines.length - rows));
  }

  #wrapUpTo(count: number): void {
    while (this.#lines.length < count && this.#next < this.#source.length) {
      const { text, style } = this.#source[this.#next] as TextLine;
      this.#next += 1;
      for (const piece of splitPieces(text)) {
        for (const line of wrapToWidth(piece, this.#columns)) this.#lines.push(style ? style(line) : line);
      }
    }
  }
}

function splitPieces(text: string): string[] {
  if (text.length <= MAX_PIECE_CHARS) return [text];
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    let end = at + MAX_PIECE_CHARS;
    // Not between the two halves of a character.
    if (/[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end += 1;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** Stored text as lines that may be shown: nothing in it can move the cursor or change colours. */
export function toTextLines(text: string, style?: Style): TextLine[] {
  return makePrintable(text)
    .split("\n")
    .map((line) => (style === undefined ? { text: line } : { text: line, style }));
}
