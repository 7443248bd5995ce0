/**
 * `lcm_expand`: from summaries to their original words. In a host's session only for sub-agents with a grant, since the result may be long;
 * a door without sessions gives it to every caller.
 */
import { TOOL_WORDS } from "./tool-words.ts";
import { wordStep } from "../model/next-step.ts";
import { EngineError } from "../model/errors.ts";
import { isSubagentKey } from "../settings/session-patterns.ts";
import type { ExpandResult, ExpandRequest } from "../recall/expand.ts";
import { callerOf, formatTime, readParams, SCOPE_PROPERTIES } from "./tool.ts";
import type { ToolDefinition } from "./tool.ts";

type Params = Omit<ExpandRequest, "session" | "owner" | "delegated">;

export const expandTool: ToolDefinition = {
  name: "lcm_expand",
  description: "For sub-agents: open summaries down to their messages, within your grant.",
  parameters: {
    type: "object",
    properties: {
      summaryIds: { type: "array", items: { type: "string" } },
      query: { type: "string", description: "instead of ids" },
      maxDepth: { type: "integer", minimum: 1 },
      tokenCap: { type: "integer", minimum: 1 },
      includeMessages: { type: "boolean" },
      ...SCOPE_PROPERTIES,
    },
    additionalProperties: false,
  },
  async run(context, params) {
    const request = readParams<Params>(expandTool, params);
    const isInHost = "session" in context;
    if (isInHost && !isSubagentKey(context.session.key)) {
      throw new EngineError("denied", "cannot run lcm_expand: it is for sub-agents", {
        hint: "use lcm_expand_query or lcm_describe",
      });
    }
    const answer = await context.engine.expand({
      ...request,
      ...callerOf(context),
      delegated: isInHost,
    });
    return { text: renderExpanded(answer, context.timeZone), details: answer };
  },
};

function renderExpanded(answer: ExpandResult, timeZone?: string): string {
  const summaries = answer.summaries.map(({ id, kind, depth, content, parentIds }) => {
    const sources = parentIds.length > 0 ? `, made from ${parentIds.join(" ")}` : "";
    return `[${id}] ${kind}, depth ${depth}${sources}\n${content ?? "(beyond the cap)"}`;
  });
  const messages = answer.messages.map(({ id, role, createdAt, text, textLeft }) => {
    const cut = textLeft > 0 ? `… (${textLeft} characters left)` : "";
    return `[${id}] ${role}, ${formatTime(createdAt, timeZone)}\n${text}${cut}`;
  });
  const { summaryIds, messageIds, step } = answer.left;
  const next = step === null ? "raise tokenCap" : wordStep(step, TOOL_WORDS);
  const left = answer.truncated
    ? [`Left out: ${summaryIds.length} summaries, ${messageIds.length} messages; ${next}.`]
    : [];
  return [...summaries, ...messages, ...left].join("\n\n");
}
