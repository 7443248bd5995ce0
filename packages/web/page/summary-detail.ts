/** One summary with everything around it: its text, what it covers and costs, its sources, and every message under it. */
import { renderAction } from "./action-dialog.ts";
import { listUnder } from "./api.ts";
import type { SummaryNode, UnderSummary } from "./api.ts";
import { h, textNodes } from "./dom.ts";
import type { Child } from "./dom.ts";
import { countOf, formatCount, formatFactor, formatTime } from "./format.ts";
import { renderBlocks } from "./message.ts";
import { linkMessage, linkSummary, whenRead } from "./view.ts";

const SHOWN_IDS = 60;

export function renderSummary(summary: SummaryNode, onChange: () => void): HTMLElement[] {
  const { summaryId, sourceIds, derivedIds, state } = summary;
  return [
    h("h2", { class: "id" }, summaryId),
    h(
      "p",
      { class: "tags" },
      h("span", { class: `tag depth-${Math.min(5, summary.depth)}` }, `depth ${summary.depth}`),
      h(
        "span",
        { class: "tag" },
        state === "cover" ? "in the fold" : state === "reserve" ? "stand-in" : state,
      ),
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
        ...textNodes(
          `${summary.model === summary.level ? "the engine itself" : `${summary.model} (${summary.level})`}, ${formatTime(summary.createdAt)}`,
        ),
      ),
      summary.previousId !== null && pair("Written after", linkSummary(summary.previousId)),
      pair("Part of", ...(derivedIds.length === 0 ? ["nothing above it"] : listIds(derivedIds))),
      sourceIds.length > 0 && pair("Made from", ...listIds(sourceIds)),
    ),
    h(
      "p",
      { class: "actions" },
      state === "cover" && renderAction("Dissolve …", () => ({ action: "dissolve", summaryId }), onChange),
      state === "cover" &&
        renderAction("Regenerate …", () => ({ action: "rewrite", summaryId, isSubtree: false }), onChange),
      state === "cover" &&
        sourceIds.length > 0 &&
        renderAction(
          "Regenerate with everything below …",
          () => ({ action: "rewrite", summaryId, isSubtree: true }),
          onChange,
        ),
    ),
    renderUnder(summary),
    h("div", { class: "content" }, ...renderBlocks(summary.content, null)),
  ];
}

const pair = (name: string, ...value: readonly Child[]): HTMLElement =>
  h("div", {}, h("dt", {}, name), h("dd", {}, ...value));

function listIds(ids: readonly string[]): Child[] {
  const shown = ids.slice(0, SHOWN_IDS).flatMap((id) => [linkSummary(id), " "]);
  return ids.length > SHOWN_IDS ? [...shown, `and ${formatCount(ids.length - SHOWN_IDS)} more`] : shown;
}

/** Loaded on demand: there may be a hundred thousand. */
function renderUnder({ summaryId, messages }: SummaryNode): HTMLElement {
  const list = h("ol", { class: "under" });
  const more = h("button", { type: "button", class: "more" }, "More");
  more.hidden = true;
  let shown = 0;
  const add = ({ items, total }: UnderSummary): void => {
    shown += items.length;
    more.hidden = shown >= total;
    list.append(
      ...items.map(({ messageId, role, tokens, createdAt }) =>
        h(
          "li",
          {},
          linkMessage(messageId),
          h("span", {}, ...textNodes(role || "line")),
          h("span", { class: "faint" }, formatTime(createdAt)),
          h("span", { class: "number" }, formatCount(tokens)),
        ),
      ),
    );
  };
  const load = (): void =>
    void whenRead(listUnder(summaryId, shown), add, (failure) => list.replaceWith(failure));
  more.addEventListener("click", load);
  const details = h(
    "details",
    { class: "part under-box" },
    h("summary", {}, `The ${countOf(messages, "message")} under it`),
    list,
    more,
  );
  details.addEventListener("toggle", () => {
    if (details.open && shown === 0) load();
  });
  return details;
}
