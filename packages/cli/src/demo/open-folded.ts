/** The demo of opening a fold: from a summary in the context down through its sources to the original message from weeks ago. */
import { formatMessageId, must } from "@lossless/core";
import type { Engine, SummaryNode } from "@lossless/core";
import {
  countOf,
  formatSpan,
  formatTime,
  toOneLine,
  truncateToWidth,
  wrapToWidth,
} from "@lossless/core/doors";
import { style } from "../style.ts";
import { BUDGET_TOKENS } from "./play.ts";
import { COLUMNS } from "./tour.ts";
import type { StoredMessage, Tour } from "./tour.ts";

/** From the first week: what the carrier's limit means for the code. */
const FOLDED_QUESTION = "back-off cap carrier ban";
const ZONE = "UTC";

export async function openFolded(tour: Tour): Promise<void> {
  tour.explain(
    `Ask for something from the first week: ${style.title(FOLDED_QUESTION)}. Its message is no longer in the context, only a summary above it.`,
  );
  tour.say("");
  const { message, path } = await tour.withArchive(async (engine) => {
    const { hits } = await engine.search({ query: FOLDED_QUESTION, limit: 1 });
    const { messageId } = must(hits[0], "the message that the question finds");
    const found = must(await engine.readMessage({ messageId }), "the message that was found");
    return { message: found, path: await findPath(engine, found) };
  });
  for (const [level, node] of path.entries()) tour.tell(renderStep(node, level));
  tour.tell(renderMessage(message, path.length));
}

/** The summaries above a message, from the one in the context down to its leaf. */
async function findPath(engine: Engine, { row }: StoredMessage): Promise<SummaryNode[]> {
  const { conversationId, position, messageId } = row;
  const context = must(await engine.assemble({ conversationId, budgetTokens: BUDGET_TOKENS }), "the context");
  const path: SummaryNode[] = [];
  let ids = context.items.flatMap((item) => item.summaryId ?? []);
  while (ids.length > 0) {
    const node = await findHolder(engine, ids, position);
    if (node === null) break;
    path.push(node);
    ids = node.sourceIds;
  }
  if (path.at(-1)?.messageIds.includes(messageId)) return path;
  throw new Error(`no summary of the context leads to ${formatMessageId(messageId)}`);
}

async function findHolder(
  engine: Engine,
  ids: readonly string[],
  position: number,
): Promise<SummaryNode | null> {
  for (const summaryId of ids) {
    const node = await engine.readSummary({ summaryId });
    if (node !== null && node.startPosition <= position && position <= node.endPosition) return node;
  }
  return null;
}

const arrow = (level: number): string => (level === 0 ? "" : `${"   ".repeat(level - 1)}└─ `);

function renderStep(node: SummaryNode, level: number): string {
  const span = formatSpan(node.earliestAt, node.latestAt, ZONE);
  const facts = style.faint(`depth ${node.depth}, ${countOf(node.messages, "message")}, ${span}`);
  const head = `${arrow(level)}${style.name(node.summaryId)}  ${facts}`;
  const said = findLine(node.content);
  const margin = "   ".repeat(level);
  return said === null ? head : `${head}\n${margin}${truncateToWidth(said, COLUMNS - 6 - margin.length)}`;
}

/** The line of a summary with most of the question's words; null when it has less than half of them. */
function findLine(content: string): string | null {
  const words = FOLDED_QUESTION.split(" ");
  const count = (line: string): number => words.filter((word) => line.toLowerCase().includes(word)).length;
  const lines = content.split("\n").map(toOneLine);
  const best = lines.toSorted((left, right) => count(right) - count(left))[0] ?? "";
  return 2 * count(best) < words.length ? null : best.trim();
}

function renderMessage({ row, view }: StoredMessage, level: number): string {
  const head = `${arrow(level)}${style.name(formatMessageId(row.messageId))}  ${style.faint(`${row.role}, ${formatTime(row.createdAt, ZONE)}, word for word:`)}`;
  const text = view.parts.find((part) => part.type === "text")?.text ?? "";
  const margin = "   ".repeat(level);
  const lines = wrapToWidth(toOneLine(text), COLUMNS - 6 - margin.length);
  return [head, ...lines.map((line) => margin + line)].join("\n");
}
