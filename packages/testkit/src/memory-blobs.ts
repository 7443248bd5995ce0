/** Large payloads in memory, for archives that keep nothing on a disk. */
import type { Blobs } from "@lossless/core/ports";

export class MemoryBlobs implements Blobs {
  readonly #contents: Map<string, Uint8Array>;

  /** A copy of another instance, or empty. */
  constructor(of?: MemoryBlobs) {
    this.#contents = new Map(of ? of.#contents : []);
  }

  put(name: string, content: Uint8Array): void {
    this.#contents.set(name, Uint8Array.from(content));
  }

  read(name: string): Uint8Array | null {
    return this.#contents.get(name) ?? null;
  }

  remove(name: string): boolean {
    return this.#contents.delete(name);
  }

  list(): string[] {
    return [...this.#contents.keys()];
  }
}
