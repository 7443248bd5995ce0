/**
 * Redacts what an export shows: messages before they are parsed, and headings before they are cut, since half a secret matches no pattern.
 * Records what was replaced by kind and place, never the values.
 */
import type { MessageView, PartView } from "@lossless/core";
import { compileRedaction, viewMessage } from "@lossless/core/formats";

export interface RedactionCount {
  /** The set or the pattern: `keys`, `tokens`, `cards`, `pattern-1`. */
  readonly kind: string;
  readonly conversationId: number;
  /** Null for the heading. */
  readonly messageId: number | null;
  /** The part of the message; `line` outside any part. */
  readonly part: PartView["type"] | "heading" | "line";
  readonly count: number;
}

export class Redactions {
  readonly #redact: ReturnType<typeof compileRedaction>;
  readonly #counts = new Map<string, RedactionCount>();

  constructor(patterns: readonly string[]) {
    this.#redact = compileRedaction([...new Set(patterns)]);
  }

  get places(): readonly RedactionCount[] {
    return [...this.#counts.values()];
  }

  /** The message without matching text. */
  message(
    { conversationId, messageId }: { readonly conversationId: number; readonly messageId: number },
    arrival: Uint8Array,
  ): { readonly bytes: Uint8Array; readonly view: MessageView } {
    const { bytes, values } = this.#redact?.(arrival) ?? { bytes: arrival, values: [] };
    const view = viewMessage(bytes);
    for (const { at, length } of values) {
      const part = view.parts.find((one) => one.at <= at && at < one.at + one.length)?.type ?? "line";
      this.#note({ kind: readKind(bytes, at, length), conversationId, messageId, part });
    }
    return { bytes, view };
  }

  /** Bytes that are only searched for a heading; redactions in them are counted where they are shown as a message. */
  bytes(arrival: Uint8Array): Uint8Array {
    return this.#redact?.(arrival).bytes ?? arrival;
  }

  text(conversationId: number, text: string | null): string | null {
    if (text === null) return null;
    const { bytes, values } = this.#redact?.(Buffer.from(text)) ?? { bytes: null, values: [] };
    if (bytes === null || values.length === 0) return text;
    for (const { at, length } of values)
      this.#note({ kind: readKind(bytes, at, length), conversationId, messageId: null, part: "heading" });
    return Buffer.from(bytes).toString("utf8");
  }

  #note(place: Omit<RedactionCount, "count">): void {
    const key = JSON.stringify(place);
    this.#counts.set(key, { ...place, count: (this.#counts.get(key)?.count ?? 0) + 1 });
  }
}

const readKind = (bytes: Uint8Array, at: number, length: number): string =>
  /\[redacted:([\w-]+)\]/u.exec(Buffer.from(bytes.subarray(at, at + length)).toString("utf8"))?.[1] ??
  "pattern";
