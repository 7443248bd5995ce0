/**
 * What a host writes into its transcripts beside the talk: lines that are stored, hidden, and never shown. Of some hosts they are most of the
 * bytes, so an import says what they cost. The first of them are compressed as the archive does it; what the rest takes is reckoned from that.
 */
import { encodeBody } from "@lossless/core/formats";

/** Lines that are no messages. */
export interface Housekeeping {
  readonly lines: number;
  /** As they were handed in. */
  readonly bytes: number;
  /** What their texts take in the archive, about. */
  readonly storedBytes: number;
}

/** So much is compressed to know the rest: a few ms. */
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
