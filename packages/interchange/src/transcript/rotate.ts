/**
 * Rotates a host's session file: once every line is proven to be in the archive, byte for byte, the file is replaced by one with its header and
 * its newest turns. The first line that is not proven stops the rotation, and the original is kept.
 *
 * Invariant: at every moment the path names a complete file, the old one or the new one. The archive recognises the new file like the old one:
 * an import continues after its end, and appended lines are positioned after the removed ones.
 */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { toWriteError } from "@lossless/core/doors";
import { EngineError, POSITION_STEP } from "@lossless/core";
import type { Engine, SessionRef } from "@lossless/core";
import {
  type JsonObject,
  findFreeName,
  flushPathSync,
  formatStamp,
  isObject,
  recordCopy,
} from "@lossless/core/formats";
import { createBackup } from "@lossless/core/repair";
import type { ArchiveAccess } from "@lossless/core/repair";
import { hashLine, parseCursor, renderCursor } from "./cursor.ts";
import { readId } from "../formats/format.ts";
import { importTranscript } from "./import.ts";
import type { ImportTarget } from "./import.ts";

export interface RotateOptions {
  readonly engine: Engine;
  readonly path: string;
  readonly freshTailCount: number;
  readonly owner?: string;
  /** Only proves and reports. */
  readonly dryRun: boolean;
  /** The original is kept beside the new file unless this is false. */
  readonly keepsOriginal?: boolean;
  /** When given, the archive at this location is backed up first. */
  readonly backup?: { readonly databasePath: string; readonly filesDir: string };
  /** Where the archive is, so that the original is added to the record of copies. */
  readonly databasePath?: string;
  readonly now?: number;
}

export interface RotateResult {
  readonly path: string;
  readonly sessionId: string;
  readonly lines: number;
  readonly keptLines: number;
  readonly preservedTailMessageCount: number;
  readonly sizeBytes: number;
  readonly newSizeBytes: number;
  readonly bytesRemoved: number;
  readonly originalPath: string | null;
  readonly backupPath: string | null;
}

export async function rotateSessionFile(
  options: RotateOptions,
  access: ArchiveAccess,
): Promise<RotateResult> {
  const { path, dryRun, engine } = options;
  const before = statSync(path, { throwIfNoEntry: false });
  if (!before?.isFile()) throw new EngineError("not_found", `cannot rotate ${path}: there is no such file`);
  const content = readFileSync(path);
  const session = await prove(options);
  const entries = parseEntries(path, content);
  const { lines: kept, relinked } = chooseEntries(entries, options.freshTailCount);
  const next = Buffer.from(kept.map((line) => `${line}\n`).join(""));
  const tail = kept.filter((line) => isMessage(JSON.parse(line) as JsonObject)).length;
  const report = {
    path,
    sessionId: session.id,
    lines: entries.length,
    keptLines: kept.length,
    preservedTailMessageCount: tail,
    sizeBytes: content.byteLength,
    newSizeBytes: next.byteLength,
    bytesRemoved: content.byteLength - next.byteLength,
  };
  if (dryRun || report.bytesRemoved <= 0) return { ...report, originalPath: null, backupPath: null };
  const backupPath = options.backup ? (await createBackup({ engine, ...options.backup }, access)).path : null;
  // First: if the file is not replaced after all, an import finds that the cursor does not match, and reads from the start.
  await moveCursor(options, session, content, next, kept, relinked);
  const originalPath = replaceFile(options, before, content, next);
  return { ...report, originalPath, backupPath };
}

// ---- the proof

/** Reads the file as an import would and compares every line with the archive instead of storing it. */
async function prove({ engine, path, owner }: RotateOptions): Promise<SessionRef> {
  let proven: SessionRef = { key: "", id: "", owner: owner ?? "" };
  const target: ImportTarget = {
    async ingest({ session, messages }) {
      proven = session;
      const { id, owner: holder } = session;
      const state = await engine.readSession({ sessionId: id, owner: holder });
      const stored = parseCursor(state?.cursor ?? null);
      const relinked = stored.kind === "import" ? stored.relinked : {};
      const events = messages
        .map(({ eventId, bytes }) => ({ eventId: eventId ?? "", bytes: bytes ?? new Uint8Array() }))
        .filter(({ eventId, bytes }) => !(eventId in relinked) || hashLine(bytes) !== relinked[eventId]);
      const [missing] = await engine.findUnproven({
        sessionId: session.id,
        events,
        owner,
      });
      if (missing === undefined) return { conversationId: 1, results: [] };
      const arrival = messages.find((message) => message.eventId === missing);
      throw unproven(path, Math.round((arrival?.position ?? 0) / POSITION_STEP), missing);
    },
    readSession: () => Promise.resolve(null),
    knownEvents: (request) => engine.knownEvents({ ...request, owner: owner ?? request.owner }),
    findSessions: () => Promise.resolve([]),
    relabelSession: () => Promise.resolve(false),
    setBranch: () => Promise.resolve({ changed: 0 }),
  };
  const { problems } = await importTranscript({ engine: target, path, format: "pi" });
  const unfinished = problems.find((problem) => problem.code === "incomplete_line");
  if (unfinished) throw unproven(path, unfinished.line, "the last line is not finished");
  return proven;
}

/** Sets the cursor for imports of the new file, and records the lines of it that differ only in their links: those must not become revisions. */
async function moveCursor(
  { engine }: RotateOptions,
  session: SessionRef,
  content: Buffer,
  next: Buffer,
  kept: readonly string[],
  relinked: Readonly<Record<string, string>>,
): Promise<void> {
  const state = await engine.readSession({ sessionId: session.id, owner: session.owner });
  const stored = parseCursor(state?.cursor ?? null);
  if (stored.kind !== "import" || stored.cursor === null) return;
  const last = JSON.parse(kept.at(-1) ?? "{}") as JsonObject;
  const lines = content.toString("latin1").split("\n").length - (content.at(-1) === 0x0a ? 1 : 0);
  const cursor = {
    ...stored.cursor,
    offset: next.byteLength,
    lines: kept.length,
    removedLines: (stored.cursor.removedLines ?? 0) + lines - kept.length,
    sha256: hashLine(next),
    end: { id: readId(last["id"]) ?? null, isActive: true },
    isSettled: true,
    openEventId: null,
  };
  const traces = { ...stored, relinked: { ...stored.relinked, ...relinked } };
  await engine.ingest({ session, messages: [], cursor: { value: renderCursor("pi", cursor, traces) } });
}

function unproven(path: string, line: number, what: string): EngineError {
  return new EngineError(
    "verification_failed",
    `cannot rotate ${path}: line ${line} (${what}) is not proven to be in the archive`,
    {
      hint: "import the file first; only session files of OpenClaw and pi can be rotated; nothing was changed",
    },
  );
}

// ---- what stays

interface Entry {
  readonly text: string;
  readonly value: JsonObject;
}

function parseEntries(path: string, content: Buffer): Entry[] {
  return content
    .toString("utf8")
    .split("\n")
    .filter((text) => text.trim() !== "")
    .map((text) => {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return { text, value };
      throw new EngineError("invalid_input", `cannot rotate ${path}: line is not a JSON object`);
    });
}

/** Of each of these kinds only the newest entry still matters. */
const STATE_TYPES = ["session_info", "model_change", "thinking_level_change"];

const isMessage = (value: JsonObject): boolean => value["type"] === "message" && isObject(value["message"]);
const isUser = (value: JsonObject): boolean =>
  isMessage(value) && (value["message"] as JsonObject)["role"] === "user";

/**
 * The header, the newest state of each kind, and the tail of the active branch; an entry whose parent is gone is linked to the one before it.
 * Off-branch entries are in the archive; kept here they would count as part of the tail or become part of the branch.
 */
function chooseEntries(
  all: readonly Entry[],
  freshTailCount: number,
): { lines: string[]; relinked: Record<string, string> } {
  const entries = listActive(all);
  const start = findTailStart(entries, freshTailCount);
  const before = entries.slice(0, start);
  const headers = before.filter(({ value }) => value["type"] === "session");
  const states = STATE_TYPES.flatMap((type) => before.findLast(({ value }) => value["type"] === type) ?? []);
  states.sort((a, b) => entries.indexOf(a) - entries.indexOf(b));
  const present = new Set<unknown>([null]);
  const relinked: Record<string, string> = {};
  let last: unknown = null;
  const lines = [...headers, ...states, ...entries.slice(start)].map(({ text, value }) => {
    const hasParent = "parentId" in value;
    const isLoose = hasParent && !present.has(value["parentId"]);
    if (hasParent) {
      last = isLoose ? last : value["parentId"];
    }
    const line = isLoose ? JSON.stringify({ ...value, parentId: last }) : text;
    if (isLinked(value)) {
      present.add(value["id"]);
      last = value["id"];
      if (isLoose) relinked[value["id"] as string] = hashLine(line);
    }
    return line;
  });
  return { lines, relinked };
}

/** The entries from the last one up to its root, and those outside the tree. */
function listActive(entries: readonly Entry[]): Entry[] {
  const latest = new Map(entries.map(({ value }, index) => [value["id"], index]));
  const active = new Set<number>();
  let at = entries.findLastIndex(({ value }) => isLinked(value));
  while (at >= 0 && !active.has(at)) {
    active.add(at);
    const parentId = entries[at]?.value["parentId"];
    at = typeof parentId === "string" ? (latest.get(parentId) ?? -1) : -1;
  }
  return entries.filter(({ value }, index) => active.has(index) || !isLinked(value));
}

const isLinked = (value: JsonObject): boolean => "parentId" in value && typeof value["id"] === "string";

function findTailStart(entries: readonly Entry[], freshTailCount: number): number {
  const messages = entries.flatMap(({ value }, index) => (isMessage(value) ? [index] : []));
  const from = messages[Math.max(0, messages.length - freshTailCount)] ?? entries.length;
  const user = messages.findLast((index) => index <= from && isUser(entries[index]?.value ?? {}));
  return user ?? from;
}

// ---- replacing

function replaceFile(
  options: RotateOptions,
  before: { size: number; mtimeMs: number; mode: number },
  content: Buffer,
  next: Buffer,
): string | null {
  const { path } = options;
  const temporary = `${path}.${process.pid}.tmp`;
  const original = findFreeName(`${path}.rotated-${formatStamp(options.now ?? Date.now())}`);
  rmSync(temporary, { force: true });
  writeNew(temporary, before.mode & 0o777, next);
  const now = statSync(path);
  if (now.size !== before.size || now.mtimeMs !== before.mtimeMs || !readFileSync(path).equals(content)) {
    rmSync(temporary, { force: true });
    throw new EngineError("database_busy", `cannot rotate ${path}: it was written to meanwhile`, {
      hint: "retry when the conversation is idle",
    });
  }
  if (options.keepsOriginal !== false) {
    if (options.databasePath !== undefined)
      recordCopy(options.databasePath, "transcript", original, options.now);
    linkSync(path, original);
  }
  renameSync(temporary, path);
  flushPathSync(dirname(path));
  return options.keepsOriginal === false ? null : original;
}

/** All of it is on the disk, or nothing is: a truncated file must not replace a session. */
function writeNew(path: string, mode: number, content: Buffer): void {
  try {
    const handle = openSync(path, "wx", mode);
    try {
      writeFileSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    rmSync(path, { force: true });
    throw toWriteError(path, error);
  }
}
