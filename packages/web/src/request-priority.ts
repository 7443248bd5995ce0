/**
 * Who goes first: what somebody has asked for and waits to see. Work that nobody waits for is done in pieces, and before each of them it
 * steps aside: a short piece until nobody waits, a long one until nobody has for a while, because a click often asks for several things in turn.
 */
import { setTimeout } from "node:timers/promises";

const QUIET_MS = 200;
const LOOK_MS = 5;

export type Piece = "short" | "long";

export class RequestPriority {
  #waiting = 0;
  #askedAt = performance.now();

  /** Does what somebody waits for. */
  async serve<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    try {
      return await work();
    } finally {
      this.#waiting -= 1;
      this.note();
    }
  }

  /** Somebody is here, and will ask for more. */
  note(): void {
    this.#askedAt = performance.now();
  }

  /** Resolves when there is time for a piece of work. */
  async stepAside(piece: Piece): Promise<void> {
    // A process that has nothing else to do need not stay for this.
    while (!this.#hasTimeFor(piece)) await setTimeout(LOOK_MS, undefined, { ref: false });
  }

  #hasTimeFor(piece: Piece): boolean {
    const quietMs = performance.now() - this.#askedAt;
    return this.#waiting === 0 && (piece === "short" || quietMs >= QUIET_MS);
  }
}
