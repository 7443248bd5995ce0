/**
 * Sessions that are one JSON document: an object with a list of messages in it, or the list alone. Each message becomes one event with exactly
 * its bytes in the document; the rest of the document, with its lists emptied, becomes one hidden event before them. A JSONL file whose lines
 * are such documents is a file of many sessions.
 *
 * Only the current message is parsed, so that the largest thing in memory is the document's own text.
 */

import { isUtf8 } from "node:buffer";

import { EngineError } from "@lossless/core";
import {
  type JsonObject,
  asBuffer,
  findRoot,
  isObject,
  iterateElements,
  mapMembers,
} from "@lossless/core/formats";
import type { ByteRange } from "@lossless/core/formats";

import { parseLine, readId, readTime } from "./format.ts";
import type { EntryFacts } from "./format.ts";
import type { FormatName } from "./names.ts";
import { readGeminiFacts } from "./gemini-cli.ts";

/** A document is held in memory; a larger one is refused with an error that names it. */
export const MAX_DOCUMENT_BYTES = 96 * 1024 * 1024;

/** The members around the list. */
type Header = Readonly<Record<string, unknown>>;

interface DocumentShape {
  readonly format: FormatName;
  /** Members that may hold the messages, the most specific first. */
  readonly lists: readonly string[];
  readonly fits: (header: Header, first: JsonObject | null) => boolean;
  readonly readFacts: (entry: JsonObject) => EntryFacts;
}

const readPlainFacts = (entry: JsonObject): EntryFacts => ({
  id: readId(entry["id"]),
  createdAt: readTime(entry["timestamp"] ?? entry["created_at"] ?? entry["createdAt"]),
  hidden: typeof entry["role"] === "string" ? [] : ["meta"],
  treeRole: "none",
  isPrompt: false,
});

const hasRole = (entry: JsonObject | null): boolean => typeof entry?.["role"] === "string";

const SHAPES: readonly DocumentShape[] = [
  {
    format: "gemini-cli",
    lists: ["messages", "history"],
    fits: (header, first) =>
      (typeof header["sessionId"] === "string" && "projectHash" in header) ||
      (hasRole(first) && "parts" in (first ?? {})),
    readFacts: readGeminiFacts,
  },
  {
    format: "hermes",
    lists: ["messages"],
    fits: (header) =>
      typeof header["session_id"] === "string" && ("platform" in header || "session_start" in header),
    readFacts: readPlainFacts,
  },
  {
    format: "swe-agent",
    lists: ["history"],
    fits: (_header, first) => hasRole(first),
    readFacts: readPlainFacts,
  },
  {
    format: "openai",
    lists: ["messages", "traj", "conversation", "conversations"],
    fits: (_header, first) => hasRole(first),
    readFacts: readPlainFacts,
  },
];

export interface DocumentMessage {
  readonly bytes: Uint8Array;
  readonly facts: EntryFacts;
  /** Set for an element that is not an object; it is kept, hidden. */
  readonly problem: string | null;
}

export interface JsonDocument {
  readonly format: FormatName;
  readonly sessionId: string | undefined;
  /** The document with its list of messages emptied. */
  readonly header: Uint8Array;
  readonly createdAt: number | undefined;
  readonly count: number;
  messages(): Generator<DocumentMessage>;
}

/** Reads the document around its messages; throws an error that says what the file is instead. */
export function readDocument(bytes: Uint8Array, path: string): JsonDocument {
  const buffer = asBuffer(bytes);
  const root = findRoot(buffer);
  if (root === null || !isWhole(buffer, root)) throw refuse(path, "it is not one whole JSON document");
  if (buffer[root.at] === 0x5b) return frameList(buffer, root, path);
  const members = mapMembers(buffer, root);
  const header = readHeader(buffer, members);
  for (const shape of SHAPES) {
    const list = shape.lists
      .map((name) => members.get(name))
      .find((range) => range !== undefined && isList(buffer, range));
    if (list === undefined || !shape.fits(header, readFirst(buffer, list))) continue;
    return frameDocument(buffer, shape, header, list);
  }
  throw refuse(path, describeStranger(header));
}

/** True if a line of a JSONL file is a session of its own. */
export function isSessionLine(entry: JsonObject): boolean {
  const lists = [entry["messages"], entry["traj"], entry["conversation"], entry["conversations"]];
  return (
    lists.some((list) => Array.isArray(list) && isObject(list[0]) && hasRole(list[0])) && !hasRole(entry)
  );
}

/** A name for a line that is a session: its own name, within its file. */
export function nameSessionLine(header: Uint8Array, lineNumber: number): string {
  const parsed = parseLine(header);
  const entry = parsed.kind === "entry" ? parsed.entry : {};
  const names = ["id", "session_id", "conversation_id"].map((key) => readId(entry[key]));
  const own = names.find((name) => name !== undefined);
  if (own !== undefined) return own;
  const task = ["task_id", "trial"].filter(
    (key) => typeof entry[key] === "number" || readId(entry[key]) !== undefined,
  );
  return task.length === 0
    ? `line-${lineNumber}`
    : task.map((key) => `${key}-${String(entry[key])}`).join("/");
}

function frameList(buffer: Buffer, list: ByteRange, path: string): JsonDocument {
  const first = readFirst(buffer, list);
  const shape = SHAPES.find((candidate) => candidate.fits({}, first));
  if (shape === undefined) throw refuse(path, "it is a JSON list, but not of messages");
  // A list without a document around it does not identify the agent that wrote it.
  const plain = shape.format === "swe-agent" ? { ...shape, format: "openai" as const } : shape;
  return frameDocument(buffer, plain, {}, list);
}

function frameDocument(buffer: Buffer, shape: DocumentShape, header: Header, list: ByteRange): JsonDocument {
  const { format, readFacts } = shape;
  const emptied = Buffer.concat([
    buffer.subarray(0, list.at + 1),
    buffer.subarray(list.at + list.length - 1),
  ]);
  const ids = ["sessionId", "session_id", "sessionID", "id", "conversation_id"].map((key) =>
    readId(header[key]),
  );
  let count = 0;
  for (const _ of iterateElements(buffer, list)) count += 1;
  return {
    format,
    sessionId: ids.find((id) => id !== undefined),
    header: new Uint8Array(emptied),
    createdAt: readTime(
      header["startTime"] ?? header["session_start"] ?? header["start_time"] ?? header["created_at"],
    ),
    count,
    *messages() {
      for (const range of iterateElements(buffer, list)) yield readMessage(buffer, range, readFacts);
    },
  };
}

function readMessage(
  buffer: Buffer,
  range: ByteRange,
  readFacts: DocumentShape["readFacts"],
): DocumentMessage {
  const bytes = new Uint8Array(buffer.subarray(range.at, range.at + range.length));
  const parsed = parseLine(bytes);
  if (parsed.kind === "entry") return { bytes, facts: readFacts(parsed.entry), problem: null };
  const problem = parsed.kind === "blank" ? "empty" : parsed.reason;
  return { bytes, facts: { hidden: ["meta"], treeRole: "none", isPrompt: false }, problem };
}

function readFirst(buffer: Buffer, list: ByteRange): JsonObject | null {
  for (const range of iterateElements(buffer, list)) {
    const parsed = parseLine(buffer.subarray(range.at, range.at + range.length));
    return parsed.kind === "entry" ? parsed.entry : null;
  }
  return null;
}

/** Short members as values; for long ones only their presence. */
function readHeader(buffer: Buffer, members: ReadonlyMap<string, ByteRange>): Header {
  const header: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [key, { at, length }] of members) {
    header[key] = length > 512 ? undefined : parseScalar(buffer.toString("utf8", at, at + length));
  }
  return header;
}

function parseScalar(text: string): unknown {
  if (text.startsWith("{") || text.startsWith("[")) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const isList = (buffer: Buffer, range: ByteRange): boolean => buffer[range.at] === 0x5b;

/** True if only white space follows the value, and everything is text. */
function isWhole(buffer: Buffer, root: ByteRange): boolean {
  return buffer.toString("latin1", root.at + root.length).trim() === "" && isUtf8(buffer);
}

function describeStranger(header: Header): string {
  if (["sessionID", "messageID", "projectID"].some((key) => key in header)) {
    return "it is one file of an OpenCode storage folder; import the folder that holds session, message and part";
  }
  if ("session_summary" in header || "chat_format_version" in header) {
    return "it describes a session and holds no messages; import the chat_history.jsonl beside it";
  }
  const keys = Object.keys(header).slice(0, 6).join(", ");
  return `it is a JSON document of no known format (${keys === "" ? "empty" : keys})`;
}

function refuse(path: string, reason: string): EngineError {
  return new EngineError("invalid_input", `cannot import ${path}: ${reason}`);
}
