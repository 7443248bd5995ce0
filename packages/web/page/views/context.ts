/**
 * Context: what a model gets for a budget. Each item is a block sized by tokens and coloured by depth, with the reason why it is there. Compared
 * with the turn before, and with another budget, it shows what was added, what was removed, and how much of the front stayed the same.
 */
import { compareContexts } from "../../src/context-diff.ts";
import type { ContextDiff } from "../../src/context-diff.ts";
import { readContext, readFirstWords, readMessage, readSummary, readTurns } from "../api.ts";
import type { ContextResult, ContextTurn, ExplainedItem } from "../api.ts";
import { debounce, fill, h, textNodes } from "../dom.ts";
import type { Child } from "../dom.ts";
import {
  budgetOfSlider,
  countOf,
  formatCount,
  formatShare,
  formatShort,
  formatTime,
  labelTimes,
  sliderOfBudget,
} from "../format.ts";
import { renderMessage } from "../message.ts";
import { drawBars } from "../plot.ts";
import { renderSummary } from "../summary-detail.ts";
import { TokenStrip } from "../token-strip.ts";
import {
  ADDRESS_REST_MS,
  depthClass,
  linkMessage,
  renderCard,
  renderFailure,
  renderHead,
  renderLoading,
} from "../view.ts";
import type { View } from "../view.ts";
import { VirtualList } from "../virtual-list.ts";

const START_BUDGET = 32_000;
const BUDGETS = [8_000, 32_000, 128_000, 200_000, 1_000_000];
const ROW_PX = 38;
const REST_MS = 1_500;
const WORDS_AT_ONCE = 50;
/** A block that is at least this part of the whole may have room for words. */
const WIDE_PARTS = 40;

const MODES = {
  whole: "everything that is not folded fits",
  tight: "older parts are shown in less detail",
  least: "only the newest user message and open tool calls fit",
};

/** `query`: the budget, and the item that is read. `heading`: what lists call the conversation, when it is known. */
export function openContext(conversationId: number, query: URLSearchParams, heading: string): View {
  const asked = Number(query.get("budget") ?? START_BUDGET);
  const budget = Number.isSafeInteger(asked) && asked > 0 ? asked : START_BUDGET;
  return new ContextView(conversationId, budget, query.get("item"), heading);
}

class ContextView implements View {
  readonly restMs = REST_MS;
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
  readonly #turns = h("div", { class: "turns" });
  readonly #diff = h("p", { class: "diff", role: "status" });
  readonly #strip = new TokenStrip((index) => this.#select(index));
  readonly #list = h("div", { class: "fill" });
  readonly #detail = h(
    "aside",
    { class: "detail", "aria-live": "polite", "aria-label": "Item", tabindex: 0 },
    h("p", { class: "faint" }, "Click a block or a row to read it."),
  );
  readonly #words = new Map<string, string>();
  /** Ids whose first words are read next. */
  readonly #unread: string[] = [];
  #context: ContextResult | null = null;
  #change: ContextDiff | null = null;
  #newest: ReadonlySet<string> = new Set();
  #selected = -1;
  #asked = 0;
  /** The item that the address names, until it was found. */
  #wanted: string | null;

  constructor(conversationId: number, budget: number, item: string | null, heading: string) {
    this.#id = conversationId;
    this.#wanted = item;
    const load = debounce((chosen: number) => void this.#load(chosen), 90);
    this.#slider.addEventListener("input", () => {
      this.#showBudget(this.#chosen);
      load(this.#chosen);
    });
    this.element = h(
      "section",
      { class: "view column", "aria-label": "Context" },
      renderHead("Context", ...textNodes(heading)),
      h(
        "div",
        { class: "toolbar" },
        h("span", { class: "slider" }, "2k", this.#slider, "1M"),
        this.#budget,
        ...BUDGETS.map((some) =>
          h("button", { type: "button", onclick: () => this.#choose(some) }, formatShort(some)),
        ),
      ),
      this.#cards,
      this.#strip.element,
      this.#diff,
      this.#turns,
      h("div", { class: "fill split" }, this.#list, this.#detail),
    );
    this.#choose(budget);
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
      // The slider may have moved while this was loading.
      if (asked !== this.#asked) return;
      const before = this.#context;
      this.#change = before === null ? null : compareContexts(before.items, context.items);
      const chosen = keyOf(before?.items[this.#selected]);
      this.#context = context;
      this.#selected = chosen === null ? -1 : context.items.findIndex((item) => keyOf(item) === chosen);
      fill(this.#cards, h("p", { class: "sentence" }, explainSize(context)), renderTotals(context));
      const isOther = before !== null && before.budgetTokens !== context.budgetTokens;
      fill(this.#diff, isOther && this.#change !== null && describeChange(before, context, this.#change));
      this.#renderList(context.items);
      this.#remember();
      this.#showStrip();
      this.#openWanted(context.items);
      // The widest blocks have room for words, wherever the list is.
      const wide = context.items.filter(({ tokens }) => tokens * WIDE_PARTS >= context.estimatedTokens);
      this.#needWords(wide);
      await this.#loadTurns(budget, asked);
    } catch (error) {
      fill(this.#cards, renderFailure(error));
    }
  }

  /** Budget and item are in the address, without a step of their own in the history. */
  readonly #remember = debounce(() => {
    if (!this.element.isConnected || !location.hash.startsWith(`#/context/${this.#id}`)) return;
    const item = this.#context?.items[this.#selected]?.ids[0];
    const query = new URLSearchParams({ budget: String(this.#context?.budgetTokens ?? START_BUDGET) });
    if (item !== undefined) query.set("item", item);
    history.replaceState(history.state, "", `#/context/${this.#id}?${query}`);
  }, ADDRESS_REST_MS);

  #openWanted(items: readonly ExplainedItem[]): void {
    const wanted = this.#wanted;
    this.#wanted = null;
    const index = wanted === null ? -1 : items.findIndex(({ ids }) => ids[0] === wanted);
    if (index >= 0) this.#select(index);
  }

  /** How the context came about, turn by turn; slower than the context itself, and therefore after it. */
  async #loadTurns(budget: number, asked: number): Promise<void> {
    const { turns } = await readTurns(this.#id, budget);
    if (asked !== this.#asked) return;
    this.#newest = new Set(turns.at(-1)?.newIds ?? []);
    fill(this.#turns, ...renderTurns(turns));
    this.#showStrip();
    for (const row of this.#list.querySelectorAll<HTMLElement>(".item")) this.#markNew(row);
  }

  #showStrip(): void {
    const { items = [], budgetTokens = 1 } = this.#context ?? {};
    const isNew = (index: number): boolean => items[index]?.ids.some((id) => this.#newest.has(id)) ?? false;
    const wordsOf = (index: number): string => this.#words.get(items[index]?.ids[0] ?? "") ?? "";
    this.#strip.show({ items, budgetTokens, isNew, wordsOf, selected: this.#selected });
  }

  #markNew(row: HTMLElement): void {
    const ids = (row.dataset["ids"] ?? "").split(" ");
    row.classList.toggle(
      "is-new",
      ids.some((id) => this.#newest.has(id)),
    );
  }

  #renderList(items: readonly ExplainedItem[]): void {
    const largest = Math.max(1, ...items.map(({ tokens }) => tokens));
    const list = new VirtualList({
      label: "Items of the context",
      count: items.length,
      estimate: ROW_PX,
      render: (index) => this.#renderItem(items[index] as ExplainedItem, index, largest),
      onRange: (first, last) => this.#needWords(items.slice(first, last + 1)),
    });
    fill(this.#list, list.element);
    list.update();
  }

  /** The first words of the items in view; what is needed at the same time is read together. */
  #needWords(items: readonly ExplainedItem[]): void {
    const wanted = items.flatMap(({ ids }) => ids.slice(0, 1)).filter((id) => !this.#words.has(id));
    if (wanted.length === 0) return;
    for (const id of wanted) this.#words.set(id, "");
    if (this.#unread.length === 0) queueMicrotask(() => void this.#readWords(this.#unread.splice(0)));
    this.#unread.push(...wanted);
  }

  async #readWords(wanted: readonly string[]): Promise<void> {
    for (let at = 0; at < wanted.length; at += WORDS_AT_ONCE) {
      try {
        const words = await readFirstWords(wanted.slice(at, at + WORDS_AT_ONCE));
        for (const [id, text] of Object.entries(words)) this.#words.set(id, text);
      } catch (error) {
        return fill(this.#diff, renderFailure(error));
      }
    }
    for (const cell of this.#list.querySelectorAll<HTMLElement>("[data-words]"))
      fill(cell, ...textNodes(this.#words.get(cell.dataset["words"] ?? "") ?? ""));
    this.#showStrip();
  }

  #renderItem(item: ExplainedItem, index: number, largest: number): HTMLElement {
    const bar = h("i", { class: `bar ${depthClass(item.depth)}` });
    bar.style.width = `${Math.max(2, (100 * item.tokens) / largest)}%`;
    const row = h(
      "button",
      {
        type: "button",
        class: `item${index === this.#selected ? " chosen" : ""}`,
        "data-ids": item.ids.join(" "),
        onclick: () => this.#select(index),
      },
      h("span", { class: "item-kind" }, h("i", { class: `dot ${depthClass(item.depth)}` }), nameKind(item)),
      h(
        "span",
        { class: "item-words", "data-words": item.ids[0] ?? "" },
        ...textNodes(this.#words.get(item.ids[0] ?? "") ?? ""),
      ),
      h("span", { class: "item-tokens number" }, formatCount(item.tokens)),
      h("span", { class: "item-bar" }, bar),
      h(
        "span",
        { class: "item-why faint", title: item.reason },
        item.messages === 1 ? null : `${formatShort(item.messages)} messages; `,
        ...textNodes(item.reason),
      ),
      h("span", { class: "item-id id" }, item.ids.join("…") || "–"),
    );
    this.#markNew(row);
    return row;
  }

  #select(index: number): void {
    const item = this.#context?.items[index];
    this.#selected = index;
    this.#remember();
    this.#showStrip();
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
        h("span", { class: `tag ${depthClass(item.depth)}` }, nameKind(item)),
        h("span", { class: "tag" }, `${formatCount(item.tokens)} tokens`),
      ),
      h("p", {}, h("b", {}, "Why: "), ...textNodes(item.reason)),
      h("p", { class: "faint" }, `Covers ${countOf(item.messages, "message")}.`),
    ];
    fill(this.#detail, ...head);
    try {
      // A range line may name the summary that could not be shown.
      const summaryId = item.summaryId ?? item.ids.find((id) => id.startsWith("sum_"));
      if (summaryId !== undefined)
        fill(this.#detail, ...head, ...renderSummary(await readSummary(summaryId), () => this.refresh()));
      else if (item.messageId !== null)
        fill(this.#detail, ...head, renderMessage((await readMessage(item.messageId)).message, null));
    } catch (error) {
      fill(this.#detail, ...head, renderFailure(error));
    }
  }

  refresh(): void {
    void this.#load(this.#chosen);
  }

  press(key: string): boolean {
    const last = (this.#context?.items.length ?? 0) - 1;
    if (key === "ArrowRight" || key === "ArrowDown") this.#select(Math.min(last, this.#selected + 1));
    else if (key === "ArrowLeft" || key === "ArrowUp") this.#select(Math.max(0, this.#selected - 1));
    else return false;
    return true;
  }

  close(): void {
    this.#strip.close();
  }
}

const keyOf = (item: ExplainedItem | undefined): string | null =>
  item === undefined ? null : `${item.kind} ${item.ids.join(" ")}`;

const nameKind = ({ kind, depth, role }: ExplainedItem): string =>
  kind === "summary" ? `depth ${depth}` : kind === "message" ? (role ?? "message") : kind;

/** Explains its size in one sentence. */
function explainSize({ items, estimatedTokens, budgetTokens, shownMessages }: ContextResult): string {
  const folded = items.filter(({ kind }) => kind === "summary" || kind === "range");
  const covered = folded.reduce((sum, { messages }) => sum + messages, 0);
  const size = `The model gets ${formatCount(estimatedTokens)} of at most ${formatCount(budgetTokens)} tokens`;
  if (folded.length === 0)
    return `${size}: all ${countOf(shownMessages, "message")}, because none of them is folded.`;
  const count = (kind: ExplainedItem["kind"]): number => items.filter((item) => item.kind === kind).length;
  const names = [
    ...(count("summary") > 0 ? [countOf(count("summary"), "summary", "summaries")] : []),
    ...(count("range") > 0
      ? [`${countOf(count("range"), "line")} that only ${count("range") === 1 ? "names" : "name"} a range`]
      : []),
  ].join(" and ");
  const cut = count("stub") > 0 ? ` (${formatCount(count("stub"))} cut short)` : "";
  return `${size}: ${names} for ${countOf(covered, "older message")}, and ${countOf(shownMessages - covered, "newer one")}${cut}.`;
}

function renderTotals(context: ContextResult): HTMLElement {
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
      "Covers",
      formatCount(represented),
      represented === shownMessages ? "messages: all of them" : `of ${formatCount(shownMessages)} messages`,
    ),
    renderCard("Verbatim", formatCount(count("message")), `${formatCount(count("stub"))} cut short`),
    renderCard(
      "Summaries",
      formatCount(count("summary")),
      count("range") > 0 ? `and ${countOf(count("range"), "line")} for ranges` : "cover the rest",
    ),
    renderCard("Mode", context.mode, MODES[context.mode]),
    renderCard("Made in", `${context.tookMs.toFixed(1)} ms`, `front ${context.fingerprint.slice(0, 8)}`),
  );
}

function describeChange(before: ContextResult, after: ContextResult, diff: ContextDiff): HTMLElement {
  const total = after.items.reduce((sum, { tokens }) => sum + tokens, 0);
  return h(
    "span",
    {},
    h("b", {}, `Compared with ${formatCount(before.budgetTokens)} tokens: `),
    `${formatCount(diff.added)} added, ${formatCount(diff.removed)} removed, ${formatCount(diff.kept)} kept; the first ${formatShort(diff.sharedTokens)} tokens are the same (${formatShare(diff.sharedTokens, total)}).`,
  );
}

/** What the last turn changed, and how stable the front was over the last turns. */
function renderTurns(turns: readonly ContextTurn[]): Child[] {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const share = ({ sharedTokens, tokens }: ContextTurn): number => (100 * sharedTokens) / Math.max(1, tokens);
  const mean = turns.reduce((sum, turn) => sum + share(turn), 0) / turns.length;
  const times = labelTimes(turns.map(({ at }) => at));
  return [
    h(
      "div",
      { class: "turn-text" },
      h(
        "p",
        {},
        h("b", {}, "Since the previous turn: "),
        `${formatCount(last.added)} added, ${formatCount(last.removed)} removed. The turn began with `,
        linkMessage(last.messageId),
        "; what it added is marked.",
      ),
      h(
        "p",
        {},
        h("b", {}, "Prefix stability: "),
        `${formatShare(last.sharedTokens, last.tokens)} of the prompt stayed the same from its start, `,
        `${mean.toFixed(0)} % on average over ${countOf(turns.length, "turn")}. A provider's cache can keep that part.`,
      ),
    ),
    drawBars({
      label: `Share of the prompt that stayed the same from its start, for each of the last ${countOf(turns.length, "turn")}: ${turns.map((turn) => `${share(turn).toFixed(0)} %`).join(", ")}`,
      bars: turns.map((turn, index) => ({
        name: times[index] ?? "",
        value: share(turn),
        says: `${formatTime(turn.at)}, msg_${turn.messageId}: ${share(turn).toFixed(0)} % of ${formatShort(turn.tokens)} tokens stayed; ${turn.added} added, ${turn.removed} removed`,
      })),
      top: 100,
      step: 50,
      width: 560,
      height: 96,
      format: (value) => `${value} %`,
    }),
  ];
}
