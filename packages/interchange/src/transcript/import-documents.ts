/**
 * Imports sessions that are not lines of a file: JSON documents, JSONL files with a whole session in each line, and OpenCode's storage folder.
 * The guarantees are those for lines: stored byte for byte, named so that a second import adds nothing, nothing omitted silently.
 */

import { readFile, stat } from "node:fs/promises";

import { EngineError } from "@lossless/core";
import type { SessionRef } from "@lossless/core";

import { nameFile, type FileSession, type OpenTranscript } from "./detect.ts";
import {
  isSessionLine,
  MAX_DOCUMENT_BYTES,
  nameSessionLine,
  readDocument,
  type JsonDocument,
} from "../formats/documents.ts";
import { parseLine } from "../formats/format.ts";
import type { FormatName } from "../formats/names.ts";
import { chooseIdentity, qualify, whyLeftOut } from "./identity.ts";
import type { ImportProblem, ImportResult, MarkedImport } from "./import-result.ts";
import { readLines } from "./lines.ts";
import { OpenCodeDatabase, readOpenCodeOrigin } from "../formats/opencode-database.ts";
import { readOpenCodeEvents, readOpenCodeStorage } from "../formats/opencode.ts";
import { findGeminiFolder } from "./origin-reader.ts";
import { SessionWriter, type SourceEvent } from "./session-writer.ts";

const DEFAULT_OWNER = "main";
const MAX_PROBLEMS = 1000;

/** Adds up the results of the sessions of one source. */
class ReportBuilder {
  readonly #path: string;
  readonly #format: FormatName;
  readonly #problems: ImportProblem[] = [];
  readonly #conversations: number[] = [];
  readonly #sessions: string[] = [];
  readonly #counts = { imported: 0, skipped: 0, revisions: 0 };
  #cut = 0;

  constructor(path: string, format: FormatName) {
    this.#path = path;
    this.#format = format;
  }

  add(session: SessionRef, writer: SessionWriter): void {
    const { imported, skipped, revisions } = writer.counts;
    this.#counts.imported += imported;
    this.#counts.skipped += skipped;
    this.#counts.revisions += revisions;
    this.#sessions.push(session.id);
    if (writer.conversationId !== null) this.#conversations.push(writer.conversationId);
    if (writer.refusal === null) return;
    this.note(
      "not_stored",
      0,
      `nothing is stored for session ${session.key}: ${writer.refusal} by the settings`,
    );
  }

  note(code: ImportProblem["code"], line: number, message: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push({ code, line, message });
    else this.#cut += 1;
  }

  finish(bytes: number): ImportResult {
    const problems = [...this.#problems];
    if (this.#cut > 0)
      problems.push({ code: "more_problems", line: 0, message: `${this.#cut} more problems are not listed` });
    return {
      path: this.#path,
      format: this.#format,
      sessionId: this.#sessions.length === 1 ? (this.#sessions[0] ?? null) : null,
      conversationId: this.#conversations[0] ?? null,
      conversationIds: [...new Set(this.#conversations)],
      ...this.#counts,
      problems,
      bytes,
    };
  }
}

/** Imports one JSON document. */
export async function importDocument(options: MarkedImport): Promise<ImportResult> {
  const { path } = options;
  const { size } = await stat(path);
  if (size > MAX_DOCUMENT_BYTES) {
    throw new EngineError(
      "invalid_input",
      `cannot import ${path}: the document has ${size} bytes, the limit is ${MAX_DOCUMENT_BYTES}`,
      {
        hint: "Only files of lines may be larger.",
      },
    );
  }
  const document = readDocument(await readFile(path), path);
  const report = new ReportBuilder(path, document.format);
  await importOne(options, document, document.sessionId ?? nameFile(path, firstBytes(document)), report);
  options.onProgress?.({ bytesDone: size, bytesTotal: size, lines: document.count });
  return report.finish(size);
}

/** True if the first line of a file is a session of its own. */
export async function holdsSessionLines(transcript: OpenTranscript): Promise<boolean> {
  for await (const line of readLines(transcript.file, transcript)) {
    const parsed = parseLine(line.bytes);
    if (parsed.kind !== "blank") return parsed.kind === "entry" && isSessionLine(parsed.entry);
  }
  return false;
}

/** Imports a JSONL file with one session per line. */
export async function importSessionLines(
  options: MarkedImport,
  transcript: OpenTranscript,
): Promise<ImportResult> {
  const { path, signal } = options;
  const report = new ReportBuilder(path, "openai");
  let file: string | null = null;
  for await (const line of readLines(transcript.file, { ...transcript, signal })) {
    file ??= nameFile(path, line.bytes);
    const parsed = parseLine(line.bytes);
    if (parsed.kind === "blank") continue;
    if (parsed.kind === "unreadable" || !isSessionLine(parsed.entry)) {
      const reason = parsed.kind === "unreadable" ? parsed.reason : "it holds no list of messages";
      report.note("unreadable_line", line.lineNumber, `left out: ${reason}`);
      continue;
    }
    const document = readDocument(line.bytes, path);
    await importOne(
      options,
      document,
      `${file}/${nameSessionLine(document.header, line.lineNumber)}`,
      report,
    );
    options.onProgress?.({ bytesDone: line.endOffset, bytesTotal: transcript.end, lines: line.lineNumber });
  }
  return report.finish(transcript.end);
}

/** Imports every session of an OpenCode storage folder. */
export async function importOpenCode(options: MarkedImport): Promise<ImportResult> {
  const { path } = options;
  const { sessions, strays } = await readOpenCodeStorage(path);
  const report = new ReportBuilder(path, "opencode");
  for (const stray of strays) report.note("refused_file", 0, `cannot import ${stray.path}: ${stray.reason}`);
  for (const [index, session] of sessions.entries()) {
    const found = { id: session.id, folder: null, isSubAgent: false, standIn: null };
    await importEvents(options, "opencode", found, () => readOpenCodeEvents(session), report);
    options.onProgress?.({ bytesDone: index + 1, bytesTotal: sessions.length, lines: index + 1 });
  }
  return report.finish(sessions.length);
}

/** Imports the sessions of an OpenCode database; sessions excluded by `since` or a filter are not read. */
export async function importOpenCodeDatabase(options: MarkedImport): Promise<ImportResult> {
  const { path, since } = options;
  const report = new ReportBuilder(path, "opencode");
  const database = new OpenCodeDatabase(path, Date.now());
  try {
    const sessions = database.listSessions().filter(({ updatedAt }) => updatedAt >= (since ?? 0));
    for (const [index, session] of sessions.entries()) {
      const { id, folder } = session;
      const identity = { id, folder, isSubAgent: false, standIn: null };
      const events = () => database.readEvents(session);
      await importEvents({ ...options, since: undefined }, "opencode", identity, events, report);
      if (session.isOpen)
        report.note("incomplete_line", 0, `an answer in session ${session.id} is still being written`);
      options.onProgress?.({ bytesDone: index + 1, bytesTotal: sessions.length, lines: index + 1 });
    }
    return report.finish(sessions.length);
  } finally {
    database.close();
  }
}

async function importOne(
  options: MarkedImport,
  document: JsonDocument,
  id: string,
  report: ReportBuilder,
): Promise<void> {
  const folder = document.format === "gemini-cli" ? findGeminiFolder(options.path) : null;
  const found = { id, folder, isSubAgent: false, standIn: null };
  const isTaken = await importEvents(options, document.format, found, () => readEvents(document), report);
  if (!isTaken) return;
  let number = 0;
  for (const { problem } of document.messages()) {
    number += 1;
    if (problem !== null) report.note("unreadable_line", number, `message ${number}: ${problem}`);
  }
}

function* readEvents(document: JsonDocument): Generator<SourceEvent> {
  // One name for the frame, whatever it says: when it changes, it becomes a revision of itself.
  yield { id: "document", bytes: document.header, createdAt: document.createdAt, hidden: ["meta"] };
  for (const { bytes, facts } of document.messages())
    yield { id: facts.id, bytes, createdAt: facts.createdAt, hidden: facts.hidden };
}

/** False when the session is left out. `readAll` may be asked twice. */
async function importEvents(
  options: MarkedImport,
  format: FormatName,
  found: FileSession & { readonly folder: string | null | undefined },
  readAll: () => Iterable<SourceEvent> | AsyncIterable<SourceEvent>,
  report: ReportBuilder,
): Promise<boolean> {
  const { engine, owner = DEFAULT_OWNER, path, mark, signal } = options;
  const identity = await chooseIdentity(engine, owner, { name: format }, found);
  const key = options.sessionKey ?? qualify({ name: format }, identity.id);
  const session: SessionRef = { key, id: identity.id, owner };
  const coming = { path, sessionId: session.id, folder: found.folder };
  const leftOut = (await whyLeftOut(options, session, path)) ?? options.exclude?.(coming) ?? null;
  if (leftOut !== null) {
    report.note("left_out", 0, leftOut);
    return false;
  }
  const readOrigin = format === "opencode" ? readOpenCodeOrigin : undefined;
  const writer = new SessionWriter({ target: engine, session, format, path, mark, signal, readOrigin });
  await writer.resume(readAll);
  for await (const event of readAll()) await writer.add(event);
  await writer.flush();
  report.add(session, writer);
  return true;
}

/** The bytes that name a document without an id: its first message, which stays when it grows. */
function firstBytes(document: JsonDocument): Uint8Array {
  for (const { bytes } of document.messages()) return bytes;
  return document.header;
}
