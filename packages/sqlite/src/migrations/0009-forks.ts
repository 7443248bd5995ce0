/** Forks: what a conversation that began as a copy of another shows of it, chosen once. The texts are not copied. */
export const version = 9;

export const sql = `
CREATE TABLE fork_items (
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),  -- the fork
  ordinal         INTEGER NOT NULL,
  kind            TEXT NOT NULL CHECK (kind IN ('message', 'stub', 'summary', 'range')),
  message_id      INTEGER,         -- a message of the parent, shown whole or as a stub
  summary_id      TEXT,            -- a summary of the parent
  first_id        INTEGER,         -- of a range: the messages it begins and ends with
  last_id         INTEGER,
  start_pos       INTEGER NOT NULL,  -- positions in the parent
  end_pos         INTEGER NOT NULL,
  tokens          INTEGER NOT NULL,
  messages        INTEGER NOT NULL,  -- messages of the parent it stands for
  depth           INTEGER NOT NULL,
  earliest_at     INTEGER,
  latest_at       INTEGER,
  PRIMARY KEY (conversation_id, ordinal)
) STRICT, WITHOUT ROWID;
`;
