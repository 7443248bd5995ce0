/**
 * The row of a summary, derived from the rows it is made of. Folding, remaking and forgetting all use this.
 *
 * Invariant: the hash binds everything about a summary that never changes; the links to its sources are numbered from 0 without a gap.
 */
import { hash } from "node:crypto";
import { must } from "../model/errors.ts";
import type { StoreSummary } from "../store/folding.ts";
import type { MovedSummary } from "../store/transfer.ts";
import type { Changes } from "./changes.ts";
import type { RunRow, SummarySpan } from "./reads.ts";
import type { Row } from "./tables.ts";

export type SummaryRequest = Pick<
  StoreSummary,
  "conversationId" | "summary" | "state" | "isRoot" | "seenRevision" | "now"
> & { readonly isStale?: boolean };

/** What the row of a summary needs of a conversation's head. */
interface HeadFacts {
  readonly seq: number;
  readonly epochSeq: number;
  readonly foldRevision: number;
}

type BoundFacts = Pick<
  Row<"summaries">,
  | "summary_id"
  | "conversation_id"
  | "kind"
  | "depth"
  | "content"
  | "tokens"
  | "model"
  | "level"
  | "created_at"
  | "previous_id"
>;

export function hashSummary(row: BoundFacts): Buffer {
  const { summary_id, conversation_id, kind, depth, content, tokens, model, level, created_at, previous_id } =
    row;
  const bound = [summary_id, conversation_id, kind, depth, content, tokens, model, level, created_at];
  // Without a previous context, the hash is as it was before those were stored.
  return hash("sha256", JSON.stringify(previous_id === null ? bound : [...bound, previous_id]), "buffer");
}

export const total = <R>(rows: readonly R[], count: (row: R) => number | null): number =>
  rows.reduce((sum, row) => sum + (count(row) ?? 0), 0);

type SpanEnds = Pick<SummarySpan, "depth" | "start_pos" | "start_seq" | "end_pos" | "end_seq">;

export const isSameSpan = (a: SpanEnds, b: SpanEnds): boolean =>
  a.depth === b.depth &&
  a.start_pos === b.start_pos &&
  a.start_seq === b.start_seq &&
  a.end_pos === b.end_pos &&
  a.end_seq === b.end_seq;

/** The row of a new summary over these rows. */
export function describeSummary(
  head: HeadFacts,
  request: SummaryRequest,
  rows: readonly RunRow[],
): Row<"summaries"> {
  const { summary, state } = request;
  const sources = rows.filter((row) => row.summary_id !== null);
  const shown = rows.filter((row) => row.hidden === 0);
  const timed = chooseTimed(shown.length > 0 ? shown : rows);
  const first = must(rows[0], "a source");
  const last = must(rows.at(-1), "a source");
  const bound = {
    summary_id: summary.summaryId,
    conversation_id: request.conversationId,
    kind: sources.length > 0 ? ("condensed" as const) : ("leaf" as const),
    depth: sources.reduce((deepest, row) => Math.max(deepest, row.depth + 1), 0),
    content: summary.content,
    tokens: summary.tokens,
    model: summary.model,
    level: summary.level,
    created_at: request.now,
    previous_id: summary.previousId ?? null,
  };
  return {
    ...bound,
    state,
    start_pos: first.start_pos,
    start_seq: first.seq,
    end_pos: last.end_pos,
    end_seq: last.end_seq ?? last.seq,
    messages: total(shown, (row) => row.messages),
    descendant_count: total(sources, (row) => row.descendant_count) + sources.length,
    source_tokens: total(shown, (row) => row.tokens),
    earliest_at: timed.reduce(
      (earliest, row) => Math.min(earliest, row.earliest_at),
      Number.MAX_SAFE_INTEGER,
    ),
    latest_at: timed.reduce((latest, row) => Math.max(latest, row.latest_at), 0),
    hash: hashSummary(bound),
    stale: request.isStale === true ? 1 : 0,
    is_root: request.isRoot === true ? 1 : 0,
    // What no context can have missed counts as made before the epoch.
    made_at_seq:
      request.seenRevision === undefined || request.seenRevision === head.foldRevision
        ? head.seq
        : Math.max(0, head.epochSeq - 1),
    published_seq: state === "cover" ? head.seq : null,
  };
}

/** A guessed time does not widen the span, unless there is no other. */
function chooseTimed(rows: readonly RunRow[]): readonly RunRow[] {
  const dated = rows.filter((row) => row.dated !== 0);
  return dated.length > 0 ? dated : rows;
}

/** Everything in the row of a summary that comes from elsewhere, except its sources. */
export interface MovedSummaryFacts extends Omit<MovedSummary, "sources"> {
  readonly conversationId: number;
}

export function describeMoved(facts: MovedSummaryFacts): Row<"summaries"> {
  const bound = {
    summary_id: facts.summaryId,
    conversation_id: facts.conversationId,
    kind: facts.kind,
    depth: facts.depth,
    content: facts.content,
    tokens: facts.tokens,
    model: facts.model,
    level: facts.level,
    created_at: facts.createdAt,
    previous_id: facts.previousId,
  };
  return {
    ...bound,
    state: facts.state,
    start_pos: facts.startPosition,
    start_seq: facts.startSeq,
    end_pos: facts.endPosition,
    end_seq: facts.endSeq,
    messages: facts.messages,
    descendant_count: facts.descendantCount,
    source_tokens: facts.sourceTokens,
    earliest_at: facts.earliestAt,
    latest_at: facts.latestAt,
    hash: hashSummary(bound),
    stale: facts.isStale ? 1 : 0,
    is_root: facts.isRoot ? 1 : 0,
    made_at_seq: facts.madeAtSeq,
    published_seq: facts.publishedSeq,
  };
}

/** Sources in order: messages by their local number, summaries by their id. */
export function addSummary(
  changes: Changes,
  row: Row<"summaries">,
  sources: readonly (number | string)[],
): void {
  const { summary_id, conversation_id, content } = row;
  changes.insert("summaries", row);
  for (const [ordinal, source] of sources.entries()) {
    if (typeof source === "number")
      changes.insert("summary_messages", { summary_id, ordinal, message_id: source });
    else changes.insert("summary_parents", { summary_id, ordinal, parent_summary_id: source });
  }
  changes.index.push({
    kind: "add-summary",
    summaryId: summary_id,
    conversationId: conversation_id,
    content,
  });
}

/** The sources of a summary over these rows. */
export const nameSources = (rows: readonly RunRow[]): (number | string)[] =>
  rows.map((row) => row.summary_id ?? must(row.message_id, "a message or a summary"));
