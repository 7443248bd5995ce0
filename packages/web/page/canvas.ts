/** Shared by the drawn views: a canvas at the resolution of the screen, and the colours of the style sheet. */
import { h } from "./dom.ts";

export interface Surface {
  readonly element: HTMLCanvasElement;
  readonly width: number;
  readonly height: number;
  readonly pen: CanvasRenderingContext2D;
}

export class Canvas {
  readonly element: HTMLCanvasElement;
  readonly #draw: (surface: Surface) => void;
  readonly #watch: ResizeObserver;
  #isWaiting = false;

  constructor(label: string, className: string, draw: (surface: Surface) => void) {
    this.element = h("canvas", { class: className, tabindex: 0, role: "img", "aria-label": label });
    this.#draw = draw;
    this.#watch = new ResizeObserver(() => this.update());
    this.#watch.observe(this.element);
    this.element.addEventListener("themechange", () => this.update());
  }

  /** Schedules one redraw for the next frame, however often it is called. */
  update(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    requestAnimationFrame(() => {
      this.#isWaiting = false;
      this.#paint();
    });
  }

  close(): void {
    this.#watch.disconnect();
  }

  #paint(): void {
    const { clientWidth: width, clientHeight: height } = this.element;
    const ratio = window.devicePixelRatio;
    const pen = this.element.getContext("2d");
    if (pen === null || width === 0) return;
    this.element.width = Math.round(width * ratio);
    this.element.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.#draw({ element: this.element, width, height, pen });
  }
}

export interface Colours {
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly edge: string;
  readonly panel: string;
  readonly accent: string;
  readonly message: string;
  readonly depths: readonly string[];
  readonly onDepth: string;
}

/** Read for each drawing: the theme may have changed. */
export function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    text: read("--text"),
    faint: read("--faint"),
    line: read("--line"),
    edge: read("--edge"),
    panel: read("--panel"),
    accent: read("--accent"),
    message: read("--depth-message"),
    depths: [0, 1, 2, 3, 4, 5].map((depth) => read(`--depth-${depth}`)),
    onDepth: read("--on-depth"),
  };
}

export const colourOfDepth = (colours: Colours, depth: number): string =>
  depth < 0
    ? colours.message
    : (colours.depths[Math.min(depth, colours.depths.length - 1)] ?? colours.accent);
