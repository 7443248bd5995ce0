/**
 * Summaries are long, and their texts stand in the middle of their rows: whoever wants many of them, but not their texts, reads these indexes
 * alone. Drawing a graph takes the outlines of a conversation in the order they are drawn; searching takes time and place of those found.
 *
 * Their condition holds for every summary. It is there because a query must repeat it to be given the index: no other query, with a better
 * one for its purpose, ever takes it.
 */
export const version = 10;

export const sql = `
CREATE INDEX summary_outlines ON summaries (
  conversation_id, start_pos, depth, summary_id, kind, state, end_pos, messages, descendant_count, tokens, source_tokens,
  earliest_at, latest_at, model, level, stale, is_root, published_seq, created_at
) WHERE depth >= 0;
DROP INDEX summary_times;
CREATE INDEX summary_times ON summaries (summary_id, latest_at, conversation_id, state, depth) WHERE depth >= 0;
`;
