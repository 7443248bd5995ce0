/** Which summary was given to the summariser as previous context: a text can be traced to everything it was made with. */
export const version = 15;

export const sql = `
ALTER TABLE summaries ADD COLUMN previous_id TEXT;  -- the summary it was given as previous context; null: none, or made before this was kept
`;
