/** Overview: what is stored, how large, how far folded, what it has cost, whether anything needs attention, and all conversations. */
import { listConversations, readOverview, readTimeline } from "../api.ts";
import type { ConversationRow, Overview, TimelineAnswer } from "../api.ts";
import { fill, h, textNodes } from "../dom.ts";
import {
  countOf,
  formatAgo,
  formatBytes,
  formatCount,
  formatDay,
  formatShare,
  formatShort,
  formatTime,
} from "../format.ts";
import { drawLines } from "../plot.ts";
import { renderCard, renderFailure, renderLoading, whenRead } from "../view.ts";
import type { View } from "../view.ts";

export function openOverview(): View {
  const cards = h("div", {}, renderLoading("the archive"));
  const plot = h("div", {});
  const table = h("div", {});
  const element = h("section", { class: "view", "aria-label": "Overview" }, cards, plot, table);
  const load = async (): Promise<void> => {
    try {
      const overview = await readOverview();
      fill(cards, renderCards(overview), renderNotices(overview));
      fill(table, ...renderTable(overview));
      const newest = overview.conversations.items.reduce<ConversationRow | null>(
        (best, row) => (best === null || row.messages > best.messages ? row : best),
        null,
      );
      if (newest !== null && newest.messages > 0)
        fill(plot, renderGrowth(await readTimeline(newest.conversationId)));
    } catch (error) {
      fill(cards, renderFailure(error));
    }
  };
  void load();
  return { element, refresh: () => void load() };
}

function renderCards({ status, spend }: Overview): HTMLElement {
  const stored = status.databaseBytes + status.filesBytes;
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
      `last ${formatAgo(status.lastMessageAt, Date.now())}`,
    ),
    renderCard("Summaries", formatCount(status.summaries), countOf(status.largeFiles, "large file")),
    renderCard("Tokens in contexts", formatShort(status.tokens), "what all conversations stand at"),
    renderCard(
      "On disk",
      formatBytes(stored),
      `${formatShare(stored, status.arrivalBytes)} of ${formatBytes(status.arrivalBytes)} handed in`,
    ),
    renderCard(
      "Spent on models",
      spend === null || spend.calls === 0
        ? "nothing"
        : `${formatShort(spend.inputTokens + spend.outputTokens)} tokens`,
      countOf(spend?.calls ?? 0, "call"),
    ),
    renderCard(
      "Health",
      status.index.kind === "ready" && status.enabled && status.guards.length === 0 ? "good" : "look below",
      h("a", { href: "#/health" }, "check everything"),
    ),
  );
}

function renderNotices({ status }: Overview): HTMLElement {
  const notices = [
    ...(status.enabled ? [] : ["Storing is switched off (setting enabled)."]),
    ...(status.index.kind === "ready"
      ? []
      : [`The search index is degraded: ${status.index.reason}. lcm reindex builds it anew.`]),
    ...status.guards.map(
      (guard) => `Models are paused until ${formatTime(guard.openUntil)}: ${guard.reason}`,
    ),
  ];
  return h(
    "ul",
    { class: "notices" },
    ...notices.map((notice) => h("li", { class: "warn" }, ...textNodes(notice))),
  );
}

function renderGrowth({ conversation, points, folds }: TimelineAnswer): HTMLElement {
  const last = points.at(-1);
  return h(
    "section",
    { "aria-label": "Growth" },
    h("h2", {}, `Conversation ${conversation.conversationId}: stored and in context`),
    drawLines({
      label: `Tokens of conversation ${conversation.conversationId} by message: ${formatShort(last?.rawTokens ?? 0)} said, ${formatShort(last?.contextTokens ?? 0)} in the context`,
      x: points.map(({ index }) => index),
      lines: [
        { name: "said so far", className: "raw", values: points.map(({ rawTokens }) => rawTokens) },
        {
          name: "stands for it in the context",
          className: "context",
          values: points.map(({ contextTokens }) => contextTokens),
        },
      ],
      marks: folds.slice(-1000).map(({ index }) => index),
      markName: "end of a summary",
      describeX: (index) =>
        `message ${formatCount((points[index]?.index ?? 0) + 1)}, ${formatTime(points[index]?.at ?? null)}`,
      axis: [points[0], points[points.length >> 1], last].flatMap((point) =>
        point ? formatDay(point.at) : [],
      ),
    }),
  );
}

function renderTable({ conversations }: Overview): HTMLElement[] {
  const body = h("tbody", {}, ...conversations.items.map(renderRow));
  const more = h("button", { type: "button", class: "more" }, "More conversations");
  let next = conversations.next;
  more.hidden = next === null;
  more.addEventListener("click", () => {
    if (next === null) return;
    const add = (page: Overview["conversations"]): void => {
      next = page.next;
      more.hidden = next === null;
      body.append(...page.items.map(renderRow));
    };
    void whenRead(listConversations(next), add, (failure) => more.after(failure));
  });
  const titles = ["Id", "Session", "Owner", "Messages", "Summaries", "Context", "Last message", "State", ""];
  return [
    h("h2", {}, "Conversations"),
    h(
      "div",
      { class: "scroll-x", tabindex: 0, role: "group", "aria-label": "Conversations" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
        body,
      ),
    ),
    more,
  ];
}

function renderRow(row: ConversationRow): HTMLElement {
  const id = row.conversationId;
  const state =
    row.archivedAt === null
      ? "active"
      : `archived${row.archiveCause === null ? "" : ` (${row.archiveCause})`}`;
  return h(
    "tr",
    {},
    h("td", { class: "number" }, h("a", { class: "id", href: `#/conversation/${id}` }, id)),
    h("td", { class: "wide" }, h("a", { href: `#/conversation/${id}` }, ...textNodes(row.sessionKey))),
    h("td", {}, ...textNodes(row.owner)),
    h("td", { class: "number" }, formatCount(row.messages)),
    h("td", { class: "number" }, formatCount(row.summaries)),
    h("td", { class: "number" }, `${formatShort(row.shownTokens)} tokens`),
    h("td", {}, formatTime(row.lastAt)),
    h("td", {}, ...textNodes(state)),
    h(
      "td",
      {},
      ...["graph", "context", "timeline"].map((view) =>
        h("a", { class: "button-link", href: `#/${view}/${id}` }, view),
      ),
    ),
  );
}
