/**
 * Bytes one after the other, in a block that grows. What comes often and in small pieces is written here without making anything for a
 * piece.
 */

/** The next block of a writer may well be a little longer than the one before. */
const SPARE_ROOM = 1.1;
/** Long blocks have few different lengths, so that one can take the place in memory that another has left. */
const STEP_BYTES = 64 * 1024;

export class ByteWriter {
  #block: Buffer<ArrayBuffer>;
  #length = 0;

  constructor(firstBytes: number) {
    this.#block = allocate(firstBytes);
  }

  get length(): number {
    return this.#length;
  }

  /** Where the bytes are. It is another one after the block has grown. */
  get block(): Buffer<ArrayBuffer> {
    return this.#block;
  }

  /** Says how many bytes were written. */
  write(bytes: Uint8Array): number {
    this.#makeRoom(bytes.byteLength);
    this.#block.set(bytes, this.#length);
    this.#length += bytes.byteLength;
    return bytes.byteLength;
  }

  /** For a few bytes out of many, and one behind them: a view of them would cost more than they do. */
  writeRange(bytes: Uint8Array, start: number, end: number, last: number): void {
    if (this.#length + end - start >= this.#block.byteLength) this.#makeRoom(end - start + 1);
    const block = this.#block;
    let length = this.#length;
    for (let at = start; at < end; at++) block[length++] = bytes[at] as number;
    block[length++] = last;
    this.#length = length;
  }

  /** What was written, in the writer's own block. */
  finish(): Buffer<ArrayBuffer> {
    return this.#block.subarray(0, this.#length);
  }

  /** Gives the block away, and begins another with about as much room as was needed. */
  release(): Buffer<ArrayBuffer> {
    const written = this.finish();
    this.#block = allocate(Math.ceil(this.#length * SPARE_ROOM));
    this.#length = 0;
    return written;
  }

  /** Begins again. A block that has grown beyond `keptBytes` is let go. */
  clear(keptBytes = Infinity): void {
    this.#length = 0;
    if (this.#block.byteLength > keptBytes) this.#block = Buffer.allocUnsafeSlow(keptBytes);
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#block.byteLength) return;
    const grown = allocate(Math.max(needed, 2 * this.#block.byteLength));
    grown.set(this.#block.subarray(0, this.#length));
    this.#block = grown;
  }
}

function allocate(bytes: number): Buffer<ArrayBuffer> {
  const isLong = bytes > STEP_BYTES;
  return Buffer.allocUnsafeSlow(isLong ? Math.ceil(bytes / STEP_BYTES) * STEP_BYTES : bytes);
}
