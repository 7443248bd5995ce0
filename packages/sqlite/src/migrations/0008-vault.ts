/**
 * The vault: sealed values that were removed from messages, and keyed commitments to what arrived. Empty unless there is a redaction key.
 */
export const version = 8;

export const sql = `
CREATE TABLE redactions (
  message_id INTEGER PRIMARY KEY REFERENCES messages (message_id),
  key_id     TEXT NOT NULL,        -- names the key of the keyed commitment
  keyed      BLOB NOT NULL,        -- HMAC-SHA-256 (salt, bytes handed in, before redaction)
  sealed     INTEGER NOT NULL      -- how many values were sealed; 0 when they were dropped
) STRICT;

CREATE TABLE sealed_values (
  message_id INTEGER NOT NULL REFERENCES messages (message_id),
  ordinal    INTEGER NOT NULL,     -- which placeholder of the message, from 0
  at         INTEGER NOT NULL,     -- where the placeholder stands in the bytes as stored
  length     INTEGER NOT NULL,
  key_id     TEXT NOT NULL,        -- names the key that sealed it
  nonce      BLOB NOT NULL,
  sealed     BLOB NOT NULL,        -- AES-256-GCM: ciphertext and tag
  PRIMARY KEY (message_id, ordinal)
) STRICT, WITHOUT ROWID;
`;
