/** `lcm_expand_query`: a cited answer to a question about the past. For main agents; a sub-agent never gets it. */
import type { AskResult, AskRequest } from "../recall/ask.ts";
import { callerOf, readParams, SCOPE_PROPERTIES } from "./tool.ts";
import type { ToolDefinition } from "./tool.ts";

type Params = Omit<AskRequest, "session" | "owner" | "delegated" | "signal">;

export const expandQueryTool: ToolDefinition = {
  name: "lcm_expand_query",
  description:
    "Answer a question about the past with cited, verbatim passages. Give query (what to look for) or summaryIds (where to look).",
  parameters: {
    type: "object",
    properties: {
      prompt: { type: "string", description: "the question" },
      query: { type: "string" },
      summaryIds: { type: "array", items: { type: "string" } },
      ...SCOPE_PROPERTIES,
      maxTokens: { type: "integer", minimum: 1, description: "of the answer, default 2000" },
      tokenCap: { type: "integer", minimum: 1 },
      includeRecall: { type: "boolean" },
      timeoutMs: { type: "integer", minimum: 1, maximum: 600_000 },
    },
    required: ["prompt"],
    additionalProperties: false,
  },
  async run(context, params) {
    const request = readParams<Params>(expandQueryTool, params);
    const answer = await context.engine.ask({ ...request, ...callerOf(context), signal: context.signal });
    return { text: renderAnswer(answer), details: answer };
  },
};

function renderAnswer(answer: AskResult): string {
  const lines = [answer.answer];
  if (answer.failure) lines.push(`(no written answer: ${answer.failure.error}; these are the passages)`);
  lines.push(...answer.notes.map((note) => `(${note})`));
  if (answer.truncated) lines.push("(more was found than fits; raise tokenCap, or narrow the query)");
  if (answer.skippedConversations > 0)
    lines.push(`(${answer.skippedConversations} more conversations have matches)`);
  return lines.join("\n\n");
}
