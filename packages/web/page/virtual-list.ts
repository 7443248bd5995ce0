/**
 * A list of any length in which only visible rows exist. Rows may have any height; when one differs from its estimate, what is being read stays
 * in place.
 */
import { h } from "./dom.ts";
import { Heights } from "./heights.ts";

export interface VirtualListOptions {
  readonly label: string;
  readonly count: number;
  readonly estimate: number;
  readonly render: (index: number) => HTMLElement;
  /** Called when other rows come into view. */
  readonly onRange?: (first: number, last: number) => void;
}

const OVERSCAN_PX = 600;
const MAX_PASSES = 4;

export class VirtualList {
  readonly element: HTMLElement;
  readonly #options: VirtualListOptions;
  readonly #space: HTMLElement;
  readonly #rows = new Map<number, HTMLElement>();
  #heights: Heights;
  #isWaiting = false;
  #range = "";

  constructor(options: VirtualListOptions) {
    this.#options = options;
    this.#heights = new Heights(options.count, options.estimate);
    this.#space = h("div", { class: "vlist-space", role: "list", "aria-label": options.label });
    // Reserve the full height: a list that is opened at its end must not show its start first.
    this.#space.style.height = `${this.#heights.total}px`;
    this.element = h(
      "div",
      { class: "vlist", tabindex: 0, role: "group", "aria-label": options.label },
      this.#space,
    );
    this.element.addEventListener("scroll", () => this.update(), { passive: true });
    new ResizeObserver(() => this.update()).observe(this.element);
    // A row that unfolds, or a picture that loads, changes its height.
    this.#space.addEventListener("toggle", () => this.update(), true);
    this.#space.addEventListener("load", () => this.update(), true);
  }

  get count(): number {
    return this.#heights.count;
  }

  /** The first visible row. */
  get first(): number {
    return this.#heights.indexAt(this.element.scrollTop);
  }

  /** For a list that has grown: rows that were seen keep their heights. */
  setCount(count: number): void {
    if (count === this.count) return;
    const before = this.#heights;
    this.#heights = new Heights(count, this.#options.estimate);
    for (const index of this.#rows.keys())
      if (index < count) this.#heights.set(index, before.heightOf(index));
    this.update();
  }

  scrollTo(index: number, place: "start" | "center" = "start"): void {
    // Rows on the way are estimated; once they were seen the offset is exact.
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const room =
        place === "center" ? Math.max(0, (this.element.clientHeight - this.#heights.heightOf(index)) / 2) : 0;
      const wanted = Math.max(0, this.#heights.offsetOf(index) - room);
      if (pass > 0 && Math.abs(wanted - this.element.scrollTop) <= 1) return;
      this.element.scrollTop = wanted;
      this.#draw();
    }
  }

  /** Rebuilds rows, because there is more to show in them. */
  invalidate(first: number, last: number): void {
    for (let index = first; index <= last; index++) {
      this.#rows.get(index)?.remove();
      this.#rows.delete(index);
    }
    this.update();
  }

  rowOf(index: number): HTMLElement | undefined {
    return this.#rows.get(index);
  }

  update(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      this.#isWaiting = false;
      this.#draw();
    });
  }

  #draw(): void {
    const view = this.element.clientHeight;
    if (view === 0 || this.count === 0) return;
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const top = this.element.scrollTop;
      const anchor = this.#heights.indexAt(top);
      const into = top - this.#heights.offsetOf(anchor);
      const first = this.#heights.indexAt(Math.max(0, top - OVERSCAN_PX));
      const last = this.#heights.indexAt(top + view + OVERSCAN_PX);
      this.#place(first, last);
      const hasChanged = this.#measure();
      this.#space.style.height = `${this.#heights.total}px`;
      const wanted = this.#heights.offsetOf(anchor) + into;
      if (Math.abs(wanted - this.element.scrollTop) > 1) this.element.scrollTop = wanted;
      this.#announce(first, last);
      if (!hasChanged) break;
      // Rows that turned out empty make room for more than was drawn.
      if (pass === MAX_PASSES - 1) this.update();
    }
    for (const [index, row] of this.#rows)
      row.style.transform = `translateY(${this.#heights.offsetOf(index)}px)`;
  }

  #place(first: number, last: number): void {
    const active = document.activeElement;
    for (const [index, row] of this.#rows) {
      if ((index >= first && index <= last) || row.contains(active)) continue;
      row.remove();
      this.#rows.delete(index);
    }
    for (let index = first; index <= last; index++) {
      if (this.#rows.has(index)) continue;
      const row = h("div", {
        class: "vrow",
        role: "listitem",
        "aria-setsize": this.count,
        "aria-posinset": index + 1,
      });
      row.append(this.#options.render(index));
      this.#rows.set(index, row);
      this.#space.append(row);
    }
  }

  #measure(): boolean {
    let hasChanged = false;
    for (const [index, row] of this.#rows)
      hasChanged = this.#heights.set(index, row.offsetHeight) || hasChanged;
    return hasChanged;
  }

  #announce(first: number, last: number): void {
    const range = `${first}-${last}`;
    if (range === this.#range) return;
    this.#range = range;
    this.#options.onRange?.(first, last);
  }
}
