/**
 * Context: what a model gets for a budget. Each item is a block as large as its tokens and coloured by depth, with the reason why it is there.
 * Against what was shown before (another budget, or an earlier turn) it says what came, what went, and how much of the front stayed the same.
 */
import { readContext, readMessage, readSummary } from "../api.ts";
import type { ContextAnswer, ExplainedItem } from "../api.ts";
import { Canvas, colourOfDepth, readColours } from "../canvas.ts";
import type { Surface } from "../canvas.ts";
import { compareContexts } from "../context-diff.ts";
import type { ContextDiff } from "../context-diff.ts";
import { debounce, fill, h, textNodes } from "../dom.ts";
import {
  budgetOfSlider,
  countOf,
  formatCount,
  formatShare,
  formatShort,
  formatTime,
  sliderOfBudget,
} from "../format.ts";
import { renderMessage } from "../message.ts";
import { depthClass, renderCard, renderFailure, renderLoading } from "../view.ts";
import type { View } from "../view.ts";
import { VirtualList } from "../virtual-list.ts";
import { renderSummary } from "./graph.ts";

const START_BUDGET = 32_000;
const STRIP_ROWS = 5;
const STRIP_GAP = 4;
const ROW_PX = 38;

const MODES = {
  whole: "whole: everything that is not folded fits",
  tight: "tight: coarser where the budget ends",
  least: "least: only the newest user message and open tool calls fit",
};

export const openContext = (conversationId: number): View => new ContextView(conversationId);

class ContextView implements View {
  readonly element: HTMLElement;
  readonly #id: number;
  readonly #slider = h("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    "aria-label": "Budget in tokens",
  });
  readonly #budget = h("output", { class: "budget" });
  readonly #cards = h("div", {}, renderLoading("the context"));
  readonly #diff = h("p", { class: "diff", role: "status" });
  readonly #strip: Canvas;
  readonly #list = h("div", { class: "fill" });
  readonly #detail = h(
    "aside",
    { class: "detail", "aria-live": "polite", "aria-label": "Item" },
    h("p", { class: "faint" }, "Click a block or a row to read it."),
  );
  #context: ContextAnswer | null = null;
  #change: ContextDiff | null = null;
  #selected = -1;
  #asked = 0;

  constructor(conversationId: number) {
    this.#id = conversationId;
    this.#slider.value = String(sliderOfBudget(START_BUDGET));
    const load = debounce((budget: number) => void this.#load(budget), 90);
    this.#slider.addEventListener("input", () => {
      this.#showBudget(this.#chosen);
      load(this.#chosen);
    });
    this.#strip = new Canvas(
      "Items of the context in order, each as wide as its tokens",
      "strip",
      (surface) => this.#draw(surface),
    );
    this.#strip.element.addEventListener("click", (event) =>
      this.#select(this.#hit(event.offsetX, event.offsetY)),
    );
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Context" },
      h(
        "div",
        { class: "toolbar" },
        h("h1", {}, "Context"),
        h("label", { class: "slider" }, "2k", this.#slider, "1M"),
        this.#budget,
        ...[8_000, 32_000, 128_000, 200_000].map((budget) =>
          h("button", { type: "button", onclick: () => this.#choose(budget) }, formatShort(budget)),
        ),
      ),
      this.#cards,
      this.#strip.element,
      this.#diff,
      h("div", { class: "fill split" }, this.#list, this.#detail),
    );
    this.#showBudget(START_BUDGET);
    void this.#load(START_BUDGET);
  }

  get #chosen(): number {
    return budgetOfSlider(Number(this.#slider.value));
  }

  #choose(budget: number): void {
    this.#slider.value = String(sliderOfBudget(budget));
    this.#showBudget(budget);
    void this.#load(budget);
  }

  #showBudget(budget: number): void {
    this.#budget.value = `${formatCount(budget)} tokens`;
    this.#slider.setAttribute("aria-valuetext", this.#budget.value);
  }

  async #load(budget: number): Promise<void> {
    const asked = ++this.#asked;
    try {
      const context = await readContext(this.#id, budget);
      // The slider may have moved on while this was made.
      if (asked !== this.#asked) return;
      this.#change = this.#context === null ? null : compareContexts(this.#context.items, context.items);
      const before = this.#context;
      this.#context = context;
      this.#selected = -1;
      fill(this.#cards, renderTotals(context));
      fill(
        this.#diff,
        ...(before === null || this.#change === null ? [] : [describeDiff(before, context, this.#change)]),
      );
      this.#renderList(context.items);
      this.#strip.update();
    } catch (error) {
      fill(this.#cards, renderFailure(error));
    }
  }

  #renderList(items: readonly ExplainedItem[]): void {
    const largest = Math.max(1, ...items.map(({ tokens }) => tokens));
    const list = new VirtualList({
      label: "Items of the context",
      count: items.length,
      estimate: ROW_PX,
      render: (index) => this.#renderItem(items[index] as ExplainedItem, index, largest),
    });
    fill(this.#list, list.element);
    list.update();
  }

  #renderItem(item: ExplainedItem, index: number, largest: number): HTMLElement {
    const bar = h("i", { class: `bar ${depthClass(item.depth)}` });
    bar.style.width = `${Math.max(2, (100 * item.tokens) / largest)}%`;
    return h(
      "button",
      {
        type: "button",
        class: `item${index === this.#selected ? " chosen" : ""}${this.#change?.isNew[index] ? " is-new" : ""}`,
        onclick: () => this.#select(index),
      },
      h(
        "span",
        { class: "item-kind" },
        item.kind === "summary"
          ? `depth ${item.depth}`
          : item.kind === "message"
            ? (item.role ?? "message")
            : item.kind,
      ),
      h("span", { class: "item-id id" }, item.ids.join("…") || "–"),
      h("span", { class: "item-tokens number" }, formatCount(item.tokens)),
      h("span", { class: "item-bar" }, bar),
      h(
        "span",
        { class: "item-why faint", title: item.reason },
        item.messages === 1 ? null : `${formatShort(item.messages)} messages; `,
        ...textNodes(item.reason),
      ),
    );
  }

  /** Items flow through rows of equal length, like words through lines. */
  #draw({ pen, width, height }: Surface): void {
    const items = this.#context?.items ?? [];
    const colours = readColours();
    const rowHeight = (height - STRIP_GAP * (STRIP_ROWS - 1)) / STRIP_ROWS;
    this.#eachPiece(width, (index, row, x, pieceWidth) => {
      const y = row * (rowHeight + STRIP_GAP);
      pen.fillStyle = colourOfDepth(colours, items[index]?.depth ?? -1);
      pen.globalAlpha = items[index]?.kind === "range" ? 0.5 : 1;
      pen.fillRect(x, y, Math.max(0.6, pieceWidth - (pieceWidth > 3 ? 1 : 0)), rowHeight);
      if (index === this.#selected || this.#change?.isNew[index]) {
        pen.globalAlpha = 1;
        pen.fillStyle = index === this.#selected ? colours.text : colours.accent;
        pen.fillRect(x, y + rowHeight - 3, Math.max(0.6, pieceWidth - 1), 3);
      }
    });
    pen.globalAlpha = 1;
  }

  #eachPiece(width: number, visit: (index: number, row: number, x: number, width: number) => void): void {
    const { items = [], budgetTokens = 1 } = this.#context ?? {};
    const total = Math.max(
      1,
      items.reduce((sum, { tokens }) => sum + tokens, 0),
    );
    // What is free of the budget stays empty, unless the context is a small part of it.
    const perRow = Math.max(total, Math.min(budgetTokens, total * 1.6)) / STRIP_ROWS;
    let at = 0;
    for (const [index, { tokens }] of items.entries()) {
      for (let left = tokens; left > 0;) {
        const row = Math.min(STRIP_ROWS - 1, Math.floor(at / perRow + 1e-9));
        const room = row === STRIP_ROWS - 1 ? left : Math.max(1e-6, (row + 1) * perRow - at);
        const taken = Math.min(left, room);
        visit(index, row, ((at - row * perRow) / perRow) * width, (taken / perRow) * width);
        at += taken;
        left -= taken;
      }
    }
  }

  #hit(x: number, y: number): number {
    const { clientWidth, clientHeight } = this.#strip.element;
    const row = Math.floor(y / ((clientHeight + STRIP_GAP) / STRIP_ROWS));
    let found = -1;
    this.#eachPiece(clientWidth, (index, pieceRow, left, width) => {
      if (pieceRow === row && x >= left && x <= left + Math.max(width, 2)) found = index;
    });
    return found;
  }

  #select(index: number): void {
    const item = this.#context?.items[index];
    this.#selected = index;
    this.#strip.update();
    for (const row of this.#list.querySelectorAll(".vrow")) {
      row.firstElementChild?.classList.toggle(
        "chosen",
        Number(row.getAttribute("aria-posinset")) === index + 1,
      );
    }
    if (item) void this.#showItem(item);
  }

  async #showItem(item: ExplainedItem): Promise<void> {
    const head = [
      h(
        "p",
        { class: "tags" },
        h(
          "span",
          { class: `tag ${depthClass(item.depth)}` },
          item.kind === "summary" ? `depth ${item.depth}` : item.kind,
        ),
        h("span", { class: "tag" }, `${formatCount(item.tokens)} tokens`),
      ),
      h("p", {}, h("b", {}, "Why: "), ...textNodes(item.reason)),
      h(
        "p",
        { class: "faint" },
        `${formatTime(item.earliestAt)} to ${formatTime(item.latestAt)}, stands for ${countOf(item.messages, "message")}`,
      ),
    ];
    fill(this.#detail, ...head);
    try {
      // A line for a range may name the summary that could not be shown.
      const summaryId = item.summaryId ?? item.ids.find((id) => id.startsWith("sum_"));
      if (summaryId !== undefined)
        fill(this.#detail, ...head, ...renderSummary(await readSummary(summaryId)));
      else if (item.messageId !== null)
        fill(this.#detail, ...head, renderMessage((await readMessage(item.messageId)).message, null));
    } catch (error) {
      fill(this.#detail, ...head, renderFailure(error));
    }
  }

  refresh(): void {
    void this.#load(this.#chosen);
  }

  close(): void {
    this.#strip.close();
  }
}

function renderTotals(context: ContextAnswer): HTMLElement {
  const { items, estimatedTokens, budgetTokens, shownMessages } = context;
  const count = (kind: ExplainedItem["kind"]): number => items.filter((item) => item.kind === kind).length;
  const represented = items.reduce((sum, item) => sum + item.messages, 0);
  return h(
    "dl",
    { class: "cards small" },
    renderCard(
      "Used",
      formatShare(estimatedTokens, budgetTokens),
      `${formatCount(estimatedTokens)} of ${formatCount(budgetTokens)} tokens`,
    ),
    renderCard(
      "Stands for",
      countOf(represented, "message"),
      represented === shownMessages ? "all of them" : `of ${formatCount(shownMessages)}`,
    ),
    renderCard("Verbatim", formatCount(count("message")), `${formatCount(count("stub"))} cut short`),
    renderCard(
      "Summaries",
      formatCount(count("summary")),
      count("range") > 0 ? `${countOf(count("range"), "line")} for ranges` : null,
    ),
    renderCard("Mode", context.mode, MODES[context.mode].split(": ")[1] ?? ""),
    renderCard("Made in", `${context.tookMs.toFixed(1)} ms`, `front ${context.fingerprint.slice(0, 8)}`),
  );
}

function describeDiff(before: ContextAnswer, after: ContextAnswer, diff: ContextDiff): HTMLElement {
  const what =
    before.budgetTokens === after.budgetTokens
      ? "the turn before"
      : `${formatCount(before.budgetTokens)} tokens`;
  return h(
    "span",
    {},
    h("b", {}, `Against ${what}: `),
    `${formatCount(diff.added)} came, ${formatCount(diff.removed)} went, ${formatCount(diff.kept)} stayed; the front is the same for ${formatShort(diff.sharedTokens)} tokens (${formatShare(
      diff.sharedTokens,
      after.items.reduce((sum, { tokens }) => sum + tokens, 0),
    )}).`,
  );
}
