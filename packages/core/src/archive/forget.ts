/**
 * Forgetting: the one way to erase something stored. Body and salt are erased, the commitment stays, so the chain can still be walked and
 * reveals nothing about the text. A record in the chain says which messages and files were erased, and why. Summaries made from them are
 * replaced by new ones under new ids; of the old ones only a note about that is left.
 *
 * Invariant: once the change set is written, no row and no index term contains the text.
 */
import { HIDDEN } from "../model/message.ts";
import { estimateTextTokens } from "../text/tokens.ts";
import type { ForgetResult, ForgetPlan, ForgetRequest } from "../store/repair.ts";
import { Changes } from "./changes.ts";
import { findCopies } from "./copied.ts";
import { dropVainDebts } from "./debts.ts";
import { askLocked } from "./heads.ts";
import type { Heads } from "./heads.ts";
import { changeHidden } from "./hide.ts";
import { flush, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { ForgettableVersion, TouchedSummary } from "./reads.ts";
import { isMadeFrom, putInstead } from "./replace.ts";
import { hashSummary } from "./summary.ts";
import type { Row } from "./tables.ts";

/** What forgetting would affect. */
interface Selection {
  readonly versions: readonly ForgettableVersion[];
  readonly files: readonly Row<"large_files">[];
  readonly summaries: readonly TouchedSummary[];
}

function* select(messageIds: readonly number[], alsoSummaryIds: readonly string[]): Asking<Selection> {
  const named = yield* read.forgettable(messageIds);
  const copies = yield* findCopies(named);
  const versions = copies.length === 0 ? named : yield* read.forgettable([...messageIds, ...copies]);
  const ids = versions.map((version) => version.message_id);
  const [files, summaries] = yield* together(read.filesOnlyOf(ids), read.summariesAbove(ids, alsoSummaryIds));
  return { versions, files, summaries };
}

export function* planForgetting(
  messageIds: readonly number[],
  alsoSummaryIds: readonly string[],
): Asking<ForgetPlan> {
  return toPlan(yield* select(messageIds, alsoSummaryIds));
}

function toPlan({ versions, files, summaries }: Selection): ForgetPlan {
  return {
    messageIds: versions.map((version) => version.message_id),
    conversationIds: [...new Set(versions.map((version) => version.conversation_id))],
    arrivalBytes: versions.reduce((sum, version) => sum + version.arrival_bytes, 0),
    files: files.map((file) => ({
      fileId: file.file_id,
      blob: file.storage_path,
      byteSize: file.byte_size,
    })),
    summaries: summaries.map((summary) => ({
      summaryId: summary.summary_id,
      conversationId: summary.conversation_id,
      depth: summary.depth,
      isPublished: summary.state === "cover",
      tokens: summary.tokens,
    })),
  };
}

export function* planForget(request: ForgetRequest): Plan<ForgetResult> {
  const changes = new Changes();
  const { found: selection, heads } = yield* askLocked(
    changes,
    () => select(request.messageIds, request.alsoSummaryIds),
    listConversations,
  );
  const { summaries } = selection;
  const isCounted = listConversations(selection).every((id) => {
    const { summaryCount } = heads.of(id);
    return summaryCount === (request.summaryCounts?.get(id) ?? summaryCount);
  });
  if (!isCounted || !(yield* matches(summaries, request))) return changes.done({ kind: "stale" });
  yield* eraseMessages(changes, heads, selection, request);
  yield* replaceSummaries(changes, heads, summaries, request);
  heads.save(request.now);
  yield* flush(changes);
  yield* dropVainDebts(changes, listConversations(selection));
  return changes.done({ kind: "forgotten", plan: toPlan(selection) });
}

const listConversations = ({ versions, files, summaries }: Selection): number[] =>
  [...versions, ...files, ...summaries].map((row) => row.conversation_id);

/** Whether the new texts are for exactly the affected published summaries, made from their current sources. */
function* matches(summaries: readonly TouchedSummary[], { replacements }: ForgetRequest): Asking<boolean> {
  const published = summaries.filter((summary) => summary.state === "cover");
  const offered = new Map(replacements.map((replacement) => [replacement.oldId, replacement]));
  if (published.length !== offered.size) return false;
  const sources = yield* together(...published.map(({ summary_id }) => read.currentSources(summary_id)));
  return published.every(({ summary_id }, i) => {
    const replacement = offered.get(summary_id);
    return replacement !== undefined && isMadeFrom(sources[i] ?? [], replacement.sourceKeys);
  });
}

const NOTHING = new Uint8Array(0);

function* eraseMessages(
  changes: Changes,
  heads: Heads,
  { versions, files }: Selection,
  { reason, now }: ForgetRequest,
): Asking<void> {
  const firsts = versions.filter(({ revises }) => revises === null);
  const hidden = firsts.map((message) => ({ message, after: message.hidden_now | HIDDEN.forgotten }));
  yield* changeHidden(changes, heads, hidden);
  for (const { message_id } of versions) {
    changes.delete("message_parts", { message_id });
    changes.delete("sealed_values", { message_id });
    changes.delete("redactions", { message_id });
    const erased = { body: NOTHING, salt: NOTHING, encoding: 0, forgotten_at: now };
    changes.update("messages", { message_id }, erased);
    changes.index.push({ kind: "remove-message", messageId: message_id });
  }
  for (const { file_id } of files) changes.delete("large_files", { file_id });
  const touched = new Set([...versions, ...files].map((row) => row.conversation_id));
  for (const id of touched) {
    const isHere = (row: { readonly conversation_id: number }): boolean => row.conversation_id === id;
    const seqs = versions.filter(isHere).map(({ seq }) => seq);
    const fileIds = files.filter(isHere).map(({ file_id }) => file_id);
    heads.of(id).takeRecord(changes, "forget", { reason, seqs, files: fileIds }, now);
    // Words about the content; where it was said is erased with the last of it.
    const words = { title: null, name: null, tags: null, branch: null };
    const origin = heads.of(id).isShown ? {} : { project: null, agent: null, model: null };
    changes.update("conversations", { conversation_id: id }, { ...words, ...origin });
  }
}

/** From the finest up, so that each new one is made from new ones; changes are flushed in between, to be read. */
function* replaceSummaries(
  changes: Changes,
  heads: Heads,
  summaries: readonly TouchedSummary[],
  { replacements, now }: ForgetRequest,
): Asking<void> {
  const offered = new Map(replacements.map((replacement) => [replacement.oldId, replacement]));
  for (const summary of summaries) {
    const replacement = offered.get(summary.summary_id);
    yield* flush(changes);
    if (replacement) yield* putInstead(changes, heads.of(summary.conversation_id), replacement, now);
    eraseSummary(changes, summary, renderNote(now, replacement?.summary.summaryId ?? null));
  }
}

const NOTE = "[LCM forgotten] The content of this summary was removed on request";

function renderNote(at: number, standsInstead: string | null): string {
  const day = new Date(at).toISOString().slice(0, 10);
  const instead = standsInstead === null ? "" : ` ${standsInstead} replaces it.`;
  return `${NOTE} on ${day}.${instead}`;
}

/** Whether this is left of a summary that was forgotten. */
export const isErased = (content: string): boolean => content.startsWith(NOTE);

function eraseSummary(changes: Changes, summary: TouchedSummary, note: string): void {
  const { summary_id, conversation_id: conversationId } = summary;
  const tokens = estimateTextTokens(note);
  const hash = hashSummary({ ...summary, content: note, tokens });
  const erased = { state: "retired", content: note, tokens, hash, is_root: 0 } as const;
  changes.update("summaries", { summary_id }, erased);
  changes.index.push({ kind: "remove-summary", summaryId: summary_id });
  changes.index.push({ kind: "add-summary", summaryId: summary_id, conversationId, content: note });
}
