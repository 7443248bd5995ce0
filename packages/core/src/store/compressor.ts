/**
 * Compresses many short bodies, one after the other, each into a separate frame. `zstdCompressSync` creates a compressor and loads the
 * dictionary for every call, which is two thirds of its time; here both are kept.
 *
 * Node's streams have such a compressor and end a frame on request, but only asynchronously. This uses their internal handle, as npm's own
 * archives do, and tests it first: if it does not give exactly what `zstdCompressSync` gives, that is used.
 */
import { constants, createZstdCompress, zstdCompressSync } from "node:zlib";

/** Longer bodies are rare, and their compressor's tables would stay in memory. */
const MAX_KEPT_BYTES = 256 * 1024;
const LEAST_SCRATCH_BYTES = 16 * 1024;
/** More than zstd ever adds to incompressible input. */
const MARGIN_BYTES = 1024;

/** The part of a stream's handle that is used. */
interface Handle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputAt: number,
    inputLength: number,
    output: Uint8Array,
    outputAt: number,
    outputLength: number,
  ): void;
}

interface StreamInside {
  readonly _handle: Handle;
  /** Room left in the output, then unread input. */
  readonly _writeState: Uint32Array;
}

export class Compressor {
  readonly #dictionary: Uint8Array;
  readonly #level: number;
  #inside: StreamInside | null;
  #scratch = Buffer.allocUnsafeSlow(LEAST_SCRATCH_BYTES);

  constructor(dictionary: Uint8Array, level: number) {
    this.#dictionary = dictionary;
    this.#level = level;
    this.#inside = this.#open();
    if (!this.#isTrustworthy()) this.#inside = null;
  }

  /** One whole frame, in a separate buffer. */
  compress(bytes: Uint8Array): Uint8Array {
    const isShort = bytes.byteLength <= MAX_KEPT_BYTES;
    return (
      (isShort && this.#inside !== null && this.#compressKept(bytes, this.#inside)) ||
      this.#compressOnce(bytes)
    );
  }

  #open(): StreamInside | null {
    const stream = createZstdCompress(this.#options()) as unknown as Partial<StreamInside>;
    const { _handle, _writeState } = stream;
    const isKnown = typeof _handle?.writeSync === "function" && _writeState instanceof Uint32Array;
    return isKnown ? (stream as StreamInside) : null;
  }

  /** Twice, because state left over from the first frame would show only in the second. */
  #isTrustworthy(): boolean {
    const probe = Buffer.from(this.#dictionary.subarray(0, LEAST_SCRATCH_BYTES / 2)).reverse();
    const wanted = this.#compressOnce(probe);
    const isSame = (): boolean => {
      const kept = this.#inside && this.#compressKept(probe, this.#inside);
      return kept !== null && Buffer.compare(kept, wanted) === 0;
    };
    return isSame() && isSame();
  }

  /** Null when the frame was not finished; the compressor is unusable after that. */
  #compressKept(bytes: Uint8Array, { _handle, _writeState }: StreamInside): Uint8Array | null {
    const needed = bytes.byteLength + MARGIN_BYTES;
    if (this.#scratch.byteLength < needed) this.#scratch = Buffer.allocUnsafeSlow(2 * needed);
    const scratch = this.#scratch;
    _handle.writeSync(constants.ZSTD_e_end, bytes, 0, bytes.byteLength, scratch, 0, scratch.byteLength);
    const room = _writeState[0] ?? 0;
    if (room === 0 || _writeState[1] !== 0) {
      this.#inside = null;
      return null;
    }
    const frame = Buffer.allocUnsafe(scratch.byteLength - room);
    scratch.copy(frame, 0, 0, frame.byteLength);
    return frame;
  }

  #compressOnce(bytes: Uint8Array): Uint8Array {
    // The result is in a buffer of this size; with the default of 64 kB a body, a batch would take 30 MB.
    return zstdCompressSync(bytes, { ...this.#options(), chunkSize: Math.max(64, bytes.byteLength) });
  }

  #options(): { dictionary: Uint8Array; params: Record<number, number> } {
    return { dictionary: this.#dictionary, params: { [constants.ZSTD_c_compressionLevel]: this.#level } };
  }
}
