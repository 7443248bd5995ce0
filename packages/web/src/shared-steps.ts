/**
 * A computation in steps that several callers share: the caller that has time does the next step, and all of them get the result. A background caller
 * pauses between two steps; a caller that somebody waits for continues at once where the other one stopped.
 */
export class SharedSteps<T> {
  readonly #steps: Iterator<void, T>;
  #done: IteratorResult<void, T> | null = null;

  constructor(steps: Iterator<void, T>) {
    this.#steps = steps;
  }

  async finish(pause: () => Promise<void>): Promise<T> {
    for (;;) {
      await pause();
      if (this.#done?.done === true) return this.#done.value;
      this.#done = this.#steps.next();
    }
  }
}
