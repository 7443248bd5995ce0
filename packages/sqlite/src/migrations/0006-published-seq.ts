/** When a summary was published, so that the growth of a conversation can be drawn as it was. */
export const version = 6;

export const sql = `
ALTER TABLE summaries ADD COLUMN published_seq INTEGER;  -- the conversation's newest seq when it was published; null: not published, or not known
`;
