/**
 * Replaces one summary by another, wherever it is: in the cover or below another summary.
 *
 * Invariant: a replacement has the span and the counts of what it replaces, and its sources or their replacements; the old one is retired
 * and can still be opened. A summary made from something stale is itself stale.
 */
import { must } from "../model/errors.ts";
import { HIDDEN } from "../model/message.ts";
import { nameSource } from "../store/folding.ts";
import type { PublishResult, SummaryReplacement } from "../store/folding.ts";
import { Changes } from "./changes.ts";
import type { RowWriter } from "./changes.ts";
import { Head } from "./head.ts";
import { read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { RunRow, SummarySpan } from "./reads.ts";
import { addSpend, askSpendId } from "./spend.ts";
import { addSummary, describeSummary, isSameSpan, nameSources } from "./summary.ts";

export const STALE: PublishResult = { kind: "stale" };

/** Whether these are the sources, in the versions, that a new text was made from. */
export function isMadeFrom(rows: readonly RunRow[], sourceKeys: readonly string[]): boolean {
  const nameRow = ({ hidden, message_id, version_id, summary_id }: RunRow): string =>
    nameSource({
      hidden,
      messageId: message_id,
      versionId: version_id,
      summary: summary_id === null ? null : { summaryId: summary_id },
    });
  return rows.length === sourceKeys.length && rows.every((row, i) => nameRow(row) === sourceKeys[i]);
}

/** Where the summary is that is to be replaced; or the result, if there is none, or an earlier run of the plan stored the new one and its answer was lost. */
export function* findReplaced(
  changes: Changes,
  { oldId, summary }: Omit<SummaryReplacement, "sourceKeys">,
): Asking<PublishResult | { readonly kind: "found"; readonly conversationId: number }> {
  const { summaryId, tokens, spent } = summary;
  const [known, spendId] = yield* together(read.summaries([oldId, summaryId]), askSpendId(spent));
  const old = known.find(({ summary_id }) => summary_id === oldId);
  if (old && known.length > 1)
    return { kind: "published", summaryId, tokensBefore: old.tokens, tokensAfter: tokens };
  addSpend(changes, spendId, spent);
  return old ? { kind: "found", conversationId: old.conversation_id } : STALE;
}

export function* planReplaceSummary(replacement: SummaryReplacement, now: number): Plan<PublishResult> {
  const changes = new Changes();
  const { oldId, summary, sourceKeys } = replacement;
  const found = yield* findReplaced(changes, replacement);
  if (found.kind !== "found") return changes.done(found);
  const [[headRow], [old], rows] = yield* together(
    read.lockHeads([found.conversationId]),
    read.summaries([oldId]),
    read.currentSources(oldId),
  );
  if (!headRow || old?.state !== "cover" || !isMadeFrom(rows, sourceKeys)) return changes.done(STALE);
  const head = new Head(headRow);
  yield* putInstead(changes, head, replacement, now);
  head.save(changes, now);
  const { summaryId, tokens } = summary;
  return changes.done({ kind: "published", summaryId, tokensBefore: old.tokens, tokensAfter: tokens });
}

/** Puts the new summary where the old one was, and retires the old one. */
export function* putInstead(
  changes: Changes,
  head: Head,
  { oldId, summary }: Omit<SummaryReplacement, "sourceKeys">,
  now: number,
): Asking<void> {
  const { conversationId } = head;
  const [[found], rows, derived, ahead] = yield* together(
    read.summaries([oldId]),
    read.currentSources(oldId),
    read.derivedFrom(oldId),
    read.madeAhead(conversationId),
  );
  const old = must(found, `summary ${oldId}`);
  const isStale = rows.some((row) => row.stale === 1);
  const row = describeSummary(head, { conversationId, summary, now, state: "cover", isStale }, rows);
  addSummary(changes, row, nameSources(rows));
  for (const { summary_id, ordinal } of derived)
    changes.update("summary_parents", { summary_id, ordinal }, { parent_summary_id: row.summary_id });
  const item = yield* findItem(old);
  if (item) takePlace(changes, head, oldId, row, item);
  else putInForce(changes, head, oldId, row.summary_id);
  // A text that was made ahead for the same place is no longer needed.
  for (const span of ahead)
    if (span.state === "prepared" && isSameSpan(span, old))
      changes.update("summaries", { summary_id: span.summary_id }, { state: "retired" });
  head.noteSummary(item !== null);
}

/** The item of a summary that is itself in the cover. */
export function* findItem({
  conversation_id,
  summary_id,
  start_pos,
  start_seq,
}: SummarySpan): Asking<RunRow | null> {
  const point = { startPosition: start_pos, seq: start_seq };
  const [item] = yield* read.run(conversation_id, point, point);
  return item?.summary_id === summary_id ? item : null;
}

/** Puts a stored summary in force instead of the old one. */
export function putInForce(writer: RowWriter, head: Head, oldId: string, summary_id: string): void {
  writer.update("summaries", { summary_id }, { state: "cover", published_seq: head.seq });
  writer.update("summaries", { summary_id: oldId }, { state: "retired" });
}

/** The same, if the old one is itself in the cover, as this item. */
export function takePlace(
  writer: RowWriter,
  head: Head,
  oldId: string,
  { summary_id, tokens, messages }: Pick<SummarySpan, "summary_id" | "tokens" | "messages">,
  item: RunRow,
): void {
  putInForce(writer, head, oldId, summary_id);
  // A summary of which nothing is shown any more is not shown either.
  const hidden = messages > 0 ? 0 : item.hidden || HIDDEN.branch;
  const key = { conversation_id: head.conversationId, start_pos: item.start_pos, seq: item.seq };
  writer.update("context_items", key, { summary_id, tokens, messages, hidden });
  head.noteShown(
    messages - item.messages,
    (hidden === 0 ? tokens : 0) - (item.hidden === 0 ? item.tokens : 0),
  );
}
