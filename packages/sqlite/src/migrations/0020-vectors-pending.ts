/** A message that waits for a vector has a row, written with the message, instead of every message after a number. */
export const version = 20;

export const sql = `
CREATE TABLE vectors_pending (
  message_id INTEGER NOT NULL REFERENCES messages (message_id) ON DELETE CASCADE,  -- may need a vector and was not looked at yet
  space_id   INTEGER NOT NULL REFERENCES vector_spaces (space_id) ON DELETE CASCADE,
  PRIMARY KEY (message_id, space_id)
) STRICT, WITHOUT ROWID;

-- A space that was never filled is filled by a walk through all messages. The ids come from an index that holds nothing else.
INSERT INTO vectors_pending (message_id, space_id)
SELECT m.message_id, s.space_id FROM vector_spaces s CROSS JOIN messages m INDEXED BY messages_by_seq
WHERE s.filled_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM message_vectors v WHERE v.message_id = m.message_id AND v.space_id = s.space_id);

CREATE TRIGGER embed_new_message AFTER INSERT ON messages WHEN new.forgotten_at IS NULL
BEGIN INSERT INTO vectors_pending (message_id, space_id) SELECT new.message_id, space_id FROM vector_spaces; END;

-- A message that was hidden lost its vectors; its newest version gets them again.
CREATE TRIGGER embed_shown_message AFTER UPDATE OF hidden_now ON messages WHEN old.hidden_now <> 0 AND new.hidden_now = 0
BEGIN
  INSERT OR IGNORE INTO vectors_pending (message_id, space_id)
  SELECT coalesce(new.newest, new.message_id), space_id FROM vector_spaces;
END;
`;
