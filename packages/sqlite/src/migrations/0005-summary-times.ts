/** Reading a cover asks each summary for its time and nothing else: it is found without a way through the texts, which are long. */
export const version = 5;

export const sql = `
CREATE INDEX summary_times ON summaries (summary_id, latest_at);
`;
