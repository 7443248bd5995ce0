/** The questions of plans, answered at once from the connection, inside the transaction of the plan. */
import type { HeadRow, ItemPlace, Reads, RunRow, SourceLink, SummarySpan } from "../../archive/reads.ts";
import type { Connection } from "./connection.ts";

export const SELECT_HEAD = `
  SELECT conversation_id, session_id, head_seq, head_chain, message_count, shown_messages, shown_tokens, arrival_bytes, last_position,
         first_at, last_at, summary_count, fold_revision, epoch_seq
  FROM conversations WHERE conversation_id = ?`;
const RUN = `
  SELECT i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden,
         coalesce(m.newest, m.message_id) AS version_id, coalesce(m.created_at, s.earliest_at) AS earliest_at,
         coalesce(m.created_at, s.latest_at) AS latest_at, s.descendant_count, s.end_seq, s.stale
  FROM context_items i LEFT JOIN messages m ON m.message_id = i.message_id LEFT JOIN summaries s ON s.summary_id = i.summary_id
  WHERE i.conversation_id = ?1 AND (i.start_pos, i.seq) >= (?2, ?3) AND (i.start_pos, i.seq) <= (?4, ?5)
  ORDER BY i.start_pos, i.seq`;
const SPAN = `
  summary_id, depth, state, start_pos, start_seq, end_pos, end_seq, messages, descendant_count, tokens, earliest_at, latest_at, stale, is_root`;
const SUMMARY = `SELECT ${SPAN} FROM summaries WHERE summary_id = ?`;
const SOURCES = `
  SELECT summary_id, ordinal, message_id, NULL AS source_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT summary_id, ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY ordinal`;
const MADE_AHEAD = `SELECT ${SPAN} FROM summaries WHERE conversation_id = ? AND state IN ('prepared', 'reserve')`;
const STALE = `
  SELECT ${SPAN} FROM summaries INDEXED BY stale_summaries WHERE conversation_id = ? AND state = 'cover' AND stale = 1`;

export class PlanReads implements Reads {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The write transaction is the lock. */
  lockHead(conversationId: number): HeadRow | null {
    return this.#connection.get<HeadRow>(SELECT_HEAD, conversationId) ?? null;
  }

  run(conversationId: number, first: ItemPlace, last: ItemPlace): RunRow[] {
    const range = [first.startPosition, first.seq, last.startPosition, last.seq] as const;
    return this.#connection.all<RunRow>(RUN, conversationId, ...range);
  }

  summaries(summaryIds: readonly string[]): SummarySpan[] {
    return summaryIds.flatMap((id) => this.#connection.all<SummarySpan>(SUMMARY, id));
  }

  sources(summaryIds: readonly string[]): SourceLink[] {
    return summaryIds.flatMap((id) => this.#connection.all<SourceLink>(SOURCES, id));
  }

  madeAhead(conversationId: number): SummarySpan[] {
    return this.#connection.all<SummarySpan>(MADE_AHEAD, conversationId);
  }

  staleSummaries(conversationId: number): SummarySpan[] {
    return this.#connection.all<SummarySpan>(STALE, conversationId);
  }
}
