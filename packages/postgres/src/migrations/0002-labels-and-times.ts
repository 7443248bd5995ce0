/**
 * Labels of conversations, and which messages have a time of their own. If the first migration created its tables from the current declaration,
 * they already have these columns.
 */
export const version = 2;

export const sql = `
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS name text;           -- what a person calls it
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS tags text;           -- JSON list, or null
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS pinned_at bigint;    -- lists show it first
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS unlisted_at bigint;  -- lists leave it out; nothing else does
ALTER TABLE messages ADD COLUMN IF NOT EXISTS dated bigint NOT NULL DEFAULT 1;  -- 0: nobody knows when it was said; created_at is a guess
`;
