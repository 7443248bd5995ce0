/**
 * Replaces a summary by its sources: these are in the context again, and it is retired. Spans and counts are those of the sources, so cover
 * and graph stay correct.
 */
import { EngineError, must } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import type { DissolveResult } from "../store/repair.ts";
import { Changes } from "./changes.ts";
import { lockHeads } from "./heads.ts";
import { read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { RunRow } from "./reads.ts";
import { findItem } from "./replace.ts";
import { total } from "./summary.ts";

/** What would change; null for a summary that is not itself in the cover. */
interface Dissolution {
  readonly report: DissolveResult;
  readonly item: RunRow;
  readonly sources: readonly RunRow[];
}

function* look(summaryId: string): Asking<Dissolution | null> {
  const [summary] = yield* read.summaries([summaryId]);
  if (!summary) throw new EngineError("not_found", `cannot dissolve ${summaryId}: there is no such summary`);
  const { conversation_id: conversationId, start_pos: startPosition, start_seq: seq } = summary;
  const item = yield* findItem(summary);
  if (!item) return null;
  const [sources, around] = yield* together(
    read.currentSources(summaryId),
    read.itemsAround(conversationId, { startPosition, seq }),
  );
  const report = {
    summaryId,
    conversationId,
    sources: sources.map((row) => ({
      id: row.summary_id ?? formatMessageId(must(row.message_id, "a message or a summary")),
      tokens: row.tokens,
      isShown: row.hidden === 0,
    })),
    tokensBefore: shownTokens([item]),
    tokensAfter: shownTokens(sources),
    ordinal: around.before,
    itemsBehind: around.behind,
  };
  return { report, item, sources };
}

const shownTokens = (rows: readonly RunRow[]): number =>
  total(rows, (row) => (row.hidden === 0 ? row.tokens : 0));

export function* planDissolution(summaryId: string): Asking<DissolveResult | null> {
  return (yield* look(summaryId))?.report ?? null;
}

export function* planDissolve(summaryId: string, now: number): Plan<DissolveResult | null> {
  const changes = new Changes();
  const known = yield* read.summaries([summaryId]);
  const heads = yield* lockHeads(
    changes,
    known.map((summary) => summary.conversation_id),
  );
  const found = yield* look(summaryId);
  if (!found) return changes.done(null);
  const { report, item, sources } = found;
  const { conversationId: conversation_id } = report;
  const [derived, ahead] = yield* together(read.derivedFrom(summaryId), read.madeAhead(conversation_id));
  const head = heads.of(conversation_id);
  changes.delete("context_items", { conversation_id, start_pos: item.start_pos, seq: item.seq });
  for (const { start_pos, seq, end_pos, message_id, summary_id, tokens, messages, depth, hidden } of sources)
    changes.insert("context_items", {
      conversation_id,
      start_pos,
      seq,
      end_pos,
      message_id,
      summary_id,
      tokens,
      messages,
      depth,
      hidden,
    });
  changes.update("summaries", { summary_id: summaryId }, { state: "retired" });
  // Summaries made ahead from it cannot be published once it has left the cover.
  for (const { summary_id } of ahead)
    if (derived.some((link) => link.summary_id === summary_id))
      changes.update("summaries", { summary_id }, { state: "retired" });
  head.noteShown(0, report.tokensAfter - report.tokensBefore);
  head.noteSummary(true, 0);
  heads.save(now);
  return changes.done(report);
}
