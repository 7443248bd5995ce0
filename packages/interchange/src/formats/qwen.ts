/** Qwen Code: the lines of Claude Code without `isSidechain`; each names its parent. */
import { defineAgentLines, holdsRole, isText, yes } from "./agent-lines.ts";

export const QWEN = defineAgentLines({
  name: "qwen",
  title: "Qwen Code JSONL",
  recognise: (entry) =>
    yes(
      isText(entry["uuid"]) &&
        "parentUuid" in entry &&
        isText(entry["sessionId"]) &&
        !("isSidechain" in entry),
    ),
  session: (entry) => entry["sessionId"],
  isMessage: (entry) => holdsRole(entry["message"]),
  id: (entry) => entry["uuid"],
  parentId: (entry) => entry["parentUuid"],
});
