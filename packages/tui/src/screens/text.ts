/** A screen with only text: a message, a file, details of something. */
import type { HeadedConversation } from "@lossless/core";
import { formatCount } from "@lossless/core/doors";
import { readMove, type Key, type KeyHelp } from "../keys.ts";
import { renderSpans, span, type Paint } from "../paint.ts";
import type { Desk, Screen, Size } from "../screen.ts";
import { leaveUnmarked, markWith, type Sought } from "../sought.ts";
import { findTop } from "../text-pane.ts";
import { WrappedText, type TextLine } from "../wrapped-text.ts";

export interface TextContent {
  readonly title: string;
  readonly lines: (paint: Paint) => readonly TextLine[];
}

export class TextScreen implements Screen {
  readonly name: string;
  readonly keys: readonly KeyHelp[];
  readonly conversation?: HeadedConversation;
  readonly #desk: Desk;
  readonly #read: () => Promise<TextContent>;
  readonly #act: (key: Key) => Promise<boolean>;
  readonly #sought: Sought | null;
  #isBegun = false;
  #content: TextContent | null = null;
  #text: { readonly columns: number; readonly wrapped: WrappedText } | null = null;
  #top = 0;

  constructor(
    desk: Desk,
    options: {
      readonly name: string;
      readonly read: () => Promise<TextContent>;
      readonly keys?: readonly KeyHelp[];
      /** Its own keys; true if the key was one. */
      readonly act?: (key: Key) => Promise<boolean>;
      readonly conversation?: HeadedConversation;
      /** A search hit in it: the text begins there. */
      readonly sought?: Sought | null;
    },
  ) {
    this.#desk = desk;
    this.name = options.name;
    this.keys = options.keys ?? [];
    this.#sought = options.sought ?? null;
    this.#read = options.read;
    this.#act = options.act ?? (() => Promise.resolve(false));
    if (options.conversation !== undefined) this.conversation = options.conversation;
  }

  async load(): Promise<void> {
    this.#content = await this.#read();
    this.#text = null;
  }

  /** Reloads and begins at the first line. */
  async restart(): Promise<void> {
    this.#top = 0;
    await this.load();
  }

  async handle(key: Key): Promise<boolean> {
    const rows = this.#desk.size.rows - 1;
    const name =
      key.name === "J" ? "j" : key.name === "K" ? "k" : key.name === "space" ? "pageDown" : key.name;
    const move = readMove(name, rows);
    if (move === null) return this.#act(key);
    if (move.kind === "first") this.#top = 0;
    else if (move.kind === "last") this.#top = this.#text?.wrapped.count() ?? 0;
    else this.#top += move.rows;
    this.#top = this.#text?.wrapped.clampTop(Math.max(0, this.#top), rows) ?? 0;
    return true;
  }

  render(size: Size, paint: Paint): string[] {
    const content = this.#content;
    if (content === null) return [];
    const columns = Math.max(1, size.columns - 2);
    if (this.#text?.columns !== columns) this.#wrap(content, columns, paint);
    if (this.#text === null) return [];
    const { wrapped } = this.#text;
    const rows = Math.max(1, size.rows - 1);
    this.#top = wrapped.clampTop(this.#top, rows);
    const cursor = this.#top === 0 ? "" : `  from line ${formatCount(this.#top + 1)}`;
    const head = renderSpans([span(`  ${content.title}${cursor}`, paint.faint)], size.columns);
    return [head, ...wrapped.read(this.#top, rows).map((line) => `  ${line}`)];
  }

  #wrap(content: TextContent, columns: number, paint: Paint): void {
    const mark = this.#sought === null ? leaveUnmarked : markWith(this.#sought, paint);
    const { lines, place } = mark(content.lines(paint));
    const wrapped = new WrappedText(lines, columns);
    if (!this.#isBegun) this.#top = findTop(wrapped, place);
    this.#isBegun = true;
    this.#text = { columns, wrapped };
  }
}
