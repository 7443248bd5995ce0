/**
 * Graph: all summaries of a conversation, by depth and by what they cover. Wheel and drag zoom and pan; a click shows the summary, what it
 * was made from and what was made from it. Arrow keys walk along the graph.
 */
import { readGraph, readSummary } from "../api.ts";
import type { Graph, SummaryNode } from "../api.ts";
import { Canvas, colourOfDepth, readColours } from "../canvas.ts";
import type { Surface } from "../canvas.ts";
import { fill, h, textNodes } from "../dom.ts";
import { countOf, formatCount, formatDay, formatFactor, formatShort, formatTime } from "../format.ts";
import { placeGraph } from "../graph-layout.ts";
import type { Placed, PlacedNode } from "../graph-layout.ts";
import { renderBlocks } from "../message.ts";
import { linkMessage, linkSummary, renderFailure, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";

const GAP_PX = 1.5;
const AXIS_PX = 24;
const TAIL_PX = 22;
const MAX_ROW_PX = 110;
/** Beyond this many in view, lines between them are only noise. */
const MAX_EDGES = 3_000;
const SHOWN_MESSAGES = 200;

export const openGraph = (conversationId: number, selected: string | null): View =>
  new GraphView(conversationId, selected);

class GraphView implements View {
  readonly element: HTMLElement;
  readonly #id: number;
  readonly #canvas: Canvas;
  readonly #detail = h("aside", { class: "detail", "aria-live": "polite", "aria-label": "Summary" });
  readonly #head = h("div", { class: "toolbar" });
  readonly #tip = h("div", { class: "tip", role: "status", hidden: true });
  #graph: Graph | null = null;
  #placed: Placed = placeGraph([]);
  #sources = new Map<string, string[]>();
  #derived = new Map<string, string[]>();
  #selected: string | null;
  #hovered: string | null = null;
  /** Messages at the left edge, and pixels a message. */
  #left = 0;
  #scale = 0;
  #near = new Set<string>();

  constructor(conversationId: number, selected: string | null) {
    this.#id = conversationId;
    this.#selected = selected;
    this.#canvas = new Canvas(
      "Graph of summaries. Arrow keys move between summaries, plus and minus zoom.",
      "graph",
      (surface) => this.#draw(surface),
    );
    this.#listen(this.#canvas.element);
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Graph" },
      this.#head,
      h(
        "div",
        { class: "fill split" },
        h("div", { class: "graph-box" }, this.#canvas.element, this.#tip),
        this.#detail,
      ),
    );
    fill(this.#detail, renderLoading("summaries"));
    void this.#load();
  }

  async #load(): Promise<void> {
    try {
      const graph = await readGraph(this.#id);
      this.#graph = graph;
      this.#placed = placeGraph(graph.nodes);
      this.#sources = groupEdges(graph.edges);
      this.#derived = groupEdges(graph.edges.map(([summary, source]) => [source, summary]));
      this.#renderHead();
      this.#select(this.#selected ?? null, this.#selected !== null);
      this.#canvas.update();
    } catch (error) {
      fill(this.#detail, renderFailure(error));
    }
  }

  #renderHead(): void {
    const { nodes } = this.#placed;
    const deepest = Math.max(-1, ...this.#placed.depths);
    const button = (label: string, title: string, work: () => void): HTMLElement =>
      h("button", { type: "button", title, "aria-label": title, onclick: work }, label);
    fill(
      this.#head,
      h("h1", {}, "Summaries"),
      h(
        "span",
        { class: "faint" },
        nodes.length === 0
          ? "nothing is folded yet"
          : `${countOf(nodes.length, "summary", "summaries")} over ${countOf(this.#placed.foldedWidth, "message")}`,
      ),
      h(
        "span",
        { class: "legend" },
        ...Array.from({ length: deepest + 1 }, (_, depth) =>
          h("span", {}, h("i", { class: `swatch depth-${Math.min(5, depth)}` }), `depth ${depth}`),
        ),
        h("span", {}, h("i", { class: "swatch hollow" }), "stand-in"),
      ),
      h("span", { class: "grow" }),
      button("−", "Zoom out (-)", () => this.#zoom(1 / 1.5)),
      button("+", "Zoom in (+)", () => this.#zoom(1.5)),
      button("Fit", "Show all (0)", () => this.#fit()),
    );
  }

  get #totalWidth(): number {
    const { conversation } = this.#graph ?? {};
    return Math.max(1, this.#placed.foldedWidth, conversation?.messages ?? 0);
  }

  #fit(): void {
    this.#left = 0;
    this.#scale = 0;
    this.#canvas.update();
  }

  #zoom(factor: number, atPx = this.#canvas.element.clientWidth / 2): void {
    const before = this.#left + atPx / this.#scale;
    const least = this.#canvas.element.clientWidth / this.#totalWidth;
    this.#scale = Math.min(200, Math.max(least, this.#scale * factor));
    this.#pan(before - atPx / this.#scale - this.#left);
  }

  #pan(messages: number): void {
    const seen = this.#canvas.element.clientWidth / this.#scale;
    this.#left = Math.max(0, Math.min(this.#totalWidth - seen, this.#left + messages));
    this.#canvas.update();
  }

  #rowHeight(height: number): number {
    return Math.min(MAX_ROW_PX, (height - AXIS_PX - TAIL_PX) / Math.max(1, this.#placed.rows.length));
  }

  #draw({ pen, width, height }: Surface): void {
    if (this.#graph === null) return;
    if (this.#scale === 0) this.#scale = width / this.#totalWidth;
    const colours = readColours();
    const rowHeight = this.#rowHeight(height);
    const base = height - AXIS_PX - TAIL_PX;
    const seen = this.#placed.nodes.filter(
      ({ x, width: w }) => x + w >= this.#left && x <= this.#left + width / this.#scale,
    );
    const isChosen = this.#near.size > 0;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const placed of seen) {
      const box = this.#boxOf(placed, rowHeight, base);
      const isNear = this.#near.has(placed.node.summaryId);
      const colour = colourOfDepth(colours, placed.node.depth);
      pen.globalAlpha = isChosen && !isNear ? 0.28 : placed.node.state === "cover" ? 1 : 0.75;
      if (placed.node.state === "cover") {
        pen.fillStyle = colour;
        pen.fillRect(box.x, box.y, box.width, box.height);
      } else {
        pen.strokeStyle = colour;
        pen.lineWidth = 1.5;
        pen.strokeRect(box.x + 0.75, box.y + 0.75, Math.max(0.5, box.width - 1.5), box.height - 1.5);
      }
      if (placed.node.summaryId === this.#selected || placed.node.summaryId === this.#hovered) {
        pen.globalAlpha = 1;
        pen.strokeStyle = colours.text;
        pen.lineWidth = 2;
        pen.strokeRect(box.x, box.y, box.width, box.height);
      }
      this.#label(pen, placed, box, colours);
    }
    pen.globalAlpha = 1;
    if (seen.length <= MAX_EDGES) this.#drawEdges(pen, seen, rowHeight, base, colours.line);
    this.#drawTail(pen, width, base, colours);
    this.#drawAxis(pen, width, height, colours.faint);
  }

  #label(
    pen: CanvasRenderingContext2D,
    { node }: PlacedNode,
    box: Box,
    colours: ReturnType<typeof readColours>,
  ): void {
    if (box.width < 58 || box.height < 14) return;
    pen.fillStyle = node.state === "cover" ? colours.onDepth : colours.text;
    pen.save();
    pen.beginPath();
    pen.rect(box.x, box.y, box.width, box.height);
    pen.clip();
    pen.fillText(`${formatShort(node.messages)} msgs`, box.x + 6, box.y + Math.min(box.height / 2, 13));
    if (box.height >= 34) pen.fillText(`${formatShort(node.tokens)} tokens`, box.x + 6, box.y + 28);
    pen.restore();
  }

  /** Between a summary and each of its sources, in the gap between the rows. */
  #drawEdges(
    pen: CanvasRenderingContext2D,
    seen: readonly PlacedNode[],
    rowHeight: number,
    base: number,
    colour: string,
  ): void {
    for (const placed of seen) {
      const from = this.#boxOf(placed, rowHeight, base);
      for (const id of this.#sources.get(placed.node.summaryId) ?? []) {
        const source = this.#placed.byId.get(id);
        if (source === undefined) continue;
        const to = this.#boxOf(source, rowHeight, base);
        const isNear = this.#near.has(id) && this.#near.has(placed.node.summaryId);
        if (from.width < 4 && !isNear) continue;
        pen.strokeStyle = isNear ? readColours().accent : colour;
        pen.lineWidth = isNear ? 2 : 1;
        const x = to.x + to.width / 2;
        pen.beginPath();
        pen.moveTo(Math.max(from.x + 2, Math.min(from.x + from.width - 2, x)), from.y + from.height);
        pen.lineTo(x, to.y);
        pen.stroke();
      }
    }
  }

  #boxOf({ x, width, row }: PlacedNode, rowHeight: number, base: number): Box {
    const gap = Math.min(10, rowHeight * 0.22);
    const left = (x - this.#left) * this.#scale;
    return {
      x: left,
      width: Math.max(0.75, width * this.#scale - (width * this.#scale > 4 ? GAP_PX : 0)),
      y: base - (row + 1) * rowHeight + gap,
      height: Math.max(2, rowHeight - gap),
    };
  }

  /** The messages themselves: under summaries, and after them as they are. */
  #drawTail(
    pen: CanvasRenderingContext2D,
    width: number,
    base: number,
    colours: ReturnType<typeof readColours>,
  ): void {
    const folded = (this.#placed.foldedWidth - this.#left) * this.#scale;
    pen.globalAlpha = 0.3;
    pen.fillStyle = colours.message;
    pen.fillRect(0, base + 4, Math.min(width, folded), TAIL_PX - 8);
    pen.globalAlpha = 1;
    pen.fillRect(
      Math.max(0, folded),
      base + 4,
      Math.max(0, (this.#totalWidth - this.#left) * this.#scale - Math.max(0, folded)),
      TAIL_PX - 8,
    );
    pen.fillStyle = colours.text;
    if (folded > 150)
      pen.fillText(`${formatCount(this.#placed.foldedWidth)} messages, folded`, 6, base + TAIL_PX / 2);
    if (width - folded > 90) {
      pen.fillStyle = colours.onDepth;
      pen.fillText(
        `${formatCount(this.#totalWidth - this.#placed.foldedWidth)} as they are`,
        Math.max(0, folded) + 6,
        base + TAIL_PX / 2,
      );
    }
  }

  #drawAxis(pen: CanvasRenderingContext2D, width: number, height: number, colour: string): void {
    const leaves = this.#placed.rows[0] ?? [];
    pen.fillStyle = colour;
    let free = 0;
    for (const { node, x } of leaves) {
      const left = (x - this.#left) * this.#scale;
      if (left < free || left > width - 70) continue;
      pen.fillText(formatDay(node.earliestAt), left + 2, height - AXIS_PX / 2);
      free = left + 110;
    }
  }

  #listen(canvas: HTMLCanvasElement): void {
    let drag: { x: number; moved: boolean } | null = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#pan(event.deltaX / this.#scale);
      else this.#zoom(Math.exp(-event.deltaY * 0.002), event.offsetX);
    });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drag === null) return this.#hover(event);
      const by = event.clientX - drag.x;
      if (Math.abs(by) > 2) drag.moved = true;
      drag.x = event.clientX;
      this.#pan(-by / this.#scale);
    });
    canvas.addEventListener("pointerup", (event) => {
      const hit = this.#hit(event.offsetX, event.offsetY);
      if (drag !== null && !drag.moved) this.#select(hit?.node.summaryId ?? null, false);
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.#hovered = null;
      this.#tip.hidden = true;
      this.#canvas.update();
    });
    canvas.addEventListener("keydown", (event) => {
      if (this.#walk(event.key)) event.preventDefault();
    });
  }

  #hit(x: number, y: number): PlacedNode | null {
    const height = this.#canvas.element.clientHeight;
    const rowHeight = this.#rowHeight(height);
    const row = Math.floor((height - AXIS_PX - TAIL_PX - y) / rowHeight);
    const at = this.#left + x / this.#scale;
    return (
      (this.#placed.rows[row] ?? []).findLast(
        (placed) => placed.x <= at && at <= placed.x + Math.max(placed.width, 3 / this.#scale),
      ) ?? null
    );
  }

  #hover(event: PointerEvent): void {
    const hit = this.#hit(event.offsetX, event.offsetY);
    this.#hovered = hit?.node.summaryId ?? null;
    this.#tip.hidden = hit === null;
    if (hit) {
      const { node } = hit;
      fill(
        this.#tip,
        h("b", {}, node.summaryId),
        h("br"),
        `depth ${node.depth}, ${countOf(node.messages, "message")}, ${formatCount(node.tokens)} of ${formatCount(node.sourceTokens)} tokens`,
        h("br"),
        `${formatTime(node.earliestAt)} to ${formatTime(node.latestAt)}`,
      );
      this.#tip.style.left = `${Math.min(event.offsetX + 12, this.#canvas.element.clientWidth - 260)}px`;
      this.#tip.style.top = `${Math.max(4, event.offsetY - 70)}px`;
    }
    this.#canvas.update();
  }

  #walk(key: string): boolean {
    if (key === "+" || key === "=") this.#zoom(1.5);
    else if (key === "-") this.#zoom(1 / 1.5);
    else if (key === "0") this.#fit();
    else {
      const next = this.#neighbour(key);
      if (next === undefined) return false;
      this.#select(next, true);
    }
    return true;
  }

  #neighbour(key: string): string | undefined {
    const placed = this.#placed.byId.get(this.#selected ?? "");
    if (placed === undefined)
      return key.startsWith("Arrow") ? this.#placed.rows.at(-1)?.[0]?.node.summaryId : undefined;
    const row = this.#placed.rows[placed.row] ?? [];
    const at = row.indexOf(placed);
    if (key === "ArrowRight") return row[at + 1]?.node.summaryId;
    if (key === "ArrowLeft") return row[at - 1]?.node.summaryId;
    if (key === "ArrowUp") return this.#derived.get(placed.node.summaryId)?.[0];
    return key === "ArrowDown" ? this.#sources.get(placed.node.summaryId)?.[0] : undefined;
  }

  #select(id: string | null, isBroughtIntoView: boolean): void {
    this.#selected = id;
    this.#near = new Set(id === null ? [] : [...reach(id, this.#derived), ...reach(id, this.#sources)]);
    const placed = id === null ? undefined : this.#placed.byId.get(id);
    if (placed && isBroughtIntoView) this.#bringIntoView(placed);
    this.#canvas.update();
    if (id === null)
      return fill(
        this.#detail,
        h(
          "p",
          { class: "faint" },
          "Click a summary to see what it says, what it was made from, and the way to the root.",
        ),
      );
    const show = (summary: SummaryNode): void => {
      if (this.#selected === id) fill(this.#detail, ...renderSummary(summary));
    };
    void whenRead(readSummary(id), show, (failure) => fill(this.#detail, failure));
  }

  #bringIntoView({ x, width }: PlacedNode): void {
    const seen = this.#canvas.element.clientWidth / (this.#scale || 1);
    if (this.#scale > 0 && (x < this.#left || x + width > this.#left + seen))
      this.#pan(x + width / 2 - seen / 2 - this.#left);
  }

  refresh(): void {
    void this.#load();
  }

  press(key: string): boolean {
    return this.#walk(key);
  }

  close(): void {
    this.#canvas.close();
  }
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function groupEdges(edges: Graph["edges"]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [from, to] of edges) {
    const group = groups.get(from);
    if (group) group.push(to);
    else groups.set(from, [to]);
  }
  return groups;
}

/** Everything that can be reached from a summary along edges, itself included. */
function reach(id: string, edges: ReadonlyMap<string, readonly string[]>): Set<string> {
  const seen = new Set([id]);
  const pending = [id];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const other of edges.get(next) ?? []) {
      if (seen.has(other)) continue;
      seen.add(other);
      pending.push(other);
    }
  }
  return seen;
}

export function renderSummary(summary: SummaryNode): HTMLElement[] {
  const pair = (name: string, ...value: (Node | string)[]): HTMLElement =>
    h("div", {}, h("dt", {}, name), h("dd", {}, ...value));
  const links = <T>(ids: readonly T[], link: (id: T) => HTMLElement): Node[] => {
    const shown: Node[] = ids
      .slice(0, SHOWN_MESSAGES)
      .flatMap((id) => [link(id), document.createTextNode(" ")]);
    return ids.length > SHOWN_MESSAGES
      ? [...shown, document.createTextNode(`and ${formatCount(ids.length - SHOWN_MESSAGES)} more`)]
      : shown;
  };
  return [
    h("h2", { class: "id" }, summary.summaryId),
    h(
      "p",
      { class: "tags" },
      h("span", { class: `tag depth-${Math.min(5, summary.depth)}` }, `depth ${summary.depth}`),
      h("span", { class: "tag" }, summary.state === "cover" ? "in the fold" : summary.state),
      summary.isStale && h("span", { class: "tag warn" }, "stale"),
      summary.isRoot && h("span", { class: "tag" }, "root"),
    ),
    h(
      "dl",
      { class: "pairs" },
      pair(
        "Covers",
        `${countOf(summary.messages, "message")}, ${formatTime(summary.earliestAt)} to ${formatTime(summary.latestAt)}`,
      ),
      pair(
        "Size",
        `${formatCount(summary.tokens)} tokens for ${formatCount(summary.sourceTokens)} (${formatFactor(summary.sourceTokens, summary.tokens)})`,
      ),
      pair(
        "Written by",
        ...textNodes(`${summary.model} (${summary.level}), ${formatTime(summary.createdAt)}`),
      ),
      summary.derivedIds.length > 0
        ? pair("Part of", ...links(summary.derivedIds, linkSummary))
        : pair("Part of", "nothing above it"),
      summary.sourceIds.length > 0
        ? pair("Made from", ...links(summary.sourceIds, linkSummary))
        : pair("Made from", ...links(summary.messageIds, linkMessage)),
    ),
    h("div", { class: "content" }, ...renderBlocks(summary.content, null)),
  ];
}
