/**
 * Housekeeping: lines of a transcript that are not part of the conversation; they are stored, hidden, and never shown. For some hosts they are
 * most of the bytes, so an import reports their size. A sample is compressed as in the archive, and the rest is extrapolated from it.
 */
import { encodeBody } from "@lossless/core/formats";

/** Lines that are not messages. */
export interface Housekeeping {
  readonly lines: number;
  /** As they arrived. */
  readonly bytes: number;
  /** The approximate size of their texts in the archive. */
  readonly storedBytes: number;
}

/** The size of the sample that is compressed: a few ms. */
const SAMPLE_BYTES = 262_144;

export class HousekeepingMeter {
  #lines = 0;
  #bytes = 0;
  #sampled = 0;
  #stored = 0;

  add(line: Uint8Array): void {
    this.#lines += 1;
    this.#bytes += line.byteLength;
    if (this.#sampled >= SAMPLE_BYTES) return;
    this.#sampled += line.byteLength;
    this.#stored += encodeBody(line).body.byteLength;
  }

  read(): Housekeeping {
    const share = this.#sampled === 0 ? 0 : this.#stored / this.#sampled;
    return { lines: this.#lines, bytes: this.#bytes, storedBytes: Math.round(this.#bytes * share) };
  }
}
