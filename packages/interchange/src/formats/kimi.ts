/** Kimi Code: a log of what is appended to the context. Only the path has the session's id. */
import { defineAgentLines, isText, yes } from "./agent-lines.ts";

export const KIMI = defineAgentLines({
  name: "kimi",
  title: "Kimi Code JSONL",
  recognise: (entry) =>
    yes(
      (entry["type"] === "metadata" && isText(entry["protocol_version"])) ||
        (isText(entry["type"]) && entry["type"].startsWith("context.append_")),
    ),
  isMessage: (entry) => isText(entry["type"]) && entry["type"].startsWith("context.append_"),
  time: (entry) => entry["time"] ?? entry["created_at"],
});
