/** The answer that the last report about a prompt cache belongs to: a further row of that answer is not another request. */
export const version = 12;

export const sql = `
ALTER TABLE cache_usage ADD COLUMN last_answer TEXT;  -- what names the answer; null: not known
`;
