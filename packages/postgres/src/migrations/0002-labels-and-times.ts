/** What a person calls a conversation, and which messages have a time of their own. Where the first migration makes its tables from today's declaration they are there already. */
export const version = 2;

export const sql = `
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS name text;           -- what a person calls it
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS tags text;           -- JSON list, or null
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS pinned_at bigint;    -- lists show it first
ALTER TABLE conversations ADD COLUMN IF NOT EXISTS unlisted_at bigint;  -- lists leave it out; nothing else does
ALTER TABLE messages ADD COLUMN IF NOT EXISTS dated bigint NOT NULL DEFAULT 1;  -- 0: nobody knows when it was said; created_at is a guess
`;
