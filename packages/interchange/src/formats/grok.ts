/** Grok's chat history: typed lines without a session id. */
import { defineAgentLines, yes } from "./agent-lines.ts";

const GROK_TYPES: ReadonlySet<unknown> = new Set([
  "system",
  "user",
  "assistant",
  "reasoning",
  "tool_result",
  "backend_tool_call",
]);

export const GROK = defineAgentLines({
  name: "grok",
  title: "Grok chat history JSONL",
  recognise: (entry) =>
    yes(
      GROK_TYPES.has(entry["type"]) && "content" in entry && !("uuid" in entry) && !("sessionId" in entry),
      "likely",
    ),
  isMessage: (entry) => GROK_TYPES.has(entry["type"]),
  id: (entry) => entry["id"],
});
