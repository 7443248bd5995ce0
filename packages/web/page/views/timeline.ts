/** Timeline: how the conversation grew compared with its context, where it was folded, and what each day brought and cost. */
import { readSpend, readTimeline } from "../api.ts";
import type { Compaction, SpendResult, TimelineResult } from "../api.ts";
import { fill, h, textNodes } from "../dom.ts";
import {
  countOf,
  formatCount,
  formatDay,
  formatFactor,
  formatShort,
  formatTime,
  labelTimes,
} from "../format.ts";
import { drawBars, drawLines } from "../plot.ts";
import { renderCard, renderFailure, renderHead, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

const AXIS_LABELS = 6;
const MAX_MARKS = 400;
const REST_MS = 3_000;
const SHOWN_DAYS = 120;

export function openTimeline(conversationId: number): View {
  const element = h("section", { class: "view", "aria-label": "Timeline" }, renderLoading("the timeline"));
  const load = async (): Promise<void> => {
    try {
      const [timeline, spend] = await Promise.all([readTimeline(conversationId), readSpend()]);
      fill(element, ...renderTimeline(timeline), ...renderSpend(spend));
    } catch (error) {
      fill(element, renderFailure(error));
    }
  };
  void load();
  return { element, restMs: REST_MS, refresh: () => void load() };
}

function renderTimeline(timeline: TimelineResult): HTMLElement[] {
  const { conversation, points, compactions, days } = timeline;
  const last = points.at(-1);
  if (last === undefined) return [h("p", { class: "faint" }, "Nothing is stored here yet.")];
  const highest = points.reduce((most, { contextTokens }) => Math.max(most, contextTokens), 0);
  const summaries = compactions.reduce((sum, compaction) => sum + compaction.summaries, 0);
  return [
    renderHead("Timeline", ...textNodes(conversation.heading)),
    h(
      "dl",
      { class: "cards" },
      renderCard(
        "Said",
        formatShort(last.rawTokens),
        `tokens in ${countOf(conversation.messages, "message")}`,
      ),
      renderCard(
        "In context now",
        formatShort(last.contextTokens),
        `tokens, ${formatFactor(last.rawTokens, last.contextTokens)} compression`,
      ),
      renderCard(
        "Largest context",
        formatShort(highest),
        compactions.length === 0 ? "tokens; never folded" : "tokens, before it was folded",
      ),
      renderCard("Compactions", formatCount(compactions.length), countOf(summaries, "summary", "summaries")),
      renderCard("From", formatDay(points[0]?.at ?? 0), `to ${formatDay(last.at)}`),
    ),
    h("h2", {}, "Tokens, message by message"),
    drawGrowth(timeline),
    timeline.isExact
      ? null
      : h(
          "p",
          { class: "faint" },
          "For some summaries the archive does not know when they were published, only when they were made. They are drawn from that time on.",
        ),
    h("h2", {}, "Tokens stored per day"),
    drawBars({
      label: `Tokens stored per day, on ${countOf(days.length, "day")}`,
      bars: days.slice(-SHOWN_DAYS).map(({ day, messages, tokens }) => ({
        name: day.slice(5),
        value: tokens,
        says: `${day}: ${formatShort(tokens)} tokens, ${countOf(messages, "message")}`,
      })),
    }),
  ].filter((part) => part !== null);
}

function drawGrowth({ points, compactions }: TimelineResult): HTMLElement {
  const last = points.at(-1);
  const axis = Array.from(
    { length: AXIS_LABELS },
    (_, index) => points[Math.round(((points.length - 1) * index) / (AXIS_LABELS - 1))],
  );
  return drawLines({
    label: `Tokens by message: ${formatShort(last?.rawTokens ?? 0)} said in all, ${formatShort(last?.contextTokens ?? 0)} in the context; ${countOf(compactions.length, "compaction")}`,
    x: points.map(({ index }) => index),
    lines: [
      { name: "said so far", className: "raw", values: points.map(({ rawTokens }) => rawTokens) },
      {
        name: "in the context then",
        className: "context",
        values: points.map(({ contextTokens }) => contextTokens),
      },
    ],
    marks: compactions.slice(-MAX_MARKS).map((one) => ({ x: one.index, says: describeCompaction(one) })),
    markName: "compaction",
    describeX: (index) =>
      `message ${formatCount((points[index]?.index ?? 0) + 1)}, ${formatTime(points[index]?.at ?? null)}`,
    axis: labelTimes(axis.flatMap((point) => (point ? point.at : []))),
  });
}

const describeCompaction = ({ index, summaries, tokensBefore, tokensAfter }: Compaction): string =>
  `after message ${formatCount(index + 1)}: ${formatShort(tokensBefore)} tokens became ${formatShort(tokensAfter)}, ${countOf(summaries, "summary", "summaries")}`;

function renderSpend({ items }: SpendResult): HTMLElement[] {
  const title = h("h2", {}, "Spent on models per day, all conversations");
  if (items.length === 0) return [title, h("p", { class: "empty" }, "Nothing: no model was called.")];
  const bars = items.slice(-SHOWN_DAYS).map(({ key, calls, inputTokens, outputTokens }) => ({
    name: key.slice(5),
    value: inputTokens + outputTokens,
    says: `${key}: ${countOf(calls, "call")}, ${formatShort(inputTokens)} tokens in, ${formatShort(outputTokens)} out`,
  }));
  return [title, drawBars({ label: "Tokens spent on models per day", bars })];
}
