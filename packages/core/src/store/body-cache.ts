/**
 * A cache of decoded bodies. The context of a turn is nearly that of the previous turn, and decompressing a short body costs more than
 * reading and parsing it.
 *
 * Invariant: a result is never older than the row. The stored bytes are read each time and compared with those that were decoded, so
 * nothing needs to be invalidated, whichever process changes or erases a body.
 */
import { decodeBody } from "./body.ts";
import type { EncodedBody } from "./body.ts";

/** Maximum decoded bytes: twice what the largest usual context shows. */
const MAX_BYTES = 4_000_000;

interface Entry {
  readonly stored: Uint8Array;
  readonly decoded: Uint8Array;
}

export class BodyCache {
  /** In order of use, least recently used first. */
  readonly #entries = new Map<number, Entry>();
  #bytes = 0;

  decode(messageId: number, encoded: EncodedBody, expectedBytes: number): Uint8Array {
    const known = this.#entries.get(messageId);
    if (known !== undefined) this.#drop(messageId, known);
    const decoded =
      known !== undefined && Buffer.compare(known.stored, encoded.body) === 0
        ? known.decoded
        : decodeBody(encoded, expectedBytes);
    this.#keep(messageId, { stored: encoded.body, decoded });
    return decoded;
  }

  #keep(messageId: number, entry: Entry): void {
    this.#entries.set(messageId, entry);
    this.#bytes += entry.decoded.byteLength;
    for (const [id, oldest] of this.#entries) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#drop(id, oldest);
    }
  }

  #drop(messageId: number, entry: Entry): void {
    this.#entries.delete(messageId);
    this.#bytes -= entry.decoded.byteLength;
  }
}
