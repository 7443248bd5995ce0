/** A summary as text for a pane: its text, then the ids of its sources. */
import { formatMessageId } from "@lossless/core";
import type { SummaryNode } from "@lossless/core";
import { toMarkdownLines } from "./markdown.ts";
import type { Paint } from "./paint.ts";
import type { TextLine } from "./wrapped-text.ts";

/** More ids than this are counted. */
const MAX_NAMED = 12;

export function renderSummaryText(summary: SummaryNode, paint: Paint): TextLine[] {
  const { sourceIds, messageIds, derivedIds, fileIds, content } = summary;
  const facts = [
    nameAll("made from", sourceIds),
    nameAll("made from", messageIds.map(formatMessageId)),
    nameAll("part of", derivedIds),
    nameAll("large files", fileIds),
  ].filter((line) => line !== null);
  return [
    ...toMarkdownLines(content, paint),
    { text: "" },
    ...facts.map((text) => ({ text, style: paint.faint })),
  ];
}

function nameAll(what: string, ids: readonly string[]): string | null {
  if (ids.length === 0) return null;
  const [first, last] = [ids[0] ?? "", ids.at(-1) ?? ""];
  return ids.length > MAX_NAMED
    ? `${what}: ${first} … ${last} (${ids.length})`
    : `${what}: ${ids.join(", ")}`;
}
