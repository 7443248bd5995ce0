/**
 * Sessions of the Gemini CLI as JSONL: a log of a header with the session id, messages (`type` user or gemini) with ids of their own, and
 * patches. A message that is rewritten under its id is a newer state of it, and `$rewindTo` retracts a message and everything after it; in both
 * cases the current messages are shown and the others hidden. `$set` changes the header; if it replaces the messages by shorter ones, that is
 * the host's own compaction, and we show the original messages. Older versions write the same data as one JSON document, which `documents.ts`
 * reads.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

import { readId, readText, readTime } from "./format.ts";
import type { EntryFacts, Recognition, ToldOrigin, TranscriptFormat, TranscriptSession } from "./format.ts";

const SPEAKERS: ReadonlySet<unknown> = new Set(["user", "gemini"]);

export const GEMINI_CLI: TranscriptFormat = {
  name: "gemini-cli",
  title: "Gemini CLI",
  branchRule: "log",
  namesSession: true,
  recognise,
  readSession,
  readFacts: readLogFacts,
  readOrigin,
};

function readLogFacts(entry: JsonObject): EntryFacts {
  const facts = readGeminiFacts(entry);
  const takesBack = readId(entry["$rewindTo"]);
  if (takesBack !== undefined) return { ...facts, takesBack, treeRole: "entry" };
  if (recognise(entry) === "certain") return { ...facts, treeRole: "header" };
  return facts.hidden.length === 0 && facts.id !== undefined ? { ...facts, treeRole: "entry" } : facts;
}

function readOrigin(entry: JsonObject): ToldOrigin | null {
  const { $set: patch } = entry;
  if (isObject(patch)) return { title: readText(patch["summary"]) };
  return entry["type"] === "gemini" ? { model: readText(entry["model"]) } : null;
}

function recognise(entry: JsonObject): Recognition {
  const isHeader = readId(entry["sessionId"]) !== undefined && typeof entry["projectHash"] === "string";
  return isHeader ? "certain" : "no";
}

function readSession(entry: JsonObject): TranscriptSession | null {
  const id = recognise(entry) === "certain" ? readId(entry["sessionId"]) : undefined;
  return id === undefined ? null : { id, isSubAgent: entry["kind"] === "subagent" };
}

export function readGeminiFacts(entry: JsonObject): EntryFacts {
  const isSpoken = SPEAKERS.has(entry["type"]) || typeof entry["role"] === "string";
  return {
    id: readId(entry["id"]),
    createdAt: readTime(entry["timestamp"]) ?? readSeconds(entry["ts"]),
    hidden: isSpoken ? [] : ["meta"],
    treeRole: "none",
    isPrompt: false,
  };
}

function readSeconds(value: unknown): number | undefined {
  return typeof value === "number" ? readTime(value * 1000) : undefined;
}
