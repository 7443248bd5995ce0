/**
 * The storage folder of OpenCode: one JSON file per session, message and part, below `session`, `message` and `part` (older versions put all
 * three below `session`). A message and its parts become one event: the bytes of the message's file, with the bytes of its parts' files as the
 * elements of a `parts` member before its closing brace. Parts are in the order of their file names.
 *
 * Memory holds one short entry per file; the files themselves are read again one message at a time.
 */
import { isObject, type JsonObject } from "@lossless/core/formats";

import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { parseLine, readId, readTime } from "./format.ts";
import type { SourceEvent } from "../transcript/session-writer.ts";

export interface OpenCodeSession {
  readonly id: string;
  /** Its description, when there is one. */
  readonly file: string | null;
  readonly messages: readonly OpenCodeMessage[];
}

interface OpenCodeMessage {
  readonly id: string;
  readonly file: string;
  readonly createdAt: number | undefined;
  readonly parts: readonly string[];
}

export interface OpenCodeStorage {
  readonly sessions: readonly OpenCodeSession[];
  /** Orphaned files, each with the reason. */
  readonly strays: readonly { readonly path: string; readonly reason: string }[];
}

/** True for a folder with OpenCode's messages. */
export async function isOpenCodeStorage(folder: string): Promise<boolean> {
  const names = await listFolders(folder);
  if (names.has("message")) return names.has("part") || names.has("session");
  return names.has("session") && (await listFolders(join(folder, "session"))).has("message");
}

export async function readOpenCodeStorage(folder: string): Promise<OpenCodeStorage> {
  const roots = [folder, join(folder, "session")];
  const strays: { path: string; reason: string }[] = [];
  const parts = await indexParts(roots, strays);
  const sessions = new Map<string, { file: string | null; messages: OpenCodeMessage[] }>();
  const open = (id: string): { file: string | null; messages: OpenCodeMessage[] } => {
    const session = sessions.get(id) ?? { file: null, messages: [] };
    sessions.set(id, session);
    return session;
  };
  for (const path of await listKind(roots, "message")) {
    const entry = await readEntry(path, strays);
    if (entry === null) continue;
    const id = readId(entry["id"]) ?? basename(path, ".json");
    const sessionId = readId(entry["sessionID"]) ?? basename(dirname(path));
    const { time } = entry;
    const createdAt = isObject(time) ? readTime(time["created"]) : undefined;
    open(sessionId).messages.push({ id, file: path, createdAt, parts: parts.get(id) ?? [] });
    parts.delete(id);
  }
  for (const path of await listSessions(roots)) {
    const entry = await readEntry(path, strays);
    if (entry !== null) open(readId(entry["id"]) ?? basename(path, ".json")).file = path;
  }
  for (const [messageId, paths] of parts) {
    for (const path of paths) strays.push({ path, reason: `its message ${messageId} is not in the folder` });
  }
  return {
    sessions: [...sessions]
      .sort(byId)
      .map(([id, session]) => ({ id, ...session, messages: session.messages.sort(byTime) })),
    strays,
  };
}

/** The events of a session, in order: its description, hidden, then its messages. */
export async function* readOpenCodeEvents(session: OpenCodeSession): AsyncGenerator<SourceEvent> {
  if (session.file !== null) {
    yield { id: `session:${session.id}`, bytes: copy(await readFile(session.file)), hidden: ["meta"] };
  }
  for (const message of session.messages) {
    const parts = await Promise.all(message.parts.map((path) => readFile(path)));
    const bytes = composeMessage(await readFile(message.file), parts);
    yield { id: message.id, bytes, createdAt: message.createdAt, hidden: [] };
  }
}

const CLOSING_BRACE = 0x7d;

/** The message with its parts inside it, all unchanged. */
export function composeMessage(message: Buffer, parts: readonly Buffer[]): Uint8Array {
  const brace = message.lastIndexOf(CLOSING_BRACE);
  if (parts.length === 0 || brace < 0) return copy(message);
  const parsed = parseLine(message);
  const isTaken = parsed.kind === "entry" && "parts" in parsed.entry;
  const comma = message.toString("latin1", 0, brace).trimEnd().endsWith("{") ? "" : ",";
  const pieces: Buffer[] = [
    message.subarray(0, brace),
    Buffer.from(`${comma}"${isTaken ? "partFiles" : "parts"}":[`),
  ];
  for (const [index, part] of parts.entries()) pieces.push(Buffer.from(index === 0 ? "" : ","), part);
  return copy(Buffer.concat([...pieces, Buffer.from("]"), message.subarray(brace)]));
}

async function indexParts(
  roots: readonly string[],
  strays: { path: string; reason: string }[],
): Promise<Map<string, string[]>> {
  const parts = new Map<string, string[]>();
  for (const path of await listKind(roots, "part")) {
    const entry = await readEntry(path, strays);
    if (entry === null) continue;
    const messageId = readId(entry["messageID"]) ?? basename(dirname(path));
    parts.set(messageId, [...(parts.get(messageId) ?? []), path]);
  }
  return parts;
}

async function listKind(roots: readonly string[], kind: "message" | "part"): Promise<string[]> {
  const found = await Promise.all(roots.map((root) => listJson(join(root, kind))));
  return found.flat();
}

/** Session files are in one folder per project, or in `info`; messages and parts may be beside those. */
async function listSessions(roots: readonly string[]): Promise<string[]> {
  const [root = ""] = roots;
  const others = ["message", "part"].map((kind) => join(root, "session", kind));
  return (await listJson(join(root, "session"))).filter(
    (path) => !others.some((other) => path.startsWith(other)),
  );
}

async function listJson(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".json"));
    return files.map((entry) => join(entry.parentPath, entry.name)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function listFolders(folder: string): Promise<Set<string>> {
  const entries = await readdir(folder, { withFileTypes: true });
  return new Set(entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name));
}

async function readEntry(
  path: string,
  strays: { path: string; reason: string }[],
): Promise<JsonObject | null> {
  const parsed = parseLine(await readFile(path));
  if (parsed.kind === "entry") return parsed.entry;
  strays.push({ path, reason: parsed.kind === "blank" ? "it is empty" : parsed.reason });
  return null;
}

const byId = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);
const byTime = (a: OpenCodeMessage, b: OpenCodeMessage): number =>
  (a.createdAt ?? 0) - (b.createdAt ?? 0) || (a.id < b.id ? -1 : 1);
const copy = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);
