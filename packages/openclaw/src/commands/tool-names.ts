/** The tools for agents; the manifest lists them so that the host lets the plugin register them. */
export const TOOL_NAMES = ["lcm_grep", "lcm_describe", "lcm_expand_query", "lcm_expand"] as const;
