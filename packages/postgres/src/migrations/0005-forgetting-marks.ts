/** Each forgetting leaves its own mark: one that is committed while the pages of another are cleared keeps its mark. */
export const version = 5;

export const sql = "ALTER POLICY own_rows ON meta WITH CHECK (starts_with(key, 'forgetting_open'));";
