/** The first words of messages and summaries, for lists and drawings that would otherwise show only ids. */
import { isSummaryId } from "@lossless/core";
import type { Engine, Scope } from "@lossless/core";

/** Our own summaries may begin with a day; the views already show the time. */
const DAY_LINE = /^\d{4}-\d\d-\d\d UTC\n/;

/** Empty if there is no text. */
export async function readFirstWords(
  engine: Engine,
  scope: Scope,
  id: string,
  chars: number,
): Promise<string> {
  if (isSummaryId(id)) {
    const summary = await engine.readSummary({ ...scope, summaryId: id });
    return cut((summary?.content ?? "").replace(DAY_LINE, ""), chars);
  }
  const messageId = Number(/^msg_(\d{1,15})$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(messageId)) return "";
  const message = await engine.readMessage({ ...scope, messageId });
  return cut(message?.view.parts.find(({ text }) => text.trim() !== "")?.text ?? "", chars);
}

function cut(text: string, chars: number): string {
  const line = text
    .slice(0, 4 * chars)
    .replaceAll(/\s+/g, " ")
    .trim();
  return line.length <= chars ? line : `${line.slice(0, chars - 1).toWellFormed()}…`;
}
