/**
 * Vector arithmetic: normalising to length one, dot product, bytes, and the nearest of many. All stored vectors have length one, so the dot
 * product of two is the cosine of the angle between them.
 */
import { endianness } from "node:os";

/** The same direction with length one; null if there is no direction: only zeros, or a value that is not a number. */
export function normalizeVector(vector: Float32Array): Float32Array | null {
  let sum = 0;
  for (const value of vector) sum += value * value;
  if (!(sum > 0) || !Number.isFinite(sum)) return null;
  const length = Math.sqrt(sum);
  return vector.map((value) => value / length);
}

/** Four sums at once, because the processor can add them in parallel. */
export function dotProduct(a: Float32Array, b: Float32Array): number {
  const { length } = a;
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  let at = 0;
  for (; at + 3 < length; at += 4) {
    s0 += (a[at] as number) * (b[at] as number);
    s1 += (a[at + 1] as number) * (b[at + 1] as number);
    s2 += (a[at + 2] as number) * (b[at + 2] as number);
    s3 += (a[at + 3] as number) * (b[at + 3] as number);
  }
  for (; at < length; at++) s0 += (a[at] as number) * (b[at] as number);
  return s0 + s1 + s2 + s3;
}

const IS_BIG_ENDIAN = endianness() === "BE";

/** Little-endian float32, whatever this machine uses, so that an archive can be moved. */
export function vectorToBytes(vector: Float32Array): Uint8Array {
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return IS_BIG_ENDIAN ? Buffer.from(bytes).swap32() : bytes;
}

export function vectorFromBytes(bytes: Uint8Array): Float32Array {
  const isUsable = !IS_BIG_ENDIAN && bytes.byteOffset % 4 === 0;
  const own = isUsable ? bytes : Uint8Array.from(bytes);
  if (IS_BIG_ENDIAN) Buffer.from(own.buffer).swap32();
  return new Float32Array(own.buffer, own.byteOffset, own.byteLength >>> 2);
}

export interface Neighbour {
  readonly id: number;
  /** Cosine: 1 for the same direction. */
  readonly score: number;
}

/** Best first; ties by lower id. */
const compare = (a: Neighbour, b: Neighbour): number => b.score - a.score || a.id - b.id;

/** Keeps the nearest of many, and all that are as near as the last of them: ids do not decide ties. */
export class NearestList {
  readonly #limit: number;
  #kept: Neighbour[] = [];
  #least = -Infinity;
  #cutAt: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.#cutAt = 2 * limit + 16;
  }

  add(id: number, score: number): void {
    if (score < this.#least) return;
    this.#kept.push({ id, score });
    // Sorting occasionally is cheaper than keeping order at every step.
    if (this.#kept.length >= this.#cutAt) this.#cut();
  }

  list(): Neighbour[] {
    this.#cut();
    return [...this.#kept];
  }

  #cut(): void {
    this.#kept = this.#kept.toSorted(compare);
    this.#least = this.#kept[this.#limit - 1]?.score ?? -Infinity;
    this.#kept = this.#kept.filter(({ score }) => score >= this.#least);
    this.#cutAt = 2 * this.#kept.length + 16;
  }
}
