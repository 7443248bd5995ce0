/**
 * Priorities: requests that a user waits for go first. Background work is done in pieces and yields before each of them: a short piece until no
 * request is pending, a long one until none has been for a while, because a click often makes several requests in a row.
 */
import { setImmediate, setTimeout } from "node:timers/promises";

const QUIET_MS = 200;
const LOOK_MS = 5;

export type Piece = "short" | "long";

export class RequestPriority {
  #waiting = 0;
  #askedAt = performance.now();

  /** Runs work that a user waits for. */
  async serve<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    try {
      return await work();
    } finally {
      this.#waiting -= 1;
      this.note();
    }
  }

  /** A user is active and will make more requests. */
  note(): void {
    this.#askedAt = performance.now();
  }

  /** Resolves when there is time for a piece of work. */
  async stepAside(piece: Piece): Promise<void> {
    // Requests that have arrived meanwhile are noticed first.
    await setImmediate();
    // This timer must not keep the process alive.
    while (!this.#hasTimeFor(piece)) await setTimeout(LOOK_MS, undefined, { ref: false });
  }

  #hasTimeFor(piece: Piece): boolean {
    const quietMs = performance.now() - this.#askedAt;
    return this.#waiting === 0 && (piece === "short" || quietMs >= QUIET_MS);
  }
}
