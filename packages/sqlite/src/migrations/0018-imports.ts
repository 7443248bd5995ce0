/** What each import stored, so that it can be removed again; for older archives, as far as they recorded it. */
export const version = 18;

export const sql = `
CREATE TABLE imports (
  import_id       TEXT NOT NULL,     -- one run of an import: imp_ and 16 hex digits
  conversation_id INTEGER NOT NULL REFERENCES conversations (conversation_id),
  source          TEXT NOT NULL,     -- the file or folder it read
  at              INTEGER NOT NULL,  -- when it began
  messages        INTEGER NOT NULL,  -- how many rows of messages it stored there, revisions included
  PRIMARY KEY (import_id, conversation_id)
) STRICT, WITHOUT ROWID;

-- A session that only imports wrote to has the cursor of an import, which a host would have replaced by its own, and no turns or provisional ids.
INSERT INTO imports (import_id, conversation_id, source, at, messages)
SELECT printf('imp_%016x', c.conversation_id), c.conversation_id, 'a transcript, before imports were recorded',
       coalesce(c.stored_at, c.created_at), c.message_count
FROM conversations c
WHERE c.message_count > 0 AND EXISTS (SELECT 1 FROM placements p WHERE p.conversation_id = c.conversation_id)
  AND NOT EXISTS (
    SELECT 1 FROM placements p JOIN sessions s USING (session_ref)
    WHERE p.conversation_id = c.conversation_id
      AND (CASE WHEN json_valid(s.cursor) THEN json_type(s.cursor, '$.import') END IS NOT 'text'
        OR s.session_ref IN (SELECT session_ref FROM turns)
        OR EXISTS (SELECT 1 FROM event_ids e WHERE e.session_ref = s.session_ref AND e.kind = 1)));
`;
