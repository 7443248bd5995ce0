/** Appends numbers to a typed array that grows: a plain array of tens of thousands would be copied repeatedly as it grows. */

type NumberArray = Uint32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

export class NumberWriter<Numbers extends NumberArray> {
  readonly #make: new (length: number) => Numbers;
  #numbers: Numbers;
  #length = 0;

  constructor(make: new (length: number) => Numbers, firstLength: number) {
    this.#make = make;
    this.#numbers = new make(firstLength);
  }

  /** How many were written. */
  get length(): number {
    return this.#length;
  }

  write(number: number): void {
    if (this.#length === this.#numbers.length) this.#grow();
    this.#numbers[this.#length++] = number;
  }

  /** A copy of exactly what was written. Then starts over, keeping the capacity. */
  finish(): Numbers {
    const written = this.#numbers.slice(0, this.#length) as Numbers;
    this.#length = 0;
    return written;
  }

  #grow(): void {
    const grown = new this.#make(2 * this.#numbers.length);
    grown.set(this.#numbers);
    this.#numbers = grown;
  }
}
