/** Droid: a first line with the session's id, then lines that name their parents; its stream output names the session in `system`. */
import { defineAgentLines, holdsRole, isText, yes } from "./agent-lines.ts";
import { readId } from "./format.ts";

export const DROID = defineAgentLines({
  name: "droid",
  title: "Droid JSONL",
  recognise: (entry) =>
    yes(
      (entry["type"] === "session_start" && readId(entry["id"]) !== undefined) ||
        (entry["type"] === "system" &&
          entry["subtype"] === "init" &&
          isText(entry["sessionId"]) &&
          !("uuid" in entry)),
    ),
  session: (entry) => (entry["type"] === "session_start" ? entry["id"] : entry["sessionId"]),
  isMessage: (entry) =>
    holdsRole(entry["message"]) ||
    isText(entry["role"]) ||
    entry["type"] === "tool_call" ||
    entry["type"] === "tool_result",
  id: (entry) => entry["id"],
  parentId: (entry) => entry["parentId"],
  isHeader: (entry) => entry["type"] === "session_start",
});
