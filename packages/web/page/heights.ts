/**
 * Heights of the rows of a long list, most of them estimated until they are seen. A binary indexed tree: finding where a row begins or which row
 * is at an offset, and changing a height, take a few steps, however long the list is. Pure.
 */
export class Heights {
  readonly count: number;
  readonly #tree: Float64Array;
  readonly #heights: Float64Array;

  constructor(count: number, estimate: number) {
    this.count = count;
    this.#heights = new Float64Array(count).fill(estimate);
    this.#tree = new Float64Array(count + 1);
    // A node covers as many rows as its lowest bit says.
    for (let node = 1; node <= count; node++) this.#tree[node] = estimate * (node & -node);
  }

  get total(): number {
    return this.offsetOf(this.count);
  }

  /** Where a row begins. */
  offsetOf(index: number): number {
    let sum = 0;
    for (let node = Math.min(index, this.count); node > 0; node -= node & -node) sum += this.#tree[node] ?? 0;
    return sum;
  }

  heightOf(index: number): number {
    return this.#heights[index] ?? 0;
  }

  /** True when it has changed. */
  set(index: number, height: number): boolean {
    const change = height - this.heightOf(index);
    if (Math.abs(change) < 0.5) return false;
    this.#heights[index] = height;
    for (let node = index + 1; node <= this.count; node += node & -node)
      this.#tree[node] = (this.#tree[node] ?? 0) + change;
    return true;
  }

  /** The row at an offset; the first or last for offsets outside. */
  indexAt(offset: number): number {
    let node = 0;
    let rest = offset;
    for (
      let step = 2 ** Math.floor(Math.log2(Math.max(1, this.count)));
      step > 0;
      step = Math.floor(step / 2)
    ) {
      const next = node + step;
      const sum = this.#tree[next] ?? 0;
      if (next <= this.count && sum <= rest) {
        node = next;
        rest -= sum;
      }
    }
    return Math.max(0, Math.min(node, this.count - 1));
  }
}
