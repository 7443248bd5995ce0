/** Stale summaries are few among many, and queried at every idle moment: they are found without reading the others. */
export const version = 4;

export const sql = `
CREATE INDEX stale_summaries ON summaries (conversation_id, depth, start_pos) WHERE stale = 1;
`;
