/** Seals: hashes of rows that neither the chain nor a derivation proves; see `../seals.ts`. */
export const version = 16;

/** Existing rows are sealed as they are, so that an older archive verifies. A migration that changes sealed rows does the same. */
export const reseals = true;

export const sql = `
CREATE TABLE seals (
  kind TEXT NOT NULL,  -- session, conversation, summary or redaction
  id   TEXT NOT NULL,  -- which one
  hash BLOB NOT NULL,  -- SHA-256 over the rows it seals
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

-- A program that was started before this migration keeps no seals. Every append and every fold changes one of these columns, and without the
-- function it fails as a whole, naming what is needed; what it was to store is stored after a restart.
CREATE TRIGGER refuse_older_programs AFTER UPDATE OF head_seq, fold_revision ON conversations
BEGIN SELECT needs_newer_lossless_claw(); END;
`;
