/** Small plots as SVG: lines over a number, bars over days. The label of each describes its data, for people who cannot see it. */
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
  /** Marked places on x, with their tooltips. */
  readonly marks?: readonly { readonly x: number; readonly says: string }[];
  readonly markName?: string;
  readonly describeX: (index: number) => string;
  readonly axis: readonly string[];
}

const MOST_WIDTH = 1200;
const LEAST_WIDTH = 320;
/** The margins beside a plot: the view's and the plot's own. */
const MARGINS_PX = 56;
const LABEL_PX = 92;
const LEFT = 58;
const RIGHT = 16;
const TOP = 16;
const BOTTOM = 32;
/** Lines of the grid above zero: as many as round steps need. */
const MOST_GRID_LINES = 6;
const LEAST_TOP = 4;

/** Drawn in pixels, so that text keeps its size on a narrow screen. */
const chooseWidth = (most = MOST_WIDTH): number =>
  Math.max(LEAST_WIDTH, Math.min(most, window.innerWidth - MARGINS_PX));

/** As many labels as fit, always including the first and the last. */
function thinOut(labels: readonly string[], width: number): string[] {
  const count = Math.max(2, Math.min(labels.length, Math.floor((width - LEFT) / LABEL_PX)));
  return Array.from(
    { length: count },
    (_, index) => labels[Math.round(((labels.length - 1) * index) / (count - 1))] ?? "",
  );
}

export function drawLines(plot: LinePlot): HTMLElement {
  const width = chooseWidth();
  const height = width < 700 ? 220 : 320;
  const axis = thinOut(plot.axis, width);
  const top = niceCeiling(
    Math.max(1, ...plot.lines.flatMap(({ values }) => values.reduce((a, b) => Math.max(a, b), 0))),
  );
  const firstX = plot.x[0] ?? 0;
  const lastX = plot.x.at(-1) ?? 1;
  const span = Math.max(1e-9, lastX - firstX);
  const toX = (x: number): number => LEFT + ((width - LEFT - RIGHT) * (x - firstX)) / span;
  const toY = (value: number): number => height - BOTTOM - ((height - TOP - BOTTOM) * value) / top;
  const cursor = s("line", { class: "plot-cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  const svg = s(
    "svg",
    { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": plot.label },
    ...drawGrid(top, toY, width),
    ...plot.lines.flatMap(({ className, values }) => {
      const points = values.map(
        (value, index) => `${toX(plot.x[index] ?? 0).toFixed(1)},${toY(value).toFixed(1)}`,
      );
      const base = `${toX(lastX)},${toY(0)} ${toX(firstX)},${toY(0)}`;
      return [
        s("polygon", { class: `plot-area ${className}`, points: `${points.join(" ")} ${base}` }),
        s("polyline", { class: `plot-line ${className}`, points: points.join(" ") }),
      ];
    }),
    ...(plot.marks ?? []).map(({ x, says }) =>
      s(
        "g",
        { class: "plot-mark" },
        s("title", {}, says),
        s("line", { x1: toX(x), x2: toX(x), y1: TOP, y2: height - BOTTOM }),
        s("path", { d: `M${toX(x) - 4},${height - BOTTOM + 8} h8 l-4,-7 z` }),
      ),
    ),
    ...axis.map((text, index) =>
      s(
        "text",
        {
          class: "plot-text",
          x: LEFT + ((width - LEFT - RIGHT) * index) / Math.max(1, axis.length - 1),
          y: height - 6,
          "text-anchor": anchorOf(index, axis.length),
        },
        text,
      ),
    ),
    cursor,
  );
  const reading = h("p", { class: "reading", "aria-live": "polite" }, " ");
  const read = (event: Event): void => {
    const box = svg.getBoundingClientRect();
    const x = (((event as MouseEvent).clientX - box.left) / box.width) * width;
    const index = nearest(plot.x, firstX + ((x - LEFT) / (width - LEFT - RIGHT)) * span);
    const at = toX(plot.x[index] ?? 0);
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, String(at));
    cursor.setAttribute("visibility", "visible");
    const values = plot.lines.map(({ name, values }) => `${name} ${formatShort(values[index] ?? 0)}`);
    reading.textContent = `${plot.describeX(index)}: ${values.join(", ")}`;
  };
  svg.addEventListener("pointermove", read);
  svg.addEventListener("pointerleave", () => cursor.setAttribute("visibility", "hidden"));
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

export interface BarPlot {
  readonly label: string;
  readonly bars: readonly Bar[];
  /** The value at the top; when absent, a round one above the highest bar. */
  readonly top?: number;
  /** Between two lines of the grid; a round one when absent. */
  readonly step?: number;
  readonly width?: number;
  readonly height?: number;
  readonly format?: (value: number) => string;
}

const BARS_HEIGHT = 190;
const MAX_BAR = 34;

export function drawBars({ label, bars, format = formatShort, ...size }: BarPlot): HTMLElement {
  const { height = BARS_HEIGHT } = size;
  const width = chooseWidth(size.width);
  const values = bars.map(({ value }) => value);
  const top = size.top ?? niceCeiling(Math.max(0, ...values), values.every(Number.isInteger));
  const toY = (value: number): number => height - BOTTOM - ((height - TOP - BOTTOM) * value) / top;
  const slot = (width - LEFT - RIGHT) / Math.max(1, bars.length);
  const barWidth = Math.max(1, Math.min(MAX_BAR, slot * 0.72));
  const every = Math.ceil(bars.length / (width / LABEL_PX));
  const svg = s(
    "svg",
    { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ...drawGrid(top, toY, width, format, size.step),
    ...bars.flatMap(({ name, value, says }, index) => {
      const x = LEFT + slot * (index + 0.5);
      const bar = s(
        "rect",
        {
          class: "plot-bar",
          x: x - barWidth / 2,
          y: toY(value),
          width: barWidth,
          height: Math.max(0, toY(0) - toY(value)),
          rx: Math.min(3, barWidth / 3),
        },
        s("title", {}, says),
      );
      const text = s("text", { class: "plot-text", x, y: height - 8, "text-anchor": "middle" }, name);
      return index % every === 0 ? [bar, text] : [bar];
    }),
  );
  return h("figure", { class: "plot-box" }, svg);
}

function drawGrid(
  top: number,
  toY: (value: number) => number,
  width: number,
  format: (value: number) => string = formatShort,
  step = stepOf(top),
): SVGElement[] {
  const lines = Math.round(top / step);
  return Array.from({ length: lines + 1 }, (_, index) => (top * index) / lines).flatMap((value) => [
    s("line", { class: "plot-grid", x1: LEFT, x2: width - RIGHT, y1: toY(value), y2: toY(value) }),
    s("text", { class: "plot-text", x: LEFT - 10, y: toY(value) + 4, "text-anchor": "end" }, format(value)),
  ]);
}

const anchorOf = (index: number, count: number): string =>
  index === 0 ? "start" : index === count - 1 ? "end" : "middle";

/** The smallest round step (1, 2 or 5 and zeros) that needs no more than six lines to get there. */
function stepOf(top: number): number {
  const unit = 10 ** Math.floor(Math.log10(top / MOST_GRID_LINES));
  const factor = [1, 2, 5, 10].find((some) => top / (some * unit) <= MOST_GRID_LINES + 1e-9);
  return (factor ?? 10) * unit;
}

/** The top of an axis: the first line of its grid that nothing is above. */
function niceCeiling(value: number, isWhole = true): number {
  // Fewer than four things have no parts worth a line; hours do.
  if (value === 0 || (isWhole && value <= LEAST_TOP)) return LEAST_TOP;
  const step = stepOf(value);
  return Math.ceil(value / step - 1e-9) * step;
}

function nearest(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - (sorted[low - 1] ?? 0) < (sorted[low] ?? 0) - value ? low - 1 : low;
}
