/** Recall: summaries get rows in the full-text index, and messages can be found by time. */
export const version = 3;

export const sql = `
CREATE TABLE summary_refs (
  summary_ref INTEGER PRIMARY KEY,   -- the summary's row in the full-text index
  summary_id  TEXT NOT NULL UNIQUE REFERENCES summaries (summary_id) ON DELETE CASCADE
) STRICT;
INSERT INTO summary_refs (summary_id) SELECT summary_id FROM summaries ORDER BY created_at, summary_id;

CREATE INDEX messages_by_time ON messages (conversation_id, created_at);
`;
