/** Timeline: how the conversation grew against what the context holds of it, where it was folded, and what each day brought and cost. */
import { readSpend, readTimeline } from "../api.ts";
import type { SpendAnswer, TimelineAnswer } from "../api.ts";
import { fill, h, textNodes } from "../dom.ts";
import { countOf, formatCount, formatDay, formatFactor, formatShort, formatTime } from "../format.ts";
import { drawBars, drawLines } from "../plot.ts";
import { renderCard, renderFailure, renderLoading } from "../view.ts";
import type { View } from "../view.ts";

const AXIS_LABELS = 5;

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
  return { element, refresh: () => void load() };
}

function renderTimeline({ conversation, points, folds, days }: TimelineAnswer): HTMLElement[] {
  const last = points.at(-1);
  if (last === undefined) return [h("p", { class: "faint" }, "Nothing is stored here yet.")];
  const axis = Array.from(
    { length: AXIS_LABELS },
    (_, index) => points[Math.round(((points.length - 1) * index) / (AXIS_LABELS - 1))],
  );
  const saved = folds.reduce((sum, { tokens, rawTokens }) => sum + rawTokens - tokens, 0);
  return [
    h("h1", {}, ...textNodes(conversation.sessionKey)),
    h(
      "dl",
      { class: "cards small" },
      renderCard("Said", `${formatShort(last.rawTokens)} tokens`, countOf(conversation.messages, "message")),
      renderCard(
        "In context",
        `${formatShort(last.contextTokens)} tokens`,
        formatFactor(last.rawTokens, last.contextTokens),
      ),
      renderCard(
        "Summaries in the context",
        formatCount(folds.length),
        `${formatShort(Math.max(0, saved))} tokens less than what they stand for`,
      ),
      renderCard("From", formatDay(points[0]?.at ?? 0), `to ${formatDay(last.at)}`),
    ),
    h("h2", {}, "Tokens, message by message"),
    drawLines({
      label: `Tokens by message: ${formatShort(last.rawTokens)} said in all, ${formatShort(last.contextTokens)} stand for it in the context; ${countOf(folds.length, "summary", "summaries")}`,
      x: points.map(({ index }) => index),
      lines: [
        { name: "said so far", className: "raw", values: points.map(({ rawTokens }) => rawTokens) },
        {
          name: "stands for it in the context now",
          className: "context",
          values: points.map(({ contextTokens }) => contextTokens),
        },
      ],
      marks: folds.slice(-1000).map(({ index }) => index),
      markName: "end of a summary",
      describeX: (index) =>
        `message ${formatCount((points[index]?.index ?? 0) + 1)}, ${formatTime(points[index]?.at ?? null)}`,
      axis: axis.flatMap((point) => (point ? formatDay(point.at) : [])),
    }),
    h("h2", {}, "Tokens stored per day"),
    drawBars(
      "Tokens stored per day",
      days.slice(-120).map(({ day, messages, tokens }) => ({
        name: day.slice(5),
        value: tokens,
        says: `${day}: ${formatShort(tokens)} tokens, ${countOf(messages, "message")}`,
      })),
    ),
  ];
}

function renderSpend({ items }: SpendAnswer): HTMLElement[] {
  const title = h("h2", {}, "Tokens spent on models per day, all conversations");
  if (items.length === 0)
    return [title, h("p", { class: "faint" }, "No model was called: summaries were made without one.")];
  const bars = items.slice(-120).map(({ key, calls, inputTokens, outputTokens }) => ({
    name: key.slice(5),
    value: inputTokens + outputTokens,
    says: `${key}: ${countOf(calls, "call")}, ${formatShort(inputTokens)} in, ${formatShort(outputTokens)} out`,
  }));
  return [title, drawBars("Tokens spent on models per day", bars)];
}
