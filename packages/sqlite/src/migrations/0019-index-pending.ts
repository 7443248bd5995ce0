/** A message that waits for the full-text index has a row, written with the message, instead of every message after a number. */
export const version = 19;

export const sql = `
CREATE TABLE index_pending (
  message_id INTEGER PRIMARY KEY REFERENCES messages (message_id) ON DELETE CASCADE  -- stored and not in the full-text index yet
) STRICT;

INSERT INTO index_pending (message_id)
SELECT message_id FROM messages
WHERE message_id > (SELECT value FROM meta WHERE key = 'index_until') AND forgotten_at IS NULL;
DELETE FROM meta WHERE key = 'index_until';

-- A trigger, so that no way of storing a message can leave it out.
CREATE TRIGGER index_new_message AFTER INSERT ON messages WHEN new.forgotten_at IS NULL
BEGIN INSERT INTO index_pending (message_id) VALUES (new.message_id); END;
`;
