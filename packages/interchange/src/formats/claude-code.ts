/**
 * Claude Code transcripts: one JSON object per line, rows linked by `uuid` and `parentUuid`, with housekeeping lines (snapshots, progress,
 * titles) between them. Parallel tool calls fork the tree just as edited prompts do, so only forks at prompts decide which branch is active.
 */
import { BOOKKEEPING_TYPES, isObject, type JsonObject } from "@lossless/core/formats";

import type { HiddenReason } from "@lossless/core";

import {
  readId,
  readParentId,
  readText,
  readTime,
  type EntryFacts,
  type Recognition,
  type ToldOrigin,
  type TranscriptFormat,
  type TranscriptSession,
} from "./format.ts";

/** Lines that often open a file and carry neither `uuid` nor `parentUuid`. */
const HOUSEHOLD_TYPES: ReadonlySet<unknown> = new Set([
  ...BOOKKEEPING_TYPES,
  "agent-name",
  "ai-title",
  "attachment",
  "bridge-session",
  "custom-title",
  "file-history-snapshot",
  "last-prompt",
  "mode",
  "permission-mode",
  "pr-link",
  "progress",
  "queue-operation",
  "summary",
  "worktree-state",
]);

export const CLAUDE_CODE: TranscriptFormat = {
  name: "claude-code",
  title: "Claude Code JSONL",
  branchRule: "prompts",
  namesSession: true,
  recognise,
  readSession,
  readFacts,
  readOrigin,
};

function recognise(entry: JsonObject): Recognition {
  const isRow = typeof entry["uuid"] === "string" && "parentUuid" in entry;
  if (isRow && typeof entry["isSidechain"] === "boolean") return "certain";
  const isHousehold = HOUSEHOLD_TYPES.has(entry["type"]);
  const hasMark = [entry["sessionId"], entry["leafUuid"], entry["messageId"]].some(
    (mark) => typeof mark === "string",
  );
  return isHousehold && hasMark ? "likely" : "no";
}

/** A sub-agent's file repeats its parent's session id; its rows are distinguished by the agent's own id. */
function readSession(entry: JsonObject): TranscriptSession | null {
  const sessionId = readId(entry["sessionId"]);
  if (sessionId === undefined) return null;
  const agentId = entry["isSidechain"] === true ? readId(entry["agentId"]) : undefined;
  return agentId === undefined
    ? { id: sessionId, isSubAgent: false }
    : { id: `agent-${agentId}`, isSubAgent: true };
}

function readFacts(entry: JsonObject, session: { readonly isSubAgent: boolean }): EntryFacts {
  const id = readId(entry["uuid"]);
  const isSidechain = entry["isSidechain"] === true && !session.isSubAgent;
  const isMeta = entry["isMeta"] === true || !holdsMessage(entry);
  const hidden: HiddenReason[] = [];
  if (isSidechain) hidden.push("branch");
  if (isMeta) hidden.push("meta");
  return {
    id,
    parentId: readParentId(entry["parentUuid"]),
    createdAt: readTime(entry["timestamp"]) ?? readSnapshotTime(entry["snapshot"]),
    hidden,
    // A sidechain line is off the branch even when it has no id.
    treeRole: id === undefined && !isSidechain ? "none" : "entry",
    isPrompt: entry["type"] === "user" && !isMeta && !isSidechain && !holdsToolResult(entry["message"]),
  };
}

/** The model name on answers that the program generated itself. */
const NO_MODEL = "<synthetic>";

/** A title that the user chose has precedence; a summary may belong to another session. */
const TITLE_RANKS = { summary: 0, made: 1, chosen: 2 } as const;

function readOrigin(entry: JsonObject): ToldOrigin | null {
  const { message } = entry;
  const chosen = readText(entry["customTitle"]);
  if (chosen !== undefined) return { title: chosen, titleRank: TITLE_RANKS.chosen };
  const title = readText(entry["aiTitle"]);
  if (title !== undefined) return { title, titleRank: TITLE_RANKS.made };
  if (entry["type"] === "summary")
    return { title: readText(entry["summary"]), titleRank: TITLE_RANKS.summary };
  const model = isObject(message) ? readText(message["model"]) : undefined;
  return {
    folder: readText(entry["cwd"]),
    branch: readText(entry["gitBranch"]),
    model: model === NO_MODEL ? undefined : model,
  };
}

function holdsMessage(entry: JsonObject): boolean {
  const isTurn = entry["type"] === "user" || entry["type"] === "assistant";
  return isTurn && isObject(entry["message"]) && typeof entry["message"]["role"] === "string";
}

function holdsToolResult(message: unknown): boolean {
  const content = isObject(message) ? message["content"] : undefined;
  return (
    Array.isArray(content) && content.some((block) => isObject(block) && block["type"] === "tool_result")
  );
}

function readSnapshotTime(snapshot: unknown): number | undefined {
  return isObject(snapshot) ? readTime(snapshot["timestamp"]) : undefined;
}
