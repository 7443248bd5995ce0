/** The application id of our databases: "LCMX" in ASCII, as `file` and `PRAGMA application_id` show it. */
export const APPLICATION_ID = 0x4c434d58;
