/** The first words of messages and summaries, for lists that would otherwise show ids alone. */
import { isSummaryId } from "@lossless/core";
import type { Engine, Scope } from "@lossless/core";

const MAX_CHARS = 160;

/** Empty where there is nothing to read. */
export async function readFirstWords(engine: Engine, scope: Scope, id: string): Promise<string> {
  if (isSummaryId(id)) return cut((await engine.readSummary({ ...scope, summaryId: id }))?.content ?? "");
  const messageId = Number(/^msg_(\d{1,15})$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(messageId)) return "";
  const message = await engine.readMessage({ ...scope, messageId });
  return cut(message?.view.parts.find(({ text }) => text.trim() !== "")?.text ?? "");
}

const cut = (text: string): string =>
  text
    .slice(0, 4 * MAX_CHARS)
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, MAX_CHARS)
    .toWellFormed();
