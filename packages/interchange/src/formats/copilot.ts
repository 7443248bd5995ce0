/** Copilot CLI: events with their data below `data`. */
import { isObject } from "@lossless/core/formats";

import { defineAgentLines, isText, yes } from "./agent-lines.ts";

const MESSAGES: ReadonlySet<unknown> = new Set([
  "user.message",
  "assistant.message",
  "tool.execution_complete",
]);

export const COPILOT = defineAgentLines({
  name: "copilot",
  title: "Copilot CLI JSONL",
  recognise: (entry) =>
    yes(
      isText(entry["type"]) &&
        /^(?:session|user|assistant|tool)\.\w+$/u.test(entry["type"]) &&
        isObject(entry["data"]),
    ),
  session: (entry) =>
    entry["type"] === "session.start" && isObject(entry["data"]) ? entry["data"]["sessionId"] : undefined,
  isMessage: (entry) => MESSAGES.has(entry["type"]),
  id: (entry) => entry["id"],
});
