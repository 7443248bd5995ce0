/**
 * Transcripts of agents whose lines need little explaining: each is one table entry that says how to know a line, where the
 * session's id stands, which lines are messages, and how they are linked. All keep every line; what is no message is hidden.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

import { readId, readParentId, readText, readTime } from "./format.ts";
import type { EntryFacts, Recognition, ToldOrigin, TranscriptFormat } from "./format.ts";
import type { FormatName } from "./names.ts";

interface AgentLines {
  readonly name: FormatName;
  readonly title: string;
  readonly recognise: (entry: JsonObject) => Recognition;
  /** The session a line names; nothing for most lines. */
  readonly session?: (entry: JsonObject) => unknown;
  readonly isMessage: (entry: JsonObject) => boolean;
  readonly id?: (entry: JsonObject) => unknown;
  /** Given where going back in the session starts a branch at an older entry. */
  readonly parentId?: (entry: JsonObject) => unknown;
  readonly isHeader?: (entry: JsonObject) => boolean;
  readonly time?: (entry: JsonObject) => unknown;
}

const yes = (condition: boolean, how: Recognition = "certain"): Recognition => (condition ? how : "no");
const isText = (value: unknown): value is string => typeof value === "string";
const holdsRole = (value: unknown): boolean => isObject(value) && isText(value["role"]);
const hasBody = (entry: JsonObject): boolean =>
  "content" in entry || "tool_calls" in entry || "parts" in entry;

const QWEN: AgentLines = {
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
};

const KIMI: AgentLines = {
  name: "kimi",
  title: "Kimi Code JSONL",
  recognise: (entry) =>
    yes(
      (entry["type"] === "metadata" && isText(entry["protocol_version"])) ||
        (isText(entry["type"]) && entry["type"].startsWith("context.append_")),
    ),
  isMessage: (entry) => isText(entry["type"]) && entry["type"].startsWith("context.append_"),
  time: (entry) => entry["time"] ?? entry["created_at"],
};

const DROID: AgentLines = {
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
};

const COPILOT: AgentLines = {
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
  isMessage: (entry) =>
    ["user.message", "assistant.message", "tool.execution_complete"].includes(String(entry["type"])),
  id: (entry) => entry["id"],
};

const CURSOR: AgentLines = {
  name: "cursor",
  title: "Cursor agent JSONL",
  recognise: (entry) => {
    const { message } = entry;
    return yes(isText(entry["role"]) && isObject(message) && !("role" in message) && "content" in message);
  },
  isMessage: (entry) => isText(entry["role"]),
};

const GROK_TYPES: ReadonlySet<unknown> = new Set([
  "system",
  "user",
  "assistant",
  "reasoning",
  "tool_result",
  "backend_tool_call",
]);

const GROK: AgentLines = {
  name: "grok",
  title: "Grok chat history JSONL",
  recognise: (entry) =>
    yes(
      GROK_TYPES.has(entry["type"]) && "content" in entry && !("uuid" in entry) && !("sessionId" in entry),
      "likely",
    ),
  isMessage: (entry) => GROK_TYPES.has(entry["type"]),
  id: (entry) => entry["id"],
};

const ANTIGRAVITY: AgentLines = {
  name: "antigravity",
  title: "Antigravity JSONL",
  recognise: (entry) => yes(typeof entry["step_index"] === "number" && isText(entry["source"])),
  isMessage: (entry) => isText(entry["content"]) || isText(entry["thinking"]),
  time: (entry) => entry["created_at"],
};

const OPENAI: AgentLines = {
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
};

/** The most particular first: what the last ones accept, others write too. */
export const OTHER_AGENTS: readonly TranscriptFormat[] = [
  QWEN,
  KIMI,
  DROID,
  COPILOT,
  CURSOR,
  ANTIGRAVITY,
  GROK,
  OPENAI,
].map(toFormat);

function toFormat(agent: AgentLines): TranscriptFormat {
  const { name, title, recognise } = agent;
  const readFacts = (entry: JsonObject): EntryFacts => {
    const isHeader = agent.isHeader?.(entry) ?? false;
    return {
      id: readId(agent.id?.(entry)),
      parentId: agent.parentId === undefined ? undefined : readParentId(agent.parentId(entry)),
      createdAt: readTime(agent.time?.(entry) ?? entry["timestamp"]),
      hidden: agent.isMessage(entry) ? [] : ["meta"],
      treeRole: isHeader ? "header" : agent.parentId === undefined ? "none" : "entry",
      isPrompt: false,
    };
  };
  return {
    name,
    title,
    branchRule: "path",
    namesSession: agent.session !== undefined,
    recognise,
    readSession: (entry) => {
      const id = readId(agent.session?.(entry));
      return id === undefined ? null : { id, isSubAgent: false };
    },
    readFacts,
    readOrigin,
  };
}

/** Most of them use the same words, on the line or below `data`; Copilot has a `context` of its own. */
function readOrigin(entry: JsonObject): ToldOrigin {
  const data = isObject(entry["data"]) ? entry["data"] : {};
  const context = isObject(data["context"]) ? data["context"] : {};
  return {
    folder: readText(entry["cwd"]) ?? readText(context["cwd"]),
    branch: readText(entry["gitBranch"]) ?? readText(context["branch"]),
    title: readText(entry["sessionTitle"]),
    model: readText(entry["model"]) ?? readText(data["chosenModel"]) ?? readText(data["newModel"]),
  };
}
