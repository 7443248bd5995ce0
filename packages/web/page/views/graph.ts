/**
 * Graph: all summaries of a conversation, by depth and by what they cover. Wheel and drag zoom and pan; a click shows the summary, its sources
 * and what was made from it. Arrow keys move along the graph. With a message, the path from it to the root is marked.
 */
import { readFirstWords, readGraph, readMessage, readSummary } from "../api.ts";
import type { Graph, SummaryNode } from "../api.ts";
import { renderAction } from "../action-dialog.ts";
import { Canvas } from "../canvas.ts";
import { renderCommand } from "../code.ts";
import { debounce, fill, h, textNodes } from "../dom.ts";
import type { Child } from "../dom.ts";
import { countOf, formatCount, formatFactor, formatShort, formatTime } from "../format.ts";
import { layOutGraph } from "../graph-layout.ts";
import type { GraphLayout, LayoutNode } from "../graph-layout.ts";
import { findAt, listLegible, paintGraph } from "../graph-painter.ts";
import type { Scene } from "../graph-painter.ts";
import { renderSummary } from "../summary-detail.ts";
import { ADDRESS_REST_MS, renderFailure, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";

const MAX_SCALE = 200;
const TIP_PX = 300;
const REST_MS = 3_000;
/** First words are loaded when the drawing has been still for this time, this many at once. */
const WORDS_REST_MS = 60;
const WORDS_AT_ONCE = 60;
const WORDS_CHARS = 1_000;
const TIP_CHARS = 160;

export const openGraph = (conversationId: number, selected: string | null, messageId: number | null): View =>
  new GraphView(conversationId, selected, messageId);

class GraphView implements View {
  readonly restMs = REST_MS;
  readonly element: HTMLElement;
  readonly #id: number;
  readonly #messageId: number | null;
  readonly #canvas: Canvas;
  readonly #detail = h("aside", {
    class: "detail",
    "aria-live": "polite",
    "aria-label": "Summary",
    tabindex: 0,
  });
  readonly #head = h("div", { class: "toolbar" });
  readonly #box: HTMLElement;
  readonly #tip = h("div", { class: "tip", role: "status", hidden: true });
  #graph: Graph | null = null;
  #placed: GraphLayout = layOutGraph([]);
  #sources = new Map<string, string[]>();
  #derived = new Map<string, string[]>();
  #selected: string | null;
  #hovered: string | null = null;
  #left = 0;
  #scale = 0;
  #near = new Set<string>();
  #pin: Scene["pin"] = null;
  readonly #words = new Map<string, string>();
  readonly #nameSelected = debounce(() => {
    if (this.element.isConnected)
      history.replaceState(history.state, "", `#${this.#selected ?? `/graph/${this.#id}`}`);
  }, ADDRESS_REST_MS);
  readonly #needWords = debounce(() => void this.#readWords(), WORDS_REST_MS);

  constructor(conversationId: number, selected: string | null, messageId: number | null) {
    this.#id = conversationId;
    this.#selected = selected;
    this.#messageId = messageId;
    this.#canvas = new Canvas(
      "Graph of summaries. Arrow keys move between summaries, plus and minus zoom.",
      "graph",
      (surface) => {
        if (this.#graph === null) return;
        if (this.#scale === 0) this.#scale = surface.width / this.#totalWidth;
        paintGraph(surface, this.#scene);
        this.#needWords();
      },
    );
    this.#listen(this.#canvas.element);
    this.#box = h("div", { class: "graph-box" }, this.#canvas.element, this.#tip);
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Graph" },
      this.#head,
      h("div", { class: "fill split" }, this.#box, this.#detail),
    );
    fill(this.#detail, renderLoading("summaries"));
    void this.#load();
  }

  get #scene(): Scene {
    return {
      placed: this.#placed,
      sources: this.#sources,
      totalWidth: this.#totalWidth,
      left: this.#left,
      scale: this.#scale,
      near: this.#near,
      selected: this.#selected,
      hovered: this.#hovered,
      pin: this.#pin,
      wordsOf: (id) => this.#words.get(id) ?? "",
    };
  }

  /** The first words of summaries that are legible at this size and not loaded yet. */
  async #readWords(): Promise<void> {
    const { clientWidth, clientHeight } = this.#canvas.element;
    const wanted = listLegible(this.#scene, clientWidth, clientHeight)
      .filter((id) => !this.#words.has(id))
      .slice(0, WORDS_AT_ONCE);
    if (wanted.length === 0) return;
    for (const id of wanted) this.#words.set(id, "");
    try {
      for (const [id, text] of Object.entries(await readFirstWords(wanted, WORDS_CHARS)))
        this.#words.set(id, text);
    } catch (error) {
      return fill(this.#detail, renderFailure(error));
    }
    // Drawing requests again those that did not fit in this round.
    if (this.element.isConnected) this.#canvas.update();
  }

  async #load(): Promise<void> {
    try {
      const graph = await readGraph(this.#id);
      const isKnown = this.#graph !== null && versionOf(this.#graph) === versionOf(graph);
      this.#graph = graph;
      // New messages only change the width of the unfolded part; what is being read stays.
      if (isKnown) return this.#canvas.update();
      this.#placed = layOutGraph(graph.nodes);
      this.#sources = groupEdges(graph.edges);
      this.#derived = groupEdges(graph.edges.map(([summary, source]) => [source, summary]));
      this.#renderHead();
      // Nothing to draw: the offer to fold uses the room.
      this.#box.hidden = graph.nodes.length === 0;
      this.element.classList.toggle("unfolded", graph.nodes.length === 0);
      const isGone = this.#selected !== null && !this.#placed.byId.has(this.#selected);
      if (this.#messageId !== null && this.#selected === null) await this.#showPath(this.#messageId);
      else this.#select(isGone ? null : this.#selected, this.#selected !== null);
      this.#canvas.update();
    } catch (error) {
      fill(this.#detail, renderFailure(error));
    }
  }

  /** From a message up to the root: its place, and every summary above it. */
  async #showPath(messageId: number): Promise<void> {
    const { message, path } = await readMessage(messageId);
    this.#pin = { x: this.#placed.xOf(message.row?.position ?? 0), name: `msg_${messageId}` };
    this.#select(path[0]?.summaryId ?? null, true);
    this.#near = new Set(path.map(({ summaryId }) => summaryId));
  }

  #renderHead(): void {
    const { nodes } = this.#placed;
    const deepest = Math.max(-1, ...this.#placed.depths);
    const button = (label: string, title: string, work: () => void): HTMLElement =>
      h("button", { type: "button", title, "aria-label": title, onclick: work }, label);
    fill(
      this.#head,
      h("h1", {}, "Graph"),
      h(
        "span",
        { class: "of" },
        ...textNodes(this.#graph?.conversation.heading ?? ""),
        nodes.length === 0
          ? ""
          : `: ${countOf(nodes.length, "summary", "summaries")} over ${countOf(this.#placed.foldedWidth, "message")}`,
      ),
      h(
        "span",
        { class: "legend" },
        ...Array.from({ length: deepest + 1 }, (_, depth) =>
          h("span", {}, h("i", { class: `swatch depth-${Math.min(5, depth)}` }), `depth ${depth}`),
        ),
        nodes.some(({ node }) => node.state === "reserve") &&
          h("span", {}, h("i", { class: "swatch hollow" }), "stand-in"),
      ),
      nodes.length > 0 &&
        h(
          "span",
          { class: "zoom" },
          button("−", "Zoom out (-)", () => this.#zoom(1 / 1.5)),
          button("+", "Zoom in (+)", () => this.#zoom(1.5)),
          button("Fit", "Fit all (0)", () => this.#fit()),
        ),
    );
  }

  get #totalWidth(): number {
    const { conversation } = this.#graph ?? {};
    return Math.max(1, this.#placed.foldedWidth, conversation?.shownMessages ?? 0);
  }

  #fit(): void {
    this.#left = 0;
    this.#scale = 0;
    this.#canvas.update();
  }

  #zoom(factor: number, atPx = this.#canvas.element.clientWidth / 2): void {
    const before = this.#left + atPx / this.#scale;
    const least = this.#canvas.element.clientWidth / this.#totalWidth;
    this.#scale = Math.min(MAX_SCALE, Math.max(least, this.#scale * factor));
    this.#pan(before - atPx / this.#scale - this.#left);
  }

  #pan(messages: number): void {
    const seen = this.#canvas.element.clientWidth / this.#scale;
    this.#left = Math.max(0, Math.min(this.#totalWidth - seen, this.#left + messages));
    this.#canvas.update();
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
      const hit = this.#hit(event);
      if (drag !== null && !drag.moved) this.#choose(hit?.node.summaryId ?? null, false);
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

  #hit({ offsetX, offsetY }: PointerEvent): LayoutNode | null {
    return findAt(this.#scene, offsetX, offsetY, this.#canvas.element.clientHeight);
  }

  #hover(event: PointerEvent): void {
    const hit = this.#hit(event);
    this.#tip.hidden = hit === null;
    if (hit) {
      const { node } = hit;
      const share = formatFactor(node.sourceTokens, node.tokens);
      fill(
        this.#tip,
        h("b", {}, node.summaryId),
        h("br"),
        `depth ${node.depth}, covers ${countOf(node.messages, "message")}`,
        h("br"),
        `${formatCount(node.tokens)} of ${formatCount(node.sourceTokens)} tokens (${share})`,
        h("br"),
        `${formatTime(node.earliestAt)} to ${formatTime(node.latestAt)}`,
        h("br"),
        ...textNodes((this.#words.get(node.summaryId) ?? "").slice(0, TIP_CHARS)),
      );
      this.#tip.style.left = `${Math.max(4, Math.min(event.offsetX + 14, this.#canvas.element.clientWidth - TIP_PX))}px`;
      this.#tip.style.top = `${Math.max(4, event.offsetY - 100)}px`;
    }
    const hovered = hit?.node.summaryId ?? null;
    if (hovered === this.#hovered) return;
    this.#hovered = hovered;
    this.#canvas.update();
  }

  #walk(key: string): boolean {
    if (key === "+" || key === "=") this.#zoom(1.5);
    else if (key === "-") this.#zoom(1 / 1.5);
    else if (key === "0") this.#fit();
    else {
      const next = this.#neighbour(key);
      if (next === undefined) return false;
      this.#choose(next, true);
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

  /** Chosen by the user: the marked message is dropped. */
  #choose(id: string | null, isBroughtIntoView: boolean): void {
    this.#pin = null;
    this.#select(id, isBroughtIntoView);
    this.#nameSelected();
  }

  #select(id: string | null, isBroughtIntoView: boolean): void {
    this.#selected = id;
    this.#near = new Set(id === null ? [] : [...reach(id, this.#derived), ...reach(id, this.#sources)]);
    const placed = id === null ? undefined : this.#placed.byId.get(id);
    if (placed && isBroughtIntoView) this.#bringIntoView(placed);
    this.#canvas.update();
    if (id === null && this.#placed.nodes.length === 0) return fill(this.#detail, ...this.#offerFold());
    if (id === null)
      return fill(
        this.#detail,
        h(
          "p",
          { class: "faint" },
          "Click a summary to see what it says, what it was made from, the messages under it, and the way to the root.",
        ),
      );
    const show = (summary: SummaryNode): void => {
      if (this.#selected === id) fill(this.#detail, ...renderSummary(summary, () => void this.#load()));
    };
    void whenRead(readSummary(id), show, (failure) => fill(this.#detail, failure));
  }

  /** What to do about an empty graph. */
  #offerFold(): Child[] {
    const { shownMessages = 0, shownTokens = 0 } = this.#graph?.conversation ?? {};
    const request = { action: "fold", conversationId: this.#id } as const;
    const button = renderAction(
      "Fold it …",
      () => request,
      () => void this.#load(),
    );
    return [
      h("h2", {}, "Nothing is folded yet"),
      h(
        "p",
        {},
        `The context holds all ${countOf(shownMessages, "message")} in full: ${formatShort(shownTokens)} tokens. `,
        "Folding replaces the older ones in the context by summaries. Every message stays in the archive, and every summary leads back to its messages.",
      ),
      ...(shownMessages === 0
        ? [h("p", { class: "faint" }, "Nothing to fold: no message is in the context.")]
        : button === null
          ? [
              h(
                "p",
                {},
                "This page is read-only. Start it with lcm web --write to fold here after a preview, or run:",
              ),
              renderCommand(`lcm compact --conversation ${this.#id} --budget 32k --force`),
            ]
          : [h("p", {}, "A preview shows what will be folded and what it costs."), button]),
    ];
  }

  #bringIntoView({ x, width }: LayoutNode): void {
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

const versionOf = ({ conversation: { foldRevision, summaries } }: Graph): string =>
  `${foldRevision} ${summaries}`;

function groupEdges(edges: Graph["edges"]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [from, to] of edges) {
    const group = groups.get(from);
    if (group) group.push(to);
    else groups.set(from, [to]);
  }
  return groups;
}

/** Everything reachable from a summary along edges, including itself. */
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
