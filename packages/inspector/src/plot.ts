/** Small plots as SVG: lines over a number, bars over days. Each has a table's worth of words in its label, for those who cannot see it. */
import { h, s } from "./dom.ts";
import { formatShort } from "./format.ts";

export interface Line {
  readonly name: string;
  readonly className: string;
  readonly values: readonly number[];
}

export interface LinePlot {
  readonly label: string;
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  /** Places on x that are marked. */
  readonly marks?: readonly number[];
  readonly markName?: string;
  readonly describeX: (index: number) => string;
  readonly axis: readonly string[];
}

const WIDTH = 920;
const HEIGHT = 300;
const LEFT = 56;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 28;
const GRID_LINES = 4;

export function drawLines(plot: LinePlot): HTMLElement {
  const top = niceCeiling(
    Math.max(1, ...plot.lines.flatMap(({ values }) => values.reduce((a, b) => Math.max(a, b), 0))),
  );
  const lastX = plot.x.at(-1) ?? 1;
  const toX = (x: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * x) / Math.max(1, lastX);
  const toY = (value: number): number => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / top;
  const cursor = s("line", { class: "plot-cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const svg = s(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": plot.label },
    ...drawGrid(top, toY),
    ...(plot.marks ?? []).map((x) =>
      s("line", { class: "plot-mark", x1: toX(x), x2: toX(x), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 7 }),
    ),
    ...plot.lines.flatMap(({ className, values }) => {
      const points = values.map(
        (value, index) => `${toX(plot.x[index] ?? 0).toFixed(1)},${toY(value).toFixed(1)}`,
      );
      const base = `${toX(lastX)},${toY(0)} ${toX(0)},${toY(0)}`;
      return [
        s("polygon", { class: `plot-area ${className}`, points: `${points.join(" ")} ${base}` }),
        s("polyline", { class: `plot-line ${className}`, points: points.join(" ") }),
      ];
    }),
    ...plot.axis.map((text, index) =>
      s(
        "text",
        {
          class: "plot-text",
          x: LEFT + ((WIDTH - LEFT - RIGHT) * index) / Math.max(1, plot.axis.length - 1),
          y: HEIGHT - 6,
          "text-anchor": anchorOf(index, plot.axis.length),
        },
        text,
      ),
    ),
    cursor,
  );
  const reading = h("p", { class: "reading", "aria-live": "polite" }, " ");
  const read = (event: Event): void => {
    const box = svg.getBoundingClientRect();
    const x = (((event as MouseEvent).clientX - box.left) / box.width) * WIDTH;
    const index = nearest(plot.x, ((x - LEFT) / (WIDTH - LEFT - RIGHT)) * lastX);
    const at = toX(plot.x[index] ?? 0);
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, String(at));
    cursor.setAttribute("visibility", "visible");
    const values = plot.lines.map(({ name, values }) => `${name} ${formatShort(values[index] ?? 0)}`);
    reading.textContent = `${plot.describeX(index)}: ${values.join(", ")}`;
  };
  svg.addEventListener("pointermove", read);
  return h("figure", { class: "plot-box" }, svg, h("figcaption", {}, renderLegend(plot), reading));
}

function renderLegend({ lines, markName }: LinePlot): HTMLElement {
  return h(
    "span",
    { class: "legend" },
    ...lines.map(({ name, className }) => h("span", {}, h("i", { class: `swatch ${className}` }), name)),
    markName !== undefined && h("span", {}, h("i", { class: "swatch mark" }), markName),
  );
}

export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly says: string;
}

const BARS_HEIGHT = 170;

export function drawBars(label: string, bars: readonly Bar[]): HTMLElement {
  const top = niceCeiling(Math.max(1, ...bars.map(({ value }) => value)));
  const toY = (value: number): number => BARS_HEIGHT - BOTTOM - ((BARS_HEIGHT - TOP - BOTTOM) * value) / top;
  const slot = (WIDTH - LEFT - RIGHT) / Math.max(1, bars.length);
  const width = Math.max(1, Math.min(28, slot * 0.8));
  const every = Math.ceil(bars.length / 8);
  const svg = s(
    "svg",
    { class: "plot", viewBox: `0 0 ${WIDTH} ${BARS_HEIGHT}`, role: "img", "aria-label": label },
    ...drawGrid(top, toY),
    ...bars.flatMap(({ name, value, says }, index) => {
      const x = LEFT + slot * (index + 0.5);
      const bar = s(
        "rect",
        { class: "plot-bar", x: x - width / 2, y: toY(value), width, height: toY(0) - toY(value), rx: 2 },
        s("title", {}, says),
      );
      const text = s("text", { class: "plot-text", x, y: BARS_HEIGHT - 6, "text-anchor": "middle" }, name);
      return index % every === 0 ? [bar, text] : [bar];
    }),
  );
  return h("figure", { class: "plot-box" }, svg);
}

function drawGrid(top: number, toY: (value: number) => number): SVGElement[] {
  return Array.from({ length: GRID_LINES + 1 }, (_, index) => (top * index) / GRID_LINES).flatMap((value) => [
    s("line", { class: "plot-grid", x1: LEFT, x2: WIDTH - RIGHT, y1: toY(value), y2: toY(value) }),
    s(
      "text",
      { class: "plot-text", x: LEFT - 8, y: toY(value) + 4, "text-anchor": "end" },
      formatShort(value),
    ),
  ]);
}

const anchorOf = (index: number, count: number): string =>
  index === 0 ? "start" : index === count - 1 ? "end" : "middle";

/** The next number that reads well on an axis of four steps. */
export function niceCeiling(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].find((some) => value <= some * unit);
  return (step ?? 10) * unit;
}

export function nearest(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - (sorted[low - 1] ?? 0) < (sorted[low] ?? 0) - value ? low - 1 : low;
}
