/** Antigravity: steps with a number and the actor that caused them. */
import { defineAgentLines, isText, yes } from "./agent-lines.ts";

export const ANTIGRAVITY = defineAgentLines({
  name: "antigravity",
  title: "Antigravity JSONL",
  recognise: (entry) => yes(typeof entry["step_index"] === "number" && isText(entry["source"])),
  isMessage: (entry) => isText(entry["content"]) || isText(entry["thinking"]),
  time: (entry) => entry["created_at"],
});
