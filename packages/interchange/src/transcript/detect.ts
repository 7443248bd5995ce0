/**
 * Detects what a file is before anything is stored: the format of its first lines and their session. Reads only the head of the file; a file
 * that cannot be a transcript is refused here, with an error that says what was found instead.
 */
import { type JsonObject } from "@lossless/core/formats";

import { createHash } from "node:crypto";
import type { Dirent, Stats } from "node:fs";
import { open, readdir, stat, type FileHandle } from "node:fs/promises";
import { basename, join } from "node:path";

import { EngineError } from "@lossless/core";

import { ANTIGRAVITY } from "../formats/antigravity.ts";
import { CLAUDE_CODE } from "../formats/claude-code.ts";
import { CODEX } from "../formats/codex.ts";
import { COPILOT } from "../formats/copilot.ts";
import { CURSOR } from "../formats/cursor.ts";
import { DROID } from "../formats/droid.ts";
import { nameLine } from "./event-ids.ts";
import { parseLine, type TranscriptFormat } from "../formats/format.ts";
import type { FormatName } from "../formats/names.ts";
import { GEMINI_CLI } from "../formats/gemini-cli.ts";
import { GROK } from "../formats/grok.ts";
import { KIMI } from "../formats/kimi.ts";
import { OPENAI } from "../formats/openai.ts";
import { readLines, type Line, type ReadLinesOptions } from "./lines.ts";
import { isOpenCodeStorage } from "../formats/opencode.ts";
import { PI_SESSION } from "../formats/pi-session.ts";
import { QWEN } from "../formats/qwen.ts";

/** Line formats, the most specific first: other programs also write what the last ones accept. */
export const LINE_FORMATS: readonly TranscriptFormat[] = [
  CLAUDE_CODE,
  PI_SESSION,
  CODEX,
  GEMINI_CLI,
  QWEN,
  KIMI,
  DROID,
  COPILOT,
  CURSOR,
  ANTIGRAVITY,
  GROK,
  OPENAI,
];

/** File extensions that are read in a folder: lines, documents, archives. */
const KNOWN_ENDINGS = [".jsonl", ".json", ".traj", ".lcmx", ".lcmx.zst"];

/** The only database read in a folder: the user names others explicitly. */
const OPENCODE_DATABASE = "opencode.db";

const isKnownName = (name: string): boolean =>
  name === OPENCODE_DATABASE || KNOWN_ENDINGS.some((ending) => name.endsWith(ending));

/** A file identifies itself long before this; the search ends here. */
const HEAD_LINES = 64;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;

export type Detection =
  | { readonly kind: "found"; readonly format: TranscriptFormat; readonly line: number }
  /** The file is empty, or its first line is not finished. */
  | { readonly kind: "too_early" };

/** A transcript opened for reading, with its size at that moment: lines appended later belong to the next import. */
export interface OpenTranscript {
  readonly file: FileHandle;
  readonly path: string;
  readonly end: number;
}

/** The session a file belongs to. */
export interface FileSession {
  readonly id: string;
  readonly isSubAgent: boolean;
  /** The file's session as long as no line names one; `null` if the first line does. */
  readonly standIn: StandIn | null;
}

/** A session named after a file whose lines name none. */
export interface StandIn {
  readonly id: string;
  /** Of the first line. */
  readonly eventId: string;
  readonly firstLine: string;
}

export function getFormat(name: FormatName): TranscriptFormat {
  const format = LINE_FORMATS.find((candidate) => candidate.name === name);
  if (format !== undefined) return format;
  throw new EngineError("usage", `cannot import: unknown format ${String(name)}`, {
    hint: describeSupported(),
  });
}

/** Opens a regular file. Anything else could block for ever or never end. */
export async function openTranscript(path: string): Promise<OpenTranscript> {
  const before = await statPath(path);
  if (!before.isFile()) {
    throw new EngineError(
      "invalid_input",
      `cannot import ${path}: it is ${describeKind(before)}, not a regular file`,
      {
        hint: "Name a file, or a directory that holds transcripts.",
      },
    );
  }
  const file = await open(path, "r").catch((error: unknown) => {
    throw createAccessError(path, error);
  });
  try {
    return { file, path, end: (await file.stat()).size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** True for a file that is one JSON document, by its name. */
export function isDocumentName(path: string): boolean {
  return path.endsWith(".json") || path.endsWith(".traj");
}

/**
 * The transcripts under a directory, or the path itself when it is not a directory or is an OpenCode storage folder; such a folder counts as one
 * transcript. Links inside the directory are not followed. An unreadable folder in it is listed itself: importing it reports why it cannot be
 * read, and the rest is imported.
 */
export async function listTranscripts(path: string): Promise<string[]> {
  if (!(await statPath(path)).isDirectory() || (await isStorage(path))) return [path];
  const closed: string[] = [];
  const entries = await listEntries(path, closed);
  if (closed.includes(path)) return [path];
  const storages: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory() || !["message", "session"].includes(entry.name)) continue;
    if (!storages.includes(entry.parentPath) && (await isStorage(entry.parentPath)))
      storages.push(entry.parentPath);
  }
  // A folder of the older layout is below one that is already listed.
  const roots = storages.filter(
    (root) => !storages.some((other) => other !== root && root.startsWith(join(other, "/"))),
  );
  const files = entries
    .filter((entry) => entry.isFile() && isKnownName(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !roots.some((root) => file.startsWith(join(root, "/"))));
  return [...files, ...roots, ...closed].sort();
}

/** Everything below a folder; unreadable folders are added to `closed`. */
async function listEntries(folder: string, closed: string[]): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    const refused = createAccessError(folder, error);
    if (refused.code !== "invalid_input") throw refused;
    closed.push(folder);
    return [];
  });
  const below: Dirent[] = [];
  for (const entry of entries) {
    below.push(entry);
    if (entry.isDirectory()) below.push(...(await listEntries(join(folder, entry.name), closed)));
  }
  return below;
}

/** Like `isOpenCodeStorage`, but throws an error that says why a folder cannot be read. */
export async function isStorage(folder: string): Promise<boolean> {
  return isOpenCodeStorage(folder).catch((error: unknown) => {
    throw createAccessError(folder, error);
  });
}

export async function detectFormat(transcript: OpenTranscript, signal?: AbortSignal): Promise<Detection> {
  let stranger: JsonObject | null = null;
  let lines = 0;
  for await (const line of readLines(transcript.file, { ...transcript, signal })) {
    if (lines === 0 && isUnfinished(line)) return { kind: "too_early" };
    lines += 1;
    const parsed = parseLine(line.bytes);
    const format = parsed.kind === "entry" ? recognise(parsed.entry, stranger === null) : null;
    if (format !== null) return { kind: "found", format, line: line.lineNumber };
    if (parsed.kind === "entry") stranger ??= parsed.entry;
    if (lines >= HEAD_LINES) break;
  }
  if (lines === 0) return { kind: "too_early" };
  throw new EngineError(
    "invalid_input",
    `cannot import ${transcript.path}: ${describeStranger(stranger, lines)}`,
    {
      hint: describeSupported(),
    },
  );
}

/** Reads until a line names the session. A file without such a line is a session of its own. */
export async function identifySession(
  transcript: OpenTranscript,
  format: TranscriptFormat,
  { signal, maxLineBytes }: Pick<ReadLinesOptions, "signal" | "maxLineBytes"> = {},
): Promise<FileSession> {
  let standIn: StandIn | null = null;
  const options = { ...transcript, signal, stopsAtOverlong: true };
  for await (const line of readLines(
    transcript.file,
    maxLineBytes === undefined ? options : { ...options, maxLineBytes },
  )) {
    const parsed = parseLine(line.bytes);
    const session = parsed.kind === "entry" ? format.readSession(parsed.entry) : null;
    if (session !== null) return { ...session, standIn };
    const facts = parsed.kind === "entry" ? format.readFacts(parsed.entry, { isSubAgent: false }) : null;
    standIn ??= nameStandIn(transcript.path, line.bytes, facts?.id);
  }
  standIn ??= nameStandIn(transcript.path, new Uint8Array(), undefined);
  return { id: standIn.id, isSubAgent: false, standIn };
}

function nameStandIn(path: string, firstLine: Uint8Array, id: string | undefined): StandIn {
  const hash = createHash("sha256").update(firstLine).digest("hex");
  return {
    id: `file:${basename(path)}:${hash.slice(0, 12)}`,
    eventId: nameLine(firstLine, id),
    firstLine: hash,
  };
}

/**
 * True for a last line that may still be incomplete. A parseable entry counts as finished: only white space, such as a carriage return, could
 * still follow, and then the line is stored a second time as a revision, which is better than never.
 */
export function isUnfinished(line: Line): boolean {
  if (line.terminated) return false;
  const opens = line.bytes[0] === 0x7b || line.bytes[0] === 0x5b;
  return !opens || !isJson(line.bytes);
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return false;
    throw error;
  }
}

function recognise(entry: JsonObject, isFirst: boolean): TranscriptFormat | null {
  const accepted = isFirst ? ["certain", "likely"] : ["certain"];
  return LINE_FORMATS.find((format) => accepted.includes(format.recognise(entry))) ?? null;
}

/** The UUID in a file's name, if there is one. */
export function readUuidName(path: string): string | null {
  const stem = basename(path).replace(/\.jsonl?$/u, "");
  return UUID.test(stem) ? stem : null;
}

/** The session of a document that does not name one. */
export function nameFile(path: string, firstLine: Uint8Array): string {
  const uuid = readUuidName(path);
  if (uuid !== null) return uuid;
  return `file:${basename(path)}:${createHash("sha256").update(firstLine).digest("hex").slice(0, 12)}`;
}

async function statPath(path: string): Promise<Stats> {
  return stat(path).catch((error: unknown) => {
    throw createAccessError(path, error);
  });
}

export function createAccessError(path: string, error: unknown): EngineError {
  const cause = (error as NodeJS.ErrnoException).code;
  if (cause === "ENOENT" || cause === "ENOTDIR") {
    return new EngineError("not_found", `cannot import ${path}: there is no such file`, { cause: error });
  }
  const isForbidden = cause === "EACCES" || cause === "EPERM";
  const reason = isForbidden ? "permission denied" : error instanceof Error ? error.message : String(error);
  return new EngineError("invalid_input", `cannot import ${path}: ${reason}`, { cause: error });
}

function describeKind(stats: Stats): string {
  if (stats.isDirectory()) return "a directory";
  if (stats.isSocket()) return "a socket";
  if (stats.isFIFO()) return "a pipe";
  return "a device";
}

function describeStranger(stranger: JsonObject | null, lines: number): string {
  if (stranger === null)
    return lines === 1
      ? "its first line is not a JSON object"
      : `none of its first ${lines} lines is a JSON object`;
  const type = stranger["type"];
  const mark = typeof type === "string" ? `type ${JSON.stringify(type.slice(0, 40))}` : "no type";
  return `its first line (${mark}) is not of a known transcript format`;
}

function describeSupported(): string {
  return `Supported are ${LINE_FORMATS.map((format) => `${format.title} (${format.name})`).join(", ")}.`;
}
