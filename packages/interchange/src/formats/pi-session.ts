/**
 * Session files of pi and OpenClaw: a `session` header, then entries linked by `id` and `parentId`. A user who goes back in such a session and
 * writes again starts a branch at that entry; the file's last entry is the tip of the active branch. Files of the first version have no ids and
 * no branches.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

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

export const PI_SESSION: TranscriptFormat = {
  name: "pi",
  title: "OpenClaw/pi session JSONL",
  branchRule: "path",
  namesSession: true,
  recognise,
  readSession,
  readFacts,
  readOrigin,
};

function readOrigin(entry: JsonObject): ToldOrigin | null {
  if (entry["type"] === "session")
    return { folder: readText(entry["cwd"]), model: readText(entry["modelId"]) };
  if (entry["type"] === "model_change") return { model: readText(entry["modelId"]) };
  return entry["type"] === "session_info" ? { title: readText(entry["name"]) } : null;
}

function recognise(entry: JsonObject): Recognition {
  if (isHeader(entry) && ["version", "cwd", "timestamp"].some((field) => field in entry)) return "certain";
  // Other agents write such lines below their own header, which then rules this format out.
  return entry["type"] === "message" && holdsMessage(entry) ? "likely" : "no";
}

function readSession(entry: JsonObject): TranscriptSession | null {
  const id = isHeader(entry) ? readId(entry["id"]) : undefined;
  return id === undefined ? null : { id, isSubAgent: false };
}

function readFacts(entry: JsonObject): EntryFacts {
  return {
    id: readId(entry["id"]),
    parentId: readParentId(entry["parentId"]),
    createdAt: readTime(entry["timestamp"]),
    hidden: holdsMessage(entry) ? [] : ["meta"],
    treeRole: isHeader(entry) ? "header" : "entry",
    isPrompt: false,
  };
}

function isHeader(entry: JsonObject): boolean {
  return entry["type"] === "session" && readId(entry["id"]) !== undefined;
}

/** A `message` entry, or the bare message of the oldest files. */
function holdsMessage(entry: JsonObject): boolean {
  if (entry["type"] === "message")
    return isObject(entry["message"]) && typeof entry["message"]["role"] === "string";
  return entry["type"] === undefined && typeof entry["role"] === "string";
}
