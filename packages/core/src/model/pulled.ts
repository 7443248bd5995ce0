/** A list that is read from its source on demand, and only as far as somebody looks. What was read can be read again. */
export class Pulled<T> {
  readonly #source: Iterator<T>;
  readonly #pulled: T[] = [];

  constructor(source: Iterable<T>) {
    this.#source = source[Symbol.iterator]();
  }

  /** Undefined beyond the end of the source. */
  at(index: number): T | undefined {
    while (this.#pulled.length <= index) {
      const next = this.#source.next();
      if (next.done) return undefined;
      this.#pulled.push(next.value);
    }
    return this.#pulled[index];
  }

  /** From `from` up to, not including, `to`, of what was read so far. */
  slice(from = 0, to?: number): T[] {
    return this.#pulled.slice(from, to);
  }
}
