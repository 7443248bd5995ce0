/** Search by meaning: vectors of messages, one space for each model. Empty unless a model is configured. */
export const version = 7;

export const sql = `
CREATE TABLE vector_spaces (
  space_id     INTEGER PRIMARY KEY,
  model        TEXT NOT NULL UNIQUE,  -- vectors of different models cannot be compared
  dimensions   INTEGER NOT NULL,      -- 0 until the first vectors are stored
  created_at   INTEGER NOT NULL,
  filled_at    INTEGER,               -- when it first held every message; from then on it may replace another space
  lease_holder TEXT,                  -- the process that fills it, until the lease ends
  lease_until  INTEGER
) STRICT;

CREATE TABLE message_vectors (
  vector_id  INTEGER PRIMARY KEY,
  space_id   INTEGER NOT NULL REFERENCES vector_spaces (space_id),
  message_id INTEGER NOT NULL REFERENCES messages (message_id),
  vector     BLOB NOT NULL            -- float32, little-endian, of length one; empty for a message without text
) STRICT;
CREATE UNIQUE INDEX vectors_of_message ON message_vectors (message_id, space_id);
`;
