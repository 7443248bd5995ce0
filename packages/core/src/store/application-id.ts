/** The mark of our databases: "LCMX" in ASCII, what `file` and `PRAGMA application_id` show. */
export const APPLICATION_ID = 0x4c434d58;
