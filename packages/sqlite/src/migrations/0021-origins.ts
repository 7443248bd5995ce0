/** Where a conversation comes from, so that searches can be narrowed to a project or an agent. */
export const version = 21;

export const sql = `
ALTER TABLE conversations ADD COLUMN agent TEXT;    -- the program it was held in: claude-code, codex, openclaw, …
ALTER TABLE conversations ADD COLUMN project TEXT;  -- root of the git repository, or the folder
ALTER TABLE conversations ADD COLUMN branch TEXT;   -- of the repository, as last said
ALTER TABLE conversations ADD COLUMN title TEXT;    -- as last said
ALTER TABLE conversations ADD COLUMN model TEXT;    -- as last said
`;
