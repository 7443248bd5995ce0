/**
 * Codes of vectors, for a first pass over many: each number takes two bits, so that 100,000 vectors of 768 numbers are 20 MB in memory
 * instead of 300 MB to read. The pass returns the likely nearest; the caller compares those exactly.
 *
 * Invariant: codes are in the order of their rows and take at most {@link MAX_BYTES}; rows that came later, or do not fit, are not coded.
 */

/** The row of a code. */
export interface CodedRow {
  readonly vectorId: number;
  readonly messageId: number;
  readonly conversationId: number;
}

export interface NewRow extends CodedRow {
  /** Null for a message without text, which still takes a place. */
  readonly vector: Float32Array | null;
}

/** Of all codes together: 260,000 vectors of 768 numbers. */
const MAX_BYTES = 64 * 2 ** 20;
/** The spread of each number is learned from this many vectors. Fewer are compared exactly in no time. */
const MIN_SAMPLE = 512;
/** Shorter vectors are read as fast as their codes. */
const MIN_DIMENSIONS = 64;
const CHUNK_ROWS = 4_096;
/** The best points to cut a normal distribution into four, and the representative of each quarter, in standard deviations. */
const CUT = 0.9816;
const LEVELS = [-1.51, -0.4528, 0.4528, 1.51];
const PER_BYTE = 4;
const BYTE_VALUES = 256;
/** Scores are counted in this many steps, to find the best without sorting all of them. */
const STEPS = 4_096;
/** Kept beside the bits of each code. */
const ROW_BYTES = 64;

/** The mean and the spread of each number of a sample. */
function learnSpread(
  vectors: readonly Float32Array[],
  dimensions: number,
): { middle: Float64Array; spread: Float64Array } {
  const middle = new Float64Array(dimensions);
  const spread = new Float64Array(dimensions);
  for (const vector of vectors)
    for (let at = 0; at < dimensions; at++) {
      const value = vector[at] as number;
      middle[at] = (middle[at] as number) + value / vectors.length;
      spread[at] = (spread[at] as number) + (value * value) / vectors.length;
    }
  return {
    middle,
    spread: spread.map((sum, at) => Math.sqrt(Math.max(0, sum - (middle[at] as number) ** 2))),
  };
}

export class VectorCodes {
  readonly dimensions: number;
  readonly #width: number;
  readonly #middle: Float64Array;
  readonly #spread: Float64Array;
  readonly #chunks: Uint8Array[] = [];
  readonly #rows: CodedRow[] = [];
  /** Rows without a vector are never found. */
  readonly #isEmpty: boolean[] = [];

  private constructor(dimensions: number, sample: readonly Float32Array[]) {
    this.dimensions = dimensions;
    this.#width = Math.ceil(dimensions / PER_BYTE);
    const { middle, spread } = learnSpread(sample, dimensions);
    this.#middle = middle;
    this.#spread = spread;
  }

  /** Codes for rows like these; null if they are too few to learn from, or too short. */
  static learn(rows: readonly NewRow[], dimensions: number): VectorCodes | null {
    const sample = rows.flatMap(({ vector }) => (vector === null ? [] : [vector]));
    return sample.length < MIN_SAMPLE || dimensions < MIN_DIMENSIONS
      ? null
      : new VectorCodes(dimensions, sample);
  }

  findLast(): CodedRow | null {
    return this.#rows.at(-1) ?? null;
  }

  isFull(): boolean {
    return (this.#rows.length + 1) * (this.#width + ROW_BYTES) > MAX_BYTES;
  }

  /** Appends rows, as far as there is room. */
  add(rows: readonly NewRow[]): void {
    for (const { vector, vectorId, messageId, conversationId } of rows) {
      if (this.isFull()) return;
      const at = this.#rows.length;
      if (at % CHUNK_ROWS === 0) this.#chunks.push(new Uint8Array(CHUNK_ROWS * this.#width));
      this.#rows.push({ vectorId, messageId, conversationId });
      this.#isEmpty.push(vector === null);
      if (vector !== null)
        this.#encode(vector, this.#chunks.at(-1) as Uint8Array, (at % CHUNK_ROWS) * this.#width);
    }
  }

  /** Removes the last code: its row is gone, or contains another message. */
  drop(): void {
    this.#rows.pop();
    this.#isEmpty.pop();
    if (this.#rows.length % CHUNK_ROWS === 0) this.#chunks.length = this.#rows.length / CHUNK_ROWS;
  }

  #encode(vector: Float32Array, codes: Uint8Array, start: number): void {
    codes.fill(0, start, start + this.#width);
    for (let at = 0; at < this.dimensions; at++) {
      const offset = (vector[at] as number) - (this.#middle[at] as number);
      const cut = CUT * (this.#spread[at] as number);
      const code = offset < 0 ? (offset < -cut ? 0 : 1) : offset < cut ? 2 : 3;
      const place = start + (at >>> 2);
      codes[place] = (codes[place] as number) | (code << ((at & 3) << 1));
    }
  }

  /** The rows that are likely nearest to a vector among those wanted, about `count` of them, unordered. */
  findLikely(vector: Float32Array, count: number, isWanted: (row: CodedRow) => boolean): CodedRow[] {
    const table = this.#tabulate(vector);
    const scores = new Float32Array(this.#rows.length).fill(-Infinity);
    this.#rows.forEach((row, at) => {
      if (this.#isEmpty[at] || !isWanted(row)) return;
      const chunk = this.#chunks[Math.floor(at / CHUNK_ROWS)] as Uint8Array;
      scores[at] = sumTable(table, chunk, (at % CHUNK_ROWS) * this.#width, this.#width);
    });
    const least = findLeast(scores, count);
    return this.#rows.filter((_, at) => (scores[at] as number) >= least);
  }

  /** What each value of each byte adds to the product with a vector. */
  #tabulate(vector: Float32Array): Float32Array {
    const table = new Float32Array(this.#width * BYTE_VALUES);
    for (let at = 0; at < this.dimensions; at++) {
      const start = (at >>> 2) * BYTE_VALUES;
      const shift = (at & 3) << 1;
      const middle = this.#middle[at] as number;
      const parts = LEVELS.map(
        (level) => (vector[at] as number) * (middle + level * (this.#spread[at] as number)),
      );
      for (let value = 0; value < BYTE_VALUES; value++)
        table[start + value] = (table[start + value] as number) + (parts[(value >>> shift) & 3] as number);
    }
    return table;
  }
}

/** Two sums at once, because the processor can add them in parallel. */
function sumTable(table: Float32Array, codes: Uint8Array, start: number, width: number): number {
  let [one, other] = [0, 0];
  let at = 0;
  for (; at + 1 < width; at += 2) {
    one += table[(at << 8) | (codes[start + at] as number)] as number;
    other += table[((at + 1) << 8) | (codes[start + at + 1] as number)] as number;
  }
  return at < width
    ? one + other + (table[(at << 8) | (codes[start + at] as number)] as number)
    : one + other;
}

/** A score that at least `count` rows reach, and not many more. */
function findLeast(scores: Float32Array, count: number): number {
  let [low, high] = [Infinity, -Infinity];
  for (const score of scores) {
    if (score === -Infinity) continue;
    if (score < low) low = score;
    if (score > high) high = score;
  }
  if (!(high > low)) return low;
  const stepOf = (score: number): number => Math.floor(((score - low) / (high - low)) * (STEPS - 1));
  const counts = new Uint32Array(STEPS);
  for (const score of scores)
    if (score !== -Infinity) counts[stepOf(score)] = (counts[stepOf(score)] as number) + 1;
  let step = STEPS - 1;
  for (let found = counts[step] as number; step > 0 && found < count;) found += counts[--step] as number;
  return low + (step / (STEPS - 1)) * (high - low);
}
