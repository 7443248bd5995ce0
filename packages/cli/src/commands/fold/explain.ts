/**
 * The table of `lcm assemble --explain`: what was chosen for a context, what each piece costs, what it represents, and which providers accept
 * it.
 */
import type { AssembledContext, ExplainedItem } from "@lossless/core";
import {
  countOf,
  describeGrammars,
  describeIds,
  describeReason,
  formatCount,
  formatShare,
  MODES,
  renderBar,
} from "@lossless/core/doors";
import type { GrammarVerdict } from "@lossless/core/doors";
import { terminalColumns } from "../../output.ts";
import { style } from "../../style.ts";
import { renderPairs, renderTable } from "../../table.ts";

const ITEM_BAR = 10;
const TOTAL_BAR = 30;

export function renderExplanation(context: AssembledContext): string {
  return [renderItems(context.items), renderTotals(context)].join("\n\n");
}

function renderItems(items: readonly ExplainedItem[]): string {
  const largest = Math.max(1, ...items.map((item) => item.tokens));
  return renderTable(
    [
      { title: "KIND" },
      { title: "ID", style: style.name },
      { title: "DEPTH", align: "right" },
      { title: "FOR", align: "right" },
      { title: "TOKENS", align: "right" },
      { title: "" },
      { title: "WHY", flexible: true, style: style.faint },
    ],
    items.map((item) => [
      item.role ?? item.kind,
      describeIds(item),
      item.depth < 0 ? "" : String(item.depth),
      formatCount(item.messages),
      formatCount(item.tokens),
      paintBar(item, renderBar(item.tokens / largest, ITEM_BAR)),
      describeReason(item),
    ]),
    { maxWidth: terminalColumns(), styleTitle: style.faint },
  );
}

function paintBar({ kind }: ExplainedItem, bar: string): string {
  if (kind === "summary") return style.name(bar);
  return kind === "message" ? style.good(bar) : style.warning(bar);
}

function renderTotals(context: AssembledContext): string {
  const { estimatedTokens, budgetTokens, mode, epoch, fingerprint } = context;
  const share = Math.min(1, estimatedTokens / budgetTokens);
  const size = `${formatCount(estimatedTokens)} of ${formatCount(budgetTokens)} tokens (${formatShare(estimatedTokens, budgetTokens)})`;
  return renderPairs(
    [
      ["Context", `${style.good(renderBar(share, TOTAL_BAR))}  ${size}`],
      ["Covers", describeCover(context)],
      ["Tail", describeTail(context)],
      ["Mode", MODES[mode]],
      ["Accepted by", describeGrammars(context).map(describeCheck).join(", ")],
      ["Epoch", `${epoch}, fingerprint ${fingerprint}`],
    ],
    style.faint,
  );
}

/** The part that folds leave alone, and why it is shorter than `freshTailCount` messages if it is. */
function describeTail({ tail, budgetTokens }: AssembledContext): string {
  const { messages, tokens, maxMessages, maxTokens, endedBy } = tail;
  const size = `folds leave the newest ${countOf(messages, "message")} alone (${formatCount(tokens)} tokens)`;
  if (messages >= maxMessages || endedBy === "messages") return size;
  if (endedBy === "start" || maxTokens === null)
    return `${size}; no more of the ${formatCount(maxMessages)} of freshTailCount: what is older is folded, or there is nothing older`;
  const limit = `${formatCount(maxTokens)} tokens, ${formatShare(maxTokens, budgetTokens)} of the budget (freshTailMaxTokens)`;
  const cause =
    tokens > maxTokens
      ? `the newest turn or tool group alone exceeds ${limit}`
      : `more would exceed ${limit}`;
  return `${size}; fewer than the ${formatCount(maxMessages)} of freshTailCount: ${cause}`;
}

/** Says whether every message is represented exactly once. */
function describeCover({ items, shownMessages }: AssembledContext): string {
  const count = (kind: ExplainedItem["kind"]): number =>
    items.filter((item) => item.kind === kind).reduce((sum, item) => sum + item.messages, 0);
  const represented = items.reduce((sum, item) => sum + item.messages, 0);
  const kinds = [
    `${formatCount(count("message"))} as they are`,
    `${formatCount(count("summary"))} under ${countOf(items.filter((item) => item.kind === "summary").length, "summary", "summaries")}`,
    ...(count("stub") > 0 ? [`${formatCount(count("stub"))} cut short`] : []),
    ...(count("range") > 0 ? [`${formatCount(count("range"))} in a line`] : []),
  ];
  const total = `${formatCount(represented)} of ${countOf(shownMessages, "message")}`;
  const paint = represented === shownMessages ? style.good : style.bad;
  return `${paint(total)}: ${kinds.join(", ")}`;
}

function describeCheck({ provider, accepts, problem }: GrammarVerdict): string {
  return accepts ? style.good(provider) : style.bad(`not ${provider} (${problem})`);
}
