/** First words of messages and summaries, read for the rows that are on the screen and remembered for a while. */
import type { Engine, Scope } from "@lossless/core";
import { describePart, previewOf, toOneLine } from "@lossless/core/doors";
import { readPart } from "@lossless/interchange/parts";
import { stylePart, type Message } from "./message-text.ts";
import { storedSpan, type Paint, type Span } from "./paint.ts";

const EMPTY = { text: "", head: "", part: null };
const KEPT = 2_000;
/** More than a screen shows. Keys pressed meanwhile are handled between two batches. */
const AT_ONCE = 64;

export interface Preview {
  readonly text: string;
  /** The beginning of a message that does not start with text: a call, a result, reasoning. */
  readonly head: string;
  readonly part: Message["view"]["parts"][number] | null;
}

/** A preview as spans of a row: its head has the colour of its type. */
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
  const line = part?.type === "tool_call" ? (readPart(message.bytes, part, 0).call?.line ?? "") : "";
  // What a call acts on says more than its arguments in the order they came in.
  const text = line === "" ? previewOf(message) : `${head} ${line}`;
  return { text, head, part: kept };
}

/** Our own summaries may begin with a day, which the row says already. */
const DAY_LINE = /^\d{4}-\d\d-\d\d UTC\n/;
const SUMMARY_CHARS = 300;

const toSummaryPreview = (content: string): Preview => ({
  ...EMPTY,
  text: toOneLine(content.replace(DAY_LINE, "").slice(0, SUMMARY_CHARS)),
});

/** A message by its number, a summary by its id. */
export type PreviewId = number | string;

export class Previews {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<PreviewId, Preview>();
  readonly #reading = new Map<PreviewId, Promise<void>>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  /** Null while it has not been read. */
  get(id: PreviewId): Preview | null {
    return this.#kept.get(id) ?? null;
  }

  /** Reads those that are missing, a few at a time, so that keys pressed meanwhile need not wait for all of them. */
  async read(ids: readonly PreviewId[], isWanted: (id: PreviewId) => boolean): Promise<void> {
    const missing = ids.filter((id) => !this.#kept.has(id));
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      const wanted = missing.slice(at, at + AT_ONCE).filter(isWanted);
      await Promise.all(wanted.map((id) => this.#readOne(id)));
    }
  }

  #readOne(id: PreviewId): Promise<void> {
    const running = this.#reading.get(id);
    if (running !== undefined) return running;
    const work = this.#preview(id)
      .then(
        (preview) => this.#keep(id, preview),
        (error: unknown) =>
          this.#keep(id, { ...EMPTY, text: `[${error instanceof Error ? error.message : String(error)}]` }),
      )
      .finally(() => this.#reading.delete(id));
    this.#reading.set(id, work);
    return work;
  }

  async #preview(id: PreviewId): Promise<Preview> {
    if (typeof id === "string") {
      const summary = await this.#engine.readSummary({ ...this.#scope, summaryId: id });
      return summary === null ? EMPTY : toSummaryPreview(summary.content);
    }
    const message = await this.#engine.readMessage({ ...this.#scope, messageId: id });
    return message === null ? EMPTY : toPreview(message);
  }

  #keep(id: PreviewId, preview: Preview): void {
    this.#kept.set(id, preview);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}
