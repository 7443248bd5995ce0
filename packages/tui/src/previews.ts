/** First words of messages, read for the rows that are on the screen and remembered for a while. */
import type { Engine, Scope } from "@lossless/core";
import { previewOf } from "@lossless/core/doors";

const KEPT = 2_000;
/** More than a screen shows. Between two batches keys pressed meanwhile get their turn. */
const AT_ONCE = 64;

export class Previews {
  readonly #engine: Engine;
  readonly #scope: Scope;
  readonly #kept = new Map<number, string>();
  readonly #reading = new Map<number, Promise<void>>();

  constructor(engine: Engine, scope: Scope) {
    this.#engine = engine;
    this.#scope = scope;
  }

  /** Null while it has not been read. */
  get(messageId: number): string | null {
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
        (message) => this.#keep(messageId, message === null ? "" : previewOf(message)),
        (error: unknown) =>
          this.#keep(messageId, `[${error instanceof Error ? error.message : String(error)}]`),
      )
      .finally(() => this.#reading.delete(messageId));
    this.#reading.set(messageId, work);
    return work;
  }

  #keep(messageId: number, preview: string): void {
    this.#kept.set(messageId, preview);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}
