/**
 * The tools of the server. Four are the engine's own, described for a caller without a session: they search all conversations of the owner.
 * `lcm_recent` and `lcm_status` exist only here. All are read-only.
 */
import { describeTool, expandQueryTool, expandTool, grepTool, readParams } from "@lossless/core";
import type { Engine, ToolContext, ToolDefinition, ToolResult, ToolSchema } from "@lossless/core";
import { recentTool } from "./recent.ts";
import { statusTool } from "./status.ts";

/** The context of a tool call. */
export type CallContext = Extract<ToolContext, { readonly owner: string | undefined }> & {
  readonly engine: Engine;
  readonly project?: string | undefined;
};

export interface McpTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: ToolSchema;
  run(context: CallContext, params: unknown): Promise<ToolResult>;
}

export const MCP_TOOLS: readonly McpTool[] = [
  tellForOwner(
    grepTool,
    "Search past sessions",
    'Search everything you and the user said in past sessions, word for word. Mode full_text takes questions, words, "phrases" and identifiers. Hits carry ids; open them with lcm_describe.',
  ),
  tellForOwner(
    describeTool,
    "Open a message, summary or file",
    "Open one id verbatim: sum_… (summary and its sources), file_…, msg_…, or a range msg_3..msg_9. Long ones come in pages.",
  ),
  tellForOwner(
    expandTool,
    "Open summaries down to their messages",
    "Open summaries down to the messages they stand for, within tokenCap. Give summaryIds, or a query.",
  ),
  tellForOwner(
    expandQueryTool,
    "Ask past sessions",
    "Answer a question about past sessions with cited, verbatim passages. Give query (what to look for) or summaryIds (where to look).",
  ),
  recentTool,
  statusTool,
];

/** Without a session, all conversations of the owner are the default, and an option for that is meaningless. */
function tellForOwner(tool: ToolDefinition, title: string, description: string): McpTool {
  const { allConversations: _, ...properties } = tool.parameters.properties;
  const { name } = tool;
  const parameters = { ...tool.parameters, properties };
  return {
    name,
    title,
    description,
    parameters,
    run: (context, params) => tool.run(context, readParams({ name, parameters }, params)),
  };
}
