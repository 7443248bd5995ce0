/** A text pane that scrolls by itself, with J and K, while the keys of the list stay free. Rewraps only when necessary. */
import { WHEEL_ROWS, type Key } from "./keys.ts";
import type { Size } from "./screen.ts";
import { leaveUnmarked, type MarkedText } from "./sought.ts";
import { WrappedText, type TextLine } from "./wrapped-text.ts";

/** Lines above a hit that are shown with it. */
const LINES_BEFORE = 2;

export class TextPane {
  #top = 0;
  #key = "";
  #text: WrappedText | null = null;
  #rows = 1;

  /** `id` identifies the text: another one begins at its first line, or near its search hit. */
  render(
    id: string,
    { columns, rows }: Size,
    makeLines: () => readonly TextLine[],
    mark: (lines: readonly TextLine[]) => MarkedText = leaveUnmarked,
  ): readonly string[] {
    const key = `${id}\n${columns}`;
    if (key !== this.#key || this.#text === null) {
      const { lines, place } = mark(makeLines());
      this.#text = new WrappedText(lines, columns);
      if (!this.#key.startsWith(`${id}\n`)) this.#top = findTop(this.#text, place);
      this.#key = key;
    }
    this.#rows = rows;
    this.#top = this.#text.clampTop(this.#top, rows);
    return this.#text.read(this.#top, rows);
  }

  /** The text has changed under the same id. */
  forget(): void {
    this.#text = null;
  }

  handle({ name }: Key): boolean {
    const step = Math.max(1, Math.floor(this.#rows / 2));
    if (name === "paneUp") return this.#scroll(-WHEEL_ROWS);
    if (name === "paneDown") return this.#scroll(WHEEL_ROWS);
    if (name === "J" || name === "shift+down") return this.#scroll(step);
    return (name === "K" || name === "shift+up") && this.#scroll(-step);
  }

  #scroll(rows: number): boolean {
    this.#top = Math.max(0, this.#top + rows);
    return true;
  }
}

/** The first line to show, so that the place is in view. */
export const findTop = (text: WrappedText, place: MarkedText["place"]): number =>
  place === null ? 0 : Math.max(0, text.find(place.line, place.offset) - LINES_BEFORE);
