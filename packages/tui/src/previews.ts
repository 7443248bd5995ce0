/** First words of messages, read for the rows that are on the screen and remembered for a while. */
import type { Engine, Scope } from "@lossless/core";
import { describePart, previewOf } from "@lossless/core/doors";
import { stylePart, type Message } from "./message-text.ts";
import { storedSpan, type Paint, type Span } from "./paint.ts";

const EMPTY = { text: "", head: "", part: null };
const KEPT = 2_000;
/** More than a screen shows. Between two batches keys pressed meanwhile get their turn. */
const AT_ONCE = 64;

export interface Preview {
  readonly text: string;
  /** What the message begins with, where that is not text: a call, a result, reasoning. */
  readonly head: string;
  readonly part: Message["view"]["parts"][number] | null;
}

/** A preview as pieces of a row: what it begins with has the colour of what it is. */
export function renderPreview(preview: Preview | null, isFaint: boolean, paint: Paint): Span[] {
  if (preview === null) return [storedSpan("…")];
  const { text, head, part } = preview;
  if (isFaint || part === null || !text.startsWith(head))
    return [storedSpan(text, isFaint ? paint.faint : undefined)];
  return [storedSpan(head, stylePart(part, paint)), storedSpan(text.slice(head.length))];
}

function toPreview(message: Message): Preview {
  const [part] = message.view.parts;
  const isText = part === undefined || part.type === "text";
  // The part itself may be very long, and is not kept.
  const kept = isText ? null : { ...part, text: "" };
  const head = isText
    ? ""
    : part.type === "tool_call"
      ? `→ ${part.toolName ?? "tool"}`
      : `[${describePart(part)}]`;
  return { text: previewOf(message), head, part: kept };
}

export class Previews {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<number, Preview>();
  readonly #reading = new Map<number, Promise<void>>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  /** Null while it has not been read. */
  get(messageId: number): Preview | null {
    return this.#kept.get(messageId) ?? null;
  }

  /** Reads those that are missing, a few at a time, so that keys pressed meanwhile need not wait for all of them. */
  async read(messageIds: readonly number[], isWanted: (messageId: number) => boolean): Promise<void> {
    const missing = messageIds.filter((id) => !this.#kept.has(id));
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      const wanted = missing.slice(at, at + AT_ONCE).filter(isWanted);
      await Promise.all(wanted.map((id) => this.#readOne(id)));
    }
  }

  #readOne(messageId: number): Promise<void> {
    const running = this.#reading.get(messageId);
    if (running !== undefined) return running;
    const work = this.#engine
      .readMessage({ ...this.#scope, messageId })
      .then(
        (message) => this.#keep(messageId, message === null ? EMPTY : toPreview(message)),
        (error: unknown) =>
          this.#keep(messageId, {
            ...EMPTY,
            text: `[${error instanceof Error ? error.message : String(error)}]`,
          }),
      )
      .finally(() => this.#reading.delete(messageId));
    this.#reading.set(messageId, work);
    return work;
  }

  #keep(messageId: number, preview: Preview): void {
    this.#kept.set(messageId, preview);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}
