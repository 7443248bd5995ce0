/** Figures: the agents' activity, from their own transcripts. Day by day as plots; by model, project, agent or tool as a table. */
import { readStats } from "../api.ts";
import type { CostReply, StatsGroup, StatsGrouping, StatsReply } from "../api.ts";
import { renderCommand } from "../code.ts";
import { fill, h, textNodes } from "../dom.ts";
import {
  countOf,
  formatAmount,
  formatCount,
  formatMoney,
  formatHours,
  formatShare,
  formatShort,
  nameProject,
} from "../format.ts";
import { drawBars } from "../plot.ts";
import { renderCard, renderFailure, renderHead, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

const REST_MS = 10_000;
const SHOWN_DAYS = 90;

const GROUPINGS: readonly (readonly [by: StatsGrouping, says: string])[] = [
  ["model", "Model"],
  ["project", "Project"],
  ["agent", "Agent"],
  ["tool", "Tool"],
  ["day", "Day"],
];

export function openFigures(query: URLSearchParams): View {
  const chosen = GROUPINGS.find(([by]) => by === query.get("by"))?.[0] ?? "model";
  const body = h("div", {}, renderLoading("the transcripts"));
  const element = h(
    "section",
    { class: "view", "aria-label": "Figures" },
    renderHead("Figures", "what your agents did, from their own transcripts"),
    body,
  );
  const load = async (): Promise<void> => {
    try {
      fill(body, ...renderFigures(await readStats(chosen)));
    } catch (error) {
      fill(body, renderFailure(error));
    }
  };
  void load();
  return { element, restMs: REST_MS, refresh: () => void load() };
}

const tokensIn = (group: StatsGroup): number =>
  group.inputTokens + group.cacheReadTokens + group.cacheWriteTokens;

function renderFigures({ days, result, own, cost }: StatsReply): HTMLElement[] {
  const { total, groups, by } = result;
  if (groups.length === 0)
    return [h("p", { class: "empty" }, "Nothing yet. lcm import stores the transcripts of your agents.")];
  const dated = days.filter((day) => day.key !== null).slice(-SHOWN_DAYS);
  return [
    h(
      "dl",
      { class: "cards" },
      renderCard("Requests", formatCount(total.requests), `for ${countOf(total.prompts, "prompt")}`),
      renderCard(
        "Tokens in",
        formatShort(tokensIn(total)),
        `${formatShare(total.cacheReadTokens, tokensIn(total))} from a cache`,
      ),
      renderCard("Tokens out", formatShort(total.outputTokens), "written by models"),
      renderCard(
        "Tool calls",
        formatCount(total.toolCalls),
        `${countOf(total.errors, "error")} (${formatShare(total.errors, total.toolCalls)})`,
      ),
      renderCard("Hours", formatHours(total.activeMs), countOf(total.conversations, "conversation")),
      renderCard(
        "Our own summaries",
        own === null ? "nothing" : formatShort(own.inputTokens + own.outputTokens),
        own === null ? "no model calls" : `tokens in ${countOf(own.calls, "call")}${describeOwn(cost)}`,
      ),
      cost?.agents &&
        renderCard(
          "Cost",
          cost.agents.total.toFixed(2),
          `${cost.agents.currency}${cost.agents.unpriced.length === 0 ? "" : `; no price for ${countOf(cost.agents.unpriced.length, "model")}`}`,
        ),
    ),
    h(
      "div",
      { class: "plots" },
      renderPlot("Tokens in, by day", dated, tokensIn, formatShort),
      renderPlot("Tokens out, by day", dated, (day) => day.outputTokens, formatShort),
      renderPlot("Hours, by day", dated, (day) => day.activeMs / 3_600_000, formatAmount),
      renderPlot("Tool calls, by day", dated, (day) => day.toolCalls, formatShort),
    ),
    h("h2", {}, "Breakdown"),
    h(
      "p",
      { class: "choices" },
      ...GROUPINGS.map(([name, says]) =>
        h("a", { href: `#/figures?by=${name}`, "aria-current": name === by ? "true" : undefined }, says),
      ),
    ),
    renderTable(result, cost),
    ...renderPrices(cost),
  ];
}

const describeOwn = (cost: CostReply | null): string =>
  cost?.own ? `, ${formatMoney(cost.own.total, cost.own.currency)}` : "";

/** Where the cost comes from, and what to do if there is none. */
function renderPrices(cost: CostReply | null): HTMLElement[] {
  const title = h("h2", {}, "Prices");
  if (cost === null)
    return [
      title,
      h(
        "p",
        {},
        "No cost is shown, because lossless-claw ships no prices: they change too often. Write your prices to a file, each with its source and date (see docs/figures.md), and start the page with it:",
      ),
      renderCommand("lcm web --prices prices.json"),
    ];
  if (cost.prices === null)
    return [title, h("p", { class: "bad", role: "alert" }, ...textNodes(cost.problem ?? ""))];
  const { currency, models } = cost.prices;
  const unpriced = [...(cost.agents?.unpriced ?? []), ...(cost.own?.unpriced ?? [])];
  const head = (name: string, className?: string): HTMLElement =>
    h("th", { scope: "col", class: className }, name);
  return [
    title,
    h(
      "p",
      { class: "faint" },
      ...textNodes(
        `${currency} for a million tokens, from ${cost.path}. Edit the file and reload this page.`,
      ),
    ),
    h(
      "div",
      { class: "scroll-x", tabindex: 0, role: "group", "aria-label": "Prices" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            head("Model"),
            ...["In", "Out", "Cache read", "Cache write"].map((name) => head(name, "number")),
            head("Read on"),
            head("Source"),
          ),
        ),
        h(
          "tbody",
          {},
          ...Object.entries(models).map(([name, price]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, ...textNodes(name)),
              ...[price.input, price.output, price.cacheRead, price.cacheWrite].map((amount) =>
                h("td", { class: "number" }, formatAmount(amount)),
              ),
              h("td", {}, ...textNodes(price.date)),
              h("td", { class: "wide" }, ...textNodes(price.source)),
            ),
          ),
        ),
      ),
    ),
    ...(unpriced.length === 0
      ? []
      : [h("p", {}, ...textNodes(`Without a price: ${[...new Set(unpriced)].join(", ")}.`))]),
  ];
}

function renderPlot(
  title: string,
  days: readonly StatsGroup[],
  valueOf: (day: StatsGroup) => number,
  format: (value: number) => string,
): HTMLElement {
  const isOneYear = new Set(days.map(({ key }) => key?.slice(0, 4))).size <= 1;
  const bars = days.map((day) => ({
    name: (day.key ?? "").slice(isOneYear ? 5 : 0),
    value: valueOf(day),
    says: `${day.key}: ${format(valueOf(day))}`,
  }));
  return h(
    "section",
    { "aria-label": title },
    h("h2", {}, title),
    drawBars({ label: `${title}, on ${countOf(days.length, "day")}`, bars, width: 560, format }),
  );
}

type Column = readonly [title: string, valueOf: (group: StatsGroup) => string];

const CONVERSATIONS: Column = ["Conversations", (group) => formatCount(group.conversations)];
const CALLS: readonly Column[] = [
  ["Tool calls", (group) => formatCount(group.toolCalls)],
  ["Errors", (group) => formatCount(group.errors)],
];
const COLUMNS: readonly Column[] = [
  ["Requests", (group) => formatCount(group.requests)],
  ["Tokens in", (group) => formatShort(tokensIn(group))],
  ["Cached", (group) => formatShare(group.cacheReadTokens, tokensIn(group))],
  ["Tokens out", (group) => formatShort(group.outputTokens)],
  ...CALLS,
  ["Hours", (group) => formatHours(group.activeMs)],
  CONVERSATIONS,
];

function renderTable({ groups, total, by }: StatsReply["result"], cost: CostReply | null): HTMLElement {
  const costs = cost?.agents ?? null;
  const priceOf = ({ key }: StatsGroup): string => {
    const amount = costs?.byModel[key ?? ""];
    return amount === undefined ? "–" : amount.toFixed(2);
  };
  const priced: readonly Column[] =
    by === "model" && costs !== null ? [[`Cost, ${costs.currency}`, priceOf]] : [];
  const columns = by === "tool" ? [...CALLS, CONVERSATIONS] : [...COLUMNS, ...priced];
  const nameOf = ({ key }: StatsGroup): string =>
    key === null ? "unknown" : by === "project" ? nameProject(key) : key;
  const row = (name: string, group: StatsGroup, last?: string): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row", class: "wide", title: group.key ?? undefined }, ...textNodes(name)),
      ...columns.map(([, valueOf], index) =>
        h(
          "td",
          { class: "number" },
          index === columns.length - 1 ? (last ?? valueOf(group)) : valueOf(group),
        ),
      ),
    );
  const says = GROUPINGS.find(([name]) => name === by)?.[1] ?? by;
  return h(
    "div",
    { class: "scroll-x", tabindex: 0, role: "group", "aria-label": `Figures by ${by}` },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, says),
          ...columns.map(([title]) => h("th", { scope: "col", class: "number" }, title)),
        ),
      ),
      h("tbody", {}, ...groups.map((group) => row(nameOf(group), group))),
      h(
        "tfoot",
        {},
        row("all", total, costs !== null && priced.length > 0 ? costs.total.toFixed(2) : undefined),
      ),
    ),
  );
}
