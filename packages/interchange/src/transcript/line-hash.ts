/**
 * The SHA-256 of a file up to a line, taken line by line. Lines that were read at once lie side by side in one buffer, and are hashed together:
 * a call costs more than the bytes of most lines.
 *
 * Lines must stay as they are until {@link LineHash.settle}. Invariant: the digest is that of all lines added, each with a line feed behind it, after whatever the hash held before.
 */
import { createHash, type Hash } from "node:crypto";

const LINE_FEED = 0x0a;

export class LineHash {
  readonly #hash: Hash;
  /** Lines not hashed yet, without the line feed behind the last. */
  #waiting: Uint8Array | null = null;

  constructor(hash: Hash = createHash("sha256")) {
    this.#hash = hash;
  }

  add(line: Uint8Array): void {
    const joined = this.#waiting === null ? null : joinNeighbours(this.#waiting, line);
    if (joined === null) this.settle();
    this.#waiting = joined ?? line;
  }

  /** In hexadecimal; more lines may follow. */
  digest(): string {
    this.settle();
    return this.#hash.copy().digest("hex");
  }

  /** Reads the lines added so far: their buffer may be used again after this. */
  settle(): void {
    if (this.#waiting !== null) this.#hash.update(this.#waiting).update("\n");
    this.#waiting = null;
  }
}

/** Both as one range of their buffer, if nothing but a line feed lies between them. */
function joinNeighbours(before: Uint8Array, after: Uint8Array): Uint8Array | null {
  const end = before.byteOffset + before.byteLength;
  if (before.buffer !== after.buffer || after.byteOffset !== end + 1) return null;
  const length = before.byteLength + 1 + after.byteLength;
  const both = new Uint8Array(before.buffer, before.byteOffset, length);
  return both[before.byteLength] === LINE_FEED ? both : null;
}
