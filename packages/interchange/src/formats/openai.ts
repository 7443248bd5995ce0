/** Messages in the format of OpenAI's API (ChatML). Many programs write such lines, so this format is tried last. */
import type { JsonObject } from "@lossless/core/formats";

import { defineAgentLines, isText, yes } from "./agent-lines.ts";

const hasBody = (entry: JsonObject): boolean =>
  "content" in entry || "tool_calls" in entry || "parts" in entry;

export const OPENAI = defineAgentLines({
  name: "openai",
  title: "OpenAI/ChatML messages",
  recognise: (entry) => {
    const { type } = entry;
    return yes(
      isText(entry["role"]) && hasBody(entry) && (type === undefined || type === "message"),
      "likely",
    );
  },
  isMessage: (entry) => isText(entry["role"]),
  id: (entry) => entry["id"],
  time: (entry) => entry["timestamp"] ?? entry["created_at"],
});
