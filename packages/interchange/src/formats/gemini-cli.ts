/**
 * Sessions of the Gemini CLI as JSONL: a header with the session id, messages (`type` user or gemini) with ids of their own, and
 * lines that change the header. Older versions write the same as one JSON document, which `documents.ts` reads.
 */
import { type JsonObject } from "@lossless/core/formats";

import { readId, readTime } from "./format.ts";
import type { EntryFacts, Recognition, TranscriptFormat, TranscriptSession } from "./format.ts";

const SPEAKERS: ReadonlySet<unknown> = new Set(["user", "gemini"]);

export const GEMINI_CLI: TranscriptFormat = {
  name: "gemini-cli",
  title: "Gemini CLI",
  branchRule: "path",
  namesSession: true,
  recognise,
  readSession,
  readFacts: readGeminiFacts,
};

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
    place: "none",
    isPrompt: false,
  };
}

function readSeconds(value: unknown): number | undefined {
  return typeof value === "number" ? readTime(value * 1000) : undefined;
}
