/** Reading a cover needs only the time of each summary: it is found without reading the texts, which are long. */
export const version = 5;

export const sql = `
CREATE INDEX summary_times ON summaries (summary_id, latest_at);
`;
