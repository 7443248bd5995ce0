/**
 * What plans may ask an archive: few, narrow reads, by key sets and ranges. An adapter that answers at once implements this as it stands. The
 * number of these reads decides how much a further database has to bring.
 */
import type { Row } from "./tables.ts";

/** The growing end of a conversation: all that a write advances. */
export type HeadRow = Pick<
  Row<"conversations">,
  | "conversation_id"
  | "session_id"
  | "head_seq"
  | "head_chain"
  | "message_count"
  | "shown_messages"
  | "shown_tokens"
  | "arrival_bytes"
  | "last_position"
  | "first_at"
  | "last_at"
  | "summary_count"
  | "fold_revision"
  | "epoch_seq"
>;

/** Where an item of a cover stands. */
export interface ItemPlace {
  readonly startPosition: number;
  readonly seq: number;
}

/** An item of a cover, or a source of a summary, with what a summary over it has to know. */
export interface RunRow extends Omit<Row<"context_items">, "conversation_id"> {
  /** Of a message: its newest version. */
  readonly version_id: number | null;
  readonly earliest_at: number;
  readonly latest_at: number;
  /** Of a summary. */
  readonly descendant_count: number | null;
  readonly end_seq: number | null;
  readonly stale: number | null;
}

/** A summary without its text. */
export type SummarySpan = Pick<
  Row<"summaries">,
  | "summary_id"
  | "depth"
  | "state"
  | "start_pos"
  | "start_seq"
  | "end_pos"
  | "end_seq"
  | "messages"
  | "descendant_count"
  | "tokens"
  | "earliest_at"
  | "latest_at"
  | "stale"
  | "is_root"
>;

/** One source of a summary: a message, or another summary. */
export interface SourceLink {
  readonly summary_id: string;
  readonly ordinal: number;
  readonly message_id: number | null;
  readonly source_id: string | null;
}

export interface Reads {
  /** The head of a conversation, for this write alone until it ends. */
  lockHead(conversationId: number): HeadRow | null;
  /** The items of a cover from one to another, in order. */
  run(conversationId: number, first: ItemPlace, last: ItemPlace): RunRow[];
  /** In any order; ids that are not known are left out. */
  summaries(summaryIds: readonly string[]): SummarySpan[];
  /** The sources of summaries, of each in order. */
  sources(summaryIds: readonly string[]): SourceLink[];
  /** Summaries of a conversation that were made ahead and stand in reserve or wait to be published. */
  madeAhead(conversationId: number): SummarySpan[];
  /** Published summaries of a conversation that tell something old. */
  staleSummaries(conversationId: number): SummarySpan[];
}

/** Every read by its name; the compiler sees to it that none is missing. */
const NAMES: Readonly<Record<keyof Reads, true>> = {
  lockHead: true,
  run: true,
  summaries: true,
  sources: true,
  madeAhead: true,
  staleSummaries: true,
};

export const READ_NAMES = Object.keys(NAMES) as readonly (keyof Reads)[];
