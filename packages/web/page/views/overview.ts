/** Overview: what is stored, its size, how far it is folded, its cost, whether anything needs attention, and all conversations. */
import { readGrowth, readOverview } from "../api.ts";
import type { GrowthResult, Overview } from "../api.ts";
import { renderCommand } from "../code.ts";
import { ConversationTable } from "../conversation-table.ts";
import { fill, h, textNodes } from "../dom.ts";
import {
  countOf,
  formatAgo,
  formatBytes,
  formatCount,
  formatFactor,
  formatShort,
  formatTime,
  labelTimes,
} from "../format.ts";
import { drawLines } from "../plot.ts";
import { renderCard, renderFailure, renderHead, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

const AXIS_LABELS = 6;
const REST_MS = 3_000;

/** `known` is what the page has just loaded, if anything. */
export function openOverview(query: URLSearchParams, known: Overview | null): View {
  const cards = h("div", {}, renderLoading("the archive"));
  const plot = h("div", { class: "growth" });
  const table = new ConversationTable(query);
  const element = h("section", { class: "view", "aria-label": "Overview" }, cards, table.element, plot);
  const load = async (read: Promise<Overview> | Overview): Promise<void> => {
    try {
      const overview = await read;
      fill(
        cards,
        renderHead("Archive", `lossless-claw ${overview.version}`),
        renderCards(overview),
        renderNotices(overview),
      );
      const isEmpty = overview.status.messages === 0;
      table.element.hidden = isEmpty;
      if (isEmpty) return fill(plot, renderEmpty());
      table.show(overview.conversations);
      fill(plot, renderGrowth(await readGrowth()));
    } catch (error) {
      fill(cards, renderFailure(error));
    }
  };
  void load(known ?? readOverview());
  return { element, restMs: REST_MS, refresh: () => void load(readOverview()) };
}

function renderCards({ status, spend }: Overview): HTMLElement {
  const stored = status.databaseBytes + status.filesBytes;
  const isGood = status.index.kind === "ready" && status.enabled && status.guards.length === 0;
  return h(
    "dl",
    { class: "cards" },
    renderCard(
      "Conversations",
      formatCount(status.conversations),
      `${formatCount(status.activeConversations)} active`,
    ),
    renderCard(
      "Messages",
      formatCount(status.messages),
      status.messages === 0 ? "none yet" : `last ${formatAgo(status.lastMessageAt, Date.now())}`,
    ),
    renderCard("Summaries", formatCount(status.summaries), countOf(status.largeFiles, "large file")),
    renderCard("In context", `${formatShort(status.tokens)}`, "tokens, all conversations"),
    renderCard("On disk", formatBytes(stored), `from ${formatBytes(status.arrivalBytes)} of transcripts`),
    renderCard(
      "Spent on models",
      spend === null || spend.calls === 0 ? "nothing" : formatShort(spend.inputTokens + spend.outputTokens),
      spend === null || spend.calls === 0 ? "no model calls" : `tokens in ${countOf(spend.calls, "call")}`,
    ),
    renderCard(
      "Health",
      h("span", { class: isGood ? "good" : "warn" }, isGood ? "good" : "see below"),
      h("a", { href: "#/health" }, "check everything"),
    ),
  );
}

/** An empty archive says what to do first. */
const renderEmpty = (): HTMLElement =>
  h(
    "div",
    { class: "panel" },
    h("h2", {}, "Nothing is stored yet"),
    h("p", {}, "Import the transcripts of your agents. This page shows them as soon as they are stored."),
    renderCommand("lcm import ~/.claude/projects"),
    h("p", {}, "To store sessions as they happen:"),
    renderCommand("lcm watch"),
  );

function renderNotices({ status }: Overview): HTMLElement | null {
  const notices = [
    ...(status.enabled ? [] : ["Storing is switched off (setting enabled)."]),
    ...(status.index.kind === "ready"
      ? []
      : [`The search index is degraded: ${status.index.reason}. lcm reindex rebuilds it.`]),
    ...status.guards.map(
      (guard) => `Models are paused until ${formatTime(guard.openUntil)}: ${guard.reason}`,
    ),
  ];
  if (notices.length === 0) return null;
  return h(
    "ul",
    { class: "notices" },
    ...notices.map((notice) => h("li", { class: "notice warn" }, ...textNodes(notice))),
  );
}

function renderGrowth({ points, counted, conversations }: GrowthResult): HTMLElement {
  const last = points.at(-1);
  const [raw, context] = [last?.rawTokens ?? 0, last?.contextTokens ?? 0];
  const axis = Array.from(
    { length: AXIS_LABELS },
    (_, index) => points[Math.round(((points.length - 1) * index) / (AXIS_LABELS - 1))],
  );
  return h(
    "section",
    { "aria-label": "Growth" },
    h(
      "h2",
      {},
      "Tokens over time ",
      h("span", { class: "pill" }, `${formatFactor(raw, context)} compression`),
      counted < conversations &&
        h("small", {}, ` the ${formatCount(counted)} largest of ${formatCount(conversations)} conversations`),
    ),
    drawLines({
      label: `Tokens over time: ${formatShort(raw)} stored, ${formatShort(context)} in context`,
      x: points.map(({ at }) => at),
      lines: [
        { name: "stored", className: "raw", values: points.map(({ rawTokens }) => rawTokens) },
        {
          name: "in context",
          className: "context",
          values: points.map(({ contextTokens }) => contextTokens),
        },
      ],
      describeX: (index) => formatTime(points[index]?.at ?? null),
      axis: labelTimes(axis.flatMap((point) => (point ? point.at : []))),
    }),
  );
}
