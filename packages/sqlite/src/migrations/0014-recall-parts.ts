/** Calls and results of our own tools, so that searches can skip them: the few parts whose tool name may be one of ours. */
export const version = 14;

export const sql = `
CREATE INDEX recall_parts ON message_parts (tool_call_id) WHERE tool_name GLOB '*lcm_*';
`;
