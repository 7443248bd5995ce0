/**
 * Rollout files of Codex: a `session_meta` line, then `response_item` lines (the model's input and output) between lines of the program itself
 * (`event_msg`, `turn_context`, `compacted`), which repeat much of it for the screen and are kept hidden. The oldest files have a bare header
 * and bare items. A resumed file may repeat its header; the first header names the session.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

import { readId, readText, readTime } from "./format.ts";
import type { EntryFacts, Recognition, ToldOrigin, TranscriptFormat, TranscriptSession } from "./format.ts";

const ENVELOPES: ReadonlySet<unknown> = new Set([
  "session_meta",
  "response_item",
  "event_msg",
  "turn_context",
  "compacted",
  "world_state",
]);
/** A snapshot of the working tree, of no use to a reader. */
const HOUSEHOLD_ITEMS: ReadonlySet<unknown> = new Set(["ghost_snapshot"]);

export const CODEX: TranscriptFormat = {
  name: "codex",
  title: "Codex rollout JSONL",
  branchRule: "path",
  namesSession: true,
  recognise,
  readSession,
  readFacts,
  readOrigin,
};

/** Lines of the program that name its folder and model. */
const TELLING: ReadonlySet<unknown> = new Set(["session_meta", "turn_context"]);

function readOrigin({ type, payload }: JsonObject): ToldOrigin | null {
  if (!TELLING.has(type) || !isObject(payload)) return null;
  const { git } = payload;
  return {
    folder: readText(payload["cwd"]),
    branch: isObject(git) ? readText(git["branch"]) : undefined,
    model: readText(payload["model"]),
  };
}

function recognise(entry: JsonObject): Recognition {
  if (ENVELOPES.has(entry["type"]) && isObject(entry["payload"])) return "certain";
  return isBareHeader(entry) ? "likely" : "no";
}

function isBareHeader(entry: JsonObject): boolean {
  const isUntyped = entry["type"] === undefined && entry["role"] === undefined;
  return (
    isUntyped &&
    typeof entry["timestamp"] === "string" &&
    readId(entry["id"]) !== undefined &&
    "instructions" in entry
  );
}

function readSession(entry: JsonObject): TranscriptSession | null {
  const header = entry["type"] === "session_meta" ? entry["payload"] : isBareHeader(entry) ? entry : null;
  const id = isObject(header) ? readId(header["id"]) : undefined;
  return id === undefined ? null : { id, isSubAgent: false };
}

function readFacts(entry: JsonObject): EntryFacts {
  const { payload } = entry;
  const item = entry["type"] === "response_item" && isObject(payload) ? payload : null;
  const isBareItem =
    payload === undefined && typeof entry["type"] === "string" && !ENVELOPES.has(entry["type"]);
  const isShown = item === null ? isBareItem : !HOUSEHOLD_ITEMS.has(item["type"]);
  return {
    createdAt: readTime(entry["timestamp"]),
    hidden: isShown ? [] : ["meta"],
    treeRole: "none",
    isPrompt: false,
  };
}
