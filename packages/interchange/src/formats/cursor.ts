/** Cursor's agent: the role is on the line, the content in a message below it. */
import { isObject } from "@lossless/core/formats";

import { defineAgentLines, isText, yes } from "./agent-lines.ts";

export const CURSOR = defineAgentLines({
  name: "cursor",
  title: "Cursor agent JSONL",
  recognise: (entry) => {
    const { message } = entry;
    return yes(isText(entry["role"]) && isObject(message) && !("role" in message) && "content" in message);
  },
  isMessage: (entry) => isText(entry["role"]),
});
