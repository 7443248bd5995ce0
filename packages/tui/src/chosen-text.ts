/** The text of the chosen message or summary: loaded after the key was handled, shown in a scrollable pane. */
import type { SummaryNode } from "@lossless/core";
import { toOneLine } from "@lossless/core/doors";
import type { Key } from "./keys.ts";
import { readMessageText, renderMessageText, type Message } from "./message-text.ts";
import type { Paint } from "./paint.ts";
import type { Desk, Size } from "./screen.ts";
import { leaveUnmarked, markWith, type Sought } from "./sought.ts";
import { renderSummaryText } from "./summary-text.ts";
import { TextPane } from "./text-pane.ts";
import type { TextLine } from "./wrapped-text.ts";

export interface Choosable {
  /** Names the text: another id is read anew. */
  readonly id: string;
  readonly messageId: number | null;
  /** An entry of a conversation, or a turn, that is read instead of a message. */
  readonly read?: () => Promise<(paint: Paint) => TextLine[]>;
  readonly summaryId: string | null;
  /** Shown when there is neither message nor summary. */
  readonly reason: string;
}

type Shown =
  | { readonly kind: "message"; readonly message: Message | string }
  | { readonly kind: "summary"; readonly summary: SummaryNode }
  | { readonly kind: "lines"; readonly render: (paint: Paint) => TextLine[] }
  | { readonly kind: "words"; readonly words: string };

export class ChosenText {
  readonly #desk: Desk;
  readonly #pane = new TextPane();
  #shown: { readonly id: string; readonly content: Shown } | null = null;
  #wantedId: string | null = null;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  handle(key: Key): boolean {
    return this.#pane.handle(key);
  }

  /** Reloads it even if the id is the same. */
  forget(): void {
    this.#shown = null;
    this.#pane.forget();
  }

  async read(chosen: Choosable | null): Promise<void> {
    if (chosen === null || this.#shown?.id === chosen.id) return;
    this.#wantedId = chosen.id;
    const content = await this.#readContent(chosen);
    if (this.#wantedId === chosen.id) this.#shown = { id: chosen.id, content };
  }

  async #readContent({ messageId, summaryId, reason, read }: Choosable): Promise<Shown> {
    const { engine, scope } = this.#desk.archive;
    if (read !== undefined) return { kind: "lines", render: await read() };
    if (summaryId !== null) {
      const summary = await engine.readSummary({ ...scope, summaryId });
      return summary === null
        ? { kind: "words", words: `${summaryId} is gone` }
        : { kind: "summary", summary };
    }
    if (messageId === null) return { kind: "words", words: reason };
    return { kind: "message", message: await readMessageText(engine, scope, messageId) };
  }

  /** With a search hit its words are marked, and the text begins near them. */
  render(
    chosen: Choosable | null,
    size: Size,
    paint: Paint,
    sought: Sought | null = null,
  ): readonly string[] {
    const shown = this.#shown;
    if (chosen === null || shown?.id !== chosen.id) return [];
    const mark = sought === null ? leaveUnmarked : markWith(sought, paint);
    return this.#pane.render(shown.id, size, () => renderContent(shown.content, paint), mark);
  }
}

function renderContent(content: Shown, paint: Paint): TextLine[] {
  if (content.kind === "summary") return renderSummaryText(content.summary, paint);
  if (content.kind === "words") return [{ text: toOneLine(content.words), style: paint.faint }];
  if (content.kind === "lines") return content.render(paint);
  const { message } = content;
  return typeof message === "string"
    ? [{ text: toOneLine(message), style: paint.bad }]
    : renderMessageText(message, paint);
}
