/**
 * The SHA-256 of a file up to a line, computed line by line. Lines that were read together are adjacent in one buffer and are hashed together: a
 * call costs more than the bytes of most lines.
 *
 * Lines must not change until {@link LineHash.settle}. Invariant: the digest covers all lines added, each followed by a line feed, after
 * whatever was hashed before.
 */
import { createHash, type Hash } from "node:crypto";

const LINE_FEED = 0x0a;

export class LineHash {
  readonly #hash: Hash;
  /** Lines not hashed yet, without the line feed after the last. */
  #waiting: Uint8Array | null = null;

  constructor(hash: Hash = createHash("sha256")) {
    this.#hash = hash;
  }

  add(line: Uint8Array): void {
    const joined = this.#waiting === null ? null : joinNeighbours(this.#waiting, line);
    if (joined === null) this.settle();
    this.#waiting = joined ?? line;
  }

  /** In hexadecimal; more lines may be added. */
  digest(): string {
    this.settle();
    return this.#hash.copy().digest("hex");
  }

  /** Hashes the lines added so far: their buffer may be reused after this. */
  settle(): void {
    if (this.#waiting !== null) this.#hash.update(this.#waiting).update("\n");
    this.#waiting = null;
  }
}

/** Both as one range of their buffer, if only a line feed is between them. */
function joinNeighbours(before: Uint8Array, after: Uint8Array): Uint8Array | null {
  const end = before.byteOffset + before.byteLength;
  if (before.buffer !== after.buffer || after.byteOffset !== end + 1) return null;
  const length = before.byteLength + 1 + after.byteLength;
  const both = new Uint8Array(before.buffer, before.byteOffset, length);
  return both[before.byteLength] === LINE_FEED ? both : null;
}
