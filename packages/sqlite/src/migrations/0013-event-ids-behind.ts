/** An import writes event ids after messages, many at a time: sessions whose ids are not all written yet. */
export const version = 13;

export const sql = `
CREATE TABLE event_ids_behind (
  session_ref INTEGER PRIMARY KEY REFERENCES sessions (session_ref),
  until       INTEGER NOT NULL  -- messages of the session behind this one may lack their row in event_ids
) STRICT;
`;
