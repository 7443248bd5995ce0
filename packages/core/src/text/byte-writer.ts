/** Appends bytes to a block that grows. Frequent small pieces are written without allocating anything per piece. */

/** A writer's next block may be a little longer than the previous one. */
const SPARE_ROOM = 1.1;
/** Long blocks have few different lengths, so that one can reuse the memory of another. */
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

  /** The block with the bytes. It is replaced when it grows. */
  get block(): Buffer<ArrayBuffer> {
    return this.#block;
  }

  /** Returns how many bytes were written. */
  write(bytes: Uint8Array): number {
    this.#makeRoom(bytes.byteLength);
    this.#block.set(bytes, this.#length);
    this.#length += bytes.byteLength;
    return bytes.byteLength;
  }

  /** For a few bytes out of many, followed by one more: a view of them would cost more than copying. */
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

  /** Releases the block to the caller, and starts another of about the size that was needed. */
  release(): Buffer<ArrayBuffer> {
    const written = this.finish();
    this.#block = allocate(Math.ceil(this.#length * SPARE_ROOM));
    this.#length = 0;
    return written;
  }

  /** Starts over. A block that has grown beyond `keptBytes` is dropped. */
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
