/**
 * Summaries are long, and their texts are in the middle of their rows: queries that need many of them without their texts read only these
 * indexes. Drawing a graph reads the outlines of a conversation in drawing order; searching reads time and place of those found.
 *
 * Their condition is true for every summary. It is there because a query must repeat it to use the index: so no query that has a better
 * index ever picks this one.
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
