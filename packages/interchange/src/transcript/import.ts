/**
 * Imports transcripts: every line of a file becomes one event, stored unchanged. Uses the engine through `ImportTarget`; one file describes each
 * format (`claude-code.ts`, `codex.ts`, …). `import-documents.ts` reads sources that are not lines.
 *
 * Imports are idempotent: the same line always gets the same event id, so a second import, an import after a kill, or one of a file that has
 * grown adds only what is missing. Lines and cursor are written together; while a batch is being stored, the next few are read, prepared and
 * passed on. Each is stored only after the one before it.
 */

import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";

import { EngineError, POSITION_STEP, makeImportId } from "@lossless/core";
import type { Arrival, IngestedMessage, OriginUpdate, SessionRef } from "@lossless/core";
import type { PackedPrepared } from "@lossless/core/formats";

import {
  hashLine,
  NO_TRACES,
  parseCursor,
  proveCursor,
  renderCursor,
  START,
  type ImportCursor,
  type SessionTraces,
} from "./cursor.ts";
import {
  detectFormat,
  getFormat,
  identifySession,
  isUnfinished,
  isStorage,
  listTranscripts,
  openTranscript,
  isDocumentName,
  type OpenTranscript,
} from "./detect.ts";
import { EntryIndex, type NamedLine } from "./entry-index.ts";
import { isNamedAfter, nameLine } from "./event-ids.ts";
import { parseLine, type ParsedLine, type TranscriptFormat } from "../formats/format.ts";
import { isOpenCodeDatabase } from "../formats/opencode-database.ts";
import type { FormatName } from "../formats/names.ts";
import { chooseFileSession, hashPath, listEventIds, type ChosenSession } from "./file-identity.ts";
import { qualify, whyLeftOut } from "./identity.ts";
import {
  holdsSessionLines,
  importDocument,
  importOpenCode,
  importOpenCodeDatabase,
  importSessionLines,
} from "./import-documents.ts";
import type {
  ImportOptions,
  ImportProblem,
  ImportProblemCode,
  ImportResult,
  ImportSettings,
  ImportSummary,
  MarkedImport,
} from "./import-result.ts";
import { HousekeepingMeter } from "./housekeeping.ts";
import type { ImportTarget } from "./import-target.ts";
import { LineBatch } from "./line-batch.ts";
import { LineHash } from "./line-hash.ts";
import { countRemoved, countUsed } from "./moved-lines.ts";
import { findFolder, OriginReader } from "./origin-reader.ts";
import { createAbortError, MAX_LINE_BYTES, readLineRuns, type Line } from "./lines.ts";

export type * from "./import-result.ts";
export type { ImportTarget } from "./import-target.ts";

/** Lines stored in one transaction: enough that its commit hardly counts, few enough that other writers get their turn. */
const BATCH_LINES = 256;
const BATCH_BYTES = 512 * 1024;
/** Batches passed on and not stored yet: enough to continue during an index write or a checkpoint. */
const BATCHES_AHEAD = 4;
/** Bytes read and prepared in one turn of the event loop: about 5 ms. */
const CHUNK_BYTES = 64 * 1024;
const MAX_PROBLEMS = 1000;
/** A line that is not an entry. */
const META = ["meta"] as const;
/** Set on a line without a time: that of the line before it is only a guess. */
const UNDATED = { isUndated: true } as const;
const DEFAULT_OWNER = "main";

/**
 * Imports one file, or one OpenCode storage folder.
 *
 * @example
 * const report = await importTranscript({ engine, path: "session.jsonl" });
 * console.log(report.imported, report.skipped);
 */
export async function importTranscript(request: ImportOptions): Promise<ImportResult> {
  const { path, format: wanted = "auto", importId = makeImportId() } = request;
  const options = { ...request, mark: { importId, source: resolve(path), at: Date.now() } };
  if (await isStorageFolder(path)) return importOpenCode(options);
  if (isOpenCodeDatabase(path)) return importOpenCodeDatabase(options);
  const transcript = await openTranscript(path);
  try {
    if (wanted === "hermes" || wanted === "swe-agent" || isDocumentName(path))
      return await importDocument(options);
    if ((wanted === "auto" || wanted === "openai") && (await holdsSessionLines(transcript)))
      return await importSessionLines(options, transcript);
    return await importLines(options, transcript);
  } finally {
    await transcript.file.close();
  }
}

async function importLines(options: MarkedImport, transcript: OpenTranscript): Promise<ImportResult> {
  const format = await chooseFormat(transcript, options);
  if (format === null) return reportTooEarly(transcript);
  const { engine, signal, owner = DEFAULT_OWNER } = options;
  const found = await identifySession(transcript, format, options);
  const identity = await chooseFileSession({ engine, owner, format, transcript, signal }, found);
  const key = options.sessionKey ?? qualify(format, identity.id);
  const session = { key, id: identity.id, owner };
  const leftOut =
    (await whyLeftOut(options, session, transcript.path)) ??
    (await whyExcluded(options, transcript, format, session));
  if (leftOut !== null) return reportLeftOut(transcript, format.name, session.id, leftOut);
  return new ListedImport(options, transcript, format, identity, session).finish();
}

async function whyExcluded(
  { exclude, signal }: ImportOptions,
  transcript: OpenTranscript,
  format: TranscriptFormat,
  { id: sessionId }: SessionRef,
): Promise<string | null> {
  if (exclude === undefined) return null;
  return exclude({ path: transcript.path, sessionId, folder: await findFolder(transcript, format, signal) });
}

async function isStorageFolder(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => null);
  return stats !== null && stats.isDirectory() && (await isStorage(path));
}

/** Imports files and directories of files. A file in a directory that is not a transcript is reported, not fatal. */
export async function importPaths(
  options: ImportSettings & {
    paths: readonly string[];
    onFile?: ((path: string, index: number, count: number) => void) | undefined;
    onReport?: ((report: ImportResult) => void) | undefined;
  },
): Promise<ImportSummary> {
  const { importId = makeImportId() } = options;
  const files: { path: string; isListed: boolean }[] = [];
  for (const path of options.paths) {
    for (const found of await listTranscripts(path)) files.push({ path: found, isListed: found !== path });
  }
  const conversations = new Set<number>();
  const problems: (ImportProblem & { path: string })[] = [];
  let [imported, skipped] = [0, 0];
  for (const [index, { path, isListed }] of files.entries()) {
    options.onFile?.(path, index, files.length);
    const report = await importTranscript({ ...options, importId, path }).catch((error: unknown) => {
      if (isListed && error instanceof EngineError && error.code === "invalid_input") return error;
      throw error;
    });
    if (report instanceof EngineError) {
      problems.push({ code: "refused_file", line: 0, message: report.message, path });
      continue;
    }
    options.onReport?.(report);
    imported += report.imported + report.revisions;
    skipped += report.skipped;
    for (const id of listConversations(report)) conversations.add(id);
    for (const problem of report.problems) problems.push({ ...problem, path });
  }
  return { imported, skipped, conversations: conversations.size, problems };
}

/** The conversations in a report. */
function listConversations({ conversationId, conversationIds }: ImportResult): readonly number[] {
  return conversationIds ?? (conversationId === null ? [] : [conversationId]);
}

interface StoredBatch {
  readonly messages: readonly Arrival[];
  readonly prepared: PackedPrepared | undefined;
  readonly cursor: ImportCursor;
  readonly origin?: OriginUpdate | undefined;
}

type StoreResult = { readonly error: unknown } | null;

/** One import of one file, from its cursor or from its start. */
class ListedImport {
  readonly #options: MarkedImport;
  readonly #transcript: OpenTranscript;
  readonly #format: TranscriptFormat;
  readonly #identity: ChosenSession;
  readonly #session: SessionRef;
  readonly #housekeeping = new HousekeepingMeter();
  readonly #problems: ImportProblem[] = [];
  readonly #counts = { imported: 0, skipped: 0, revisions: 0, problemsCut: 0 };
  /** Batches are passed on ahead, and a batch after one that failed must not be stored: its cursor would be after lines that are missing. */
  readonly #sequence = randomUUID();
  #conversationId: number | null = null;
  #mayMoveCursor = true;
  /** Why the engine does not store this session. */
  #refusal: string | null = null;
  /** Where this import started reading. */
  #start: ImportCursor = START;
  /** False when the branch has to be decided again, whatever this import reads. */
  #startsSettled = true;
  /** After the last line that was placed. */
  #cursor: ImportCursor = START;
  #hash = new LineHash();
  #index: EntryIndex;
  #traces: SessionTraces;
  /** Until the first line is placed: the id of that line while it was the open end of the file. */
  #openEventId: string | null = null;
  #lastTime: number | null = null;
  readonly #origin: OriginReader;

  constructor(
    options: MarkedImport,
    transcript: OpenTranscript,
    format: TranscriptFormat,
    identity: ChosenSession,
    session: SessionRef,
  ) {
    this.#options = options;
    this.#transcript = transcript;
    this.#format = format;
    this.#identity = identity;
    this.#session = session;
    this.#index = new EntryIndex(format.branchRule);
    this.#traces = this.#traceFile(NO_TRACES);
    this.#origin = new OriginReader(format, transcript.path);
  }

  async finish(): Promise<ImportResult> {
    await this.#takeOver();
    await this.#resume();
    await this.#storeLines();
    if (this.#refusal !== null) return this.#reportRefusal(this.#refusal);
    if (!this.#isSettled()) await this.#settleBranch();
    const { imported, skipped, revisions } = this.#counts;
    return {
      path: this.#transcript.path,
      format: this.#format.name,
      sessionId: this.#session.id,
      conversationId: this.#conversationId,
      imported,
      skipped,
      revisions,
      problems: this.#listProblems(),
      bytes: this.#cursor.offset,
      housekeeping: this.#housekeeping.read(),
    };
  }

  /** Relabels the stand-in that the file was stored under before a line named its session. */
  async #takeOver(): Promise<void> {
    const { relabels } = this.#identity;
    if (relabels === null) return;
    const cursor = renderCursor(this.#format.name, null, { ...NO_TRACES, relabelledTo: this.#session.id });
    await this.#options.engine.relabelSession({ from: relabels, session: this.#session, cursor });
  }

  /** Uses the stored cursor if the file proves it; otherwise reads the file from its start, which is always correct. */
  async #resume(): Promise<void> {
    const { id: sessionId, owner } = this.#session;
    const session = await this.#options.engine.readSession({ sessionId, owner });
    if (session === null) return;
    const stored = parseCursor(session.cursor);
    this.#conversationId = session.conversationId;
    this.#mayMoveCursor = stored.kind !== "foreign";
    // A file that was rewritten since may show again what an earlier import hid.
    this.#startsSettled = false;
    if (stored.kind === "import") this.#traces = this.#traceFile(stored);
    const cursor = stored.kind === "import" ? stored.cursor : null;
    if (cursor === null) return;
    const { file, path, end } = this.#transcript;
    const asked = { path, end, signal: this.#options.signal };
    const hash = cursor.offset === 0 ? null : await proveCursor(file, cursor, asked);
    if (hash === null) return this.#startOver(cursor);
    this.#hash = new LineHash(hash);
    this.#start = cursor;
    this.#cursor = cursor;
    this.#origin.goOn(cursor.titleRank);
    this.#openEventId = cursor.openEventId;
    this.#lastTime = cursor.lastTime;
    this.#startsSettled = cursor.isSettled;
    this.#counts.skipped += cursor.lines;
    this.#index = new EntryIndex(this.#format.branchRule, cursor.end ?? { id: null, isActive: true });
  }

  /** From the first line, of a file that may no longer have all the lines it had. */
  async #startOver(before: ImportCursor): Promise<void> {
    const { engine, signal } = this.#options;
    const eventIds = listEventIds({ format: this.#format, transcript: this.#transcript, signal });
    const removed = await countRemoved(engine, this.#session, countUsed(before), eventIds);
    if (removed > 0) this.#start = this.#cursor = { ...START, removedLines: removed };
  }

  /** A file whose first line names its session is known by that alone. */
  #traceFile({ files, relabelledTo, relinked }: SessionTraces): SessionTraces {
    const { standIn } = this.#identity;
    const traced =
      standIn === null ? files : { ...files, [hashPath(this.#transcript.path)]: standIn.firstLine };
    return { files: traced, relabelledTo, relinked };
  }

  /** Passes on batch after batch, while the next ones are prepared. */
  async #storeLines(): Promise<void> {
    const waiting: Promise<StoreResult>[] = [];
    try {
      for await (const batch of this.#readBatches()) {
        waiting.push(this.#store(await this.#place(batch)));
        if (waiting.length > BATCHES_AHEAD) throwFailure((await waiting.shift()) ?? null);
        if (this.#refusal !== null) return;
        if (this.#options.signal?.aborted) throw createAbortError(this.#transcript.path);
      }
    } finally {
      // Also after a failed read: nothing may still be running when this returns.
      for (const outcome of await Promise.all(waiting)) throwFailure(outcome);
    }
  }

  /**
   * A line without its line feed comes alone and last. Lines before an unreadable one are passed on first. Lines are parsed and prepared as soon
   * as they are read, to spread the work over many short turns of the event loop.
   */
  async *#readBatches(): AsyncGenerator<LineBatch, void, void> {
    const { batchLines = BATCH_LINES, batchBytes = BATCH_BYTES } = this.#options;
    let batch = this.#startBatch(0);
    try {
      for await (const lines of this.#readRuns(this.#start, this.#transcript.end)) {
        for (const line of lines) {
          if (isUnfinished(line)) {
            this.#report(
              "incomplete_line",
              line.lineNumber,
              "the last line is not finished and waits for its end",
            );
            break;
          }
          const isFull = batch.lines >= batchLines || batch.bytes + line.bytes.length > batchBytes;
          if (batch.lines > 0 && (isFull || !line.terminated)) {
            yield batch;
            batch = this.#startBatch(Math.min(batch.bytes, batchBytes));
          }
          this.#take(line, batch);
        }
        this.#hash.settle();
      }
    } catch (error) {
      if (batch.lines > 0) yield batch;
      throw error;
    }
    if (batch.lines > 0) yield batch;
  }

  #startBatch(expectedBytes: number): LineBatch {
    return new LineBatch(this.#options.prepareAhead?.(), expectedBytes);
  }

  /** Assigns event ids to the lines and moves the cursor past them. */
  async #place(batch: LineBatch): Promise<StoredBatch> {
    const origin = this.#origin.take();
    const openEventId = this.#openEventId;
    this.#openEventId = null;
    if (await this.#repeatsEarlierLine(batch.named, openEventId)) await this.#readPrefix();
    const { messages, prepared } = batch.finish((line, index) =>
      this.#index.place(line, index === 0 ? openEventId : null),
    );
    this.#cursor = this.#moveCursor(batch.last, messages.at(-1)?.eventId ?? null);
    const relinked = messages.filter((message) => this.#isRelinked(message));
    if (relinked.length === 0) return { messages, prepared, cursor: this.#cursor, origin };
    this.#counts.skipped += relinked.length;
    const others = messages.filter((message) => !relinked.includes(message));
    return { messages: others, prepared: undefined, cursor: this.#cursor, origin };
  }

  /** True for a line that rotation wrote: the archive has the original line. */
  #isRelinked({ eventId = "", bytes }: Arrival): boolean {
    const hash = this.#traces.relinked[eventId];
    return hash !== undefined && bytes !== undefined && hashLine(bytes) === hash;
  }

  /** True if a name may have been used before the start of the index: then only the lines before it can tell. */
  async #repeatsEarlierLine(lines: readonly NamedLine[], openEventId: string | null): Promise<boolean> {
    if (this.#index.isComplete) return false;
    const isOpenLine = openEventId !== null && isNamedAfter(openEventId, lines[0]?.name ?? "");
    const names = (isOpenLine ? lines.slice(1) : lines).map((line) => line.name);
    const eventIds = [...new Set(names)];
    if (eventIds.length < names.length || names.some((name) => this.#index.hasName(name))) return true;
    if (eventIds.length === 0) return false;
    const { id: sessionId, owner } = this.#session;
    return (await this.#options.engine.knownEvents({ sessionId, owner, eventIds })).length > 0;
  }

  #take(line: Line, batch: LineBatch): void {
    const parsed = parseLine(line.bytes);
    if (parsed.kind === "unreadable") this.#report("unreadable_line", line.lineNumber, parsed.reason);
    const named = this.#nameParsed(line, parsed);
    const { facts } = named;
    if (line.terminated) this.#hash.add(line.bytes);
    this.#lastTime = facts?.createdAt ?? this.#lastTime;
    const arrival = {
      position: (line.lineNumber + (this.#start.removedLines ?? 0)) * POSITION_STEP,
      hidden: facts === null ? META : facts.hidden,
      ...(this.#lastTime === null ? null : { createdAt: this.#lastTime }),
      ...(facts?.createdAt === undefined ? UNDATED : null),
    };
    if (arrival.hidden.includes("meta")) this.#housekeeping.add(line.bytes);
    if (parsed.kind === "entry") this.#origin.note(parsed.entry);
    batch.add(line, named, arrival, parsed.kind === "entry" ? parsed.entry : undefined);
  }

  /** The cursor stays before an open line: its line feed may change it into another line. */
  #moveCursor(last: Line, lastEventId: string | null): ImportCursor {
    const isSettled = this.#isSettled();
    if (!last.terminated) return { ...this.#cursor, isSettled, openEventId: lastEventId };
    return {
      offset: last.endOffset,
      lines: last.lineNumber,
      removedLines: this.#start.removedLines,
      sha256: this.#hash.digest(),
      end: this.#index.end,
      isSettled,
      openEventId: null,
      lastTime: this.#lastTime,
      titleRank: this.#origin.titleRank,
    };
  }

  /** Returns a failure as a value: an unhandled rejection would end the process. */
  #store({ messages, cursor, prepared, origin }: StoredBatch): Promise<StoreResult> {
    return this.#ingest(messages, cursor, prepared, origin).then(
      ({ results }) => {
        this.#count(results);
        const { offset, lines } = cursor;
        this.#options.onProgress?.({ bytesDone: offset, bytesTotal: this.#transcript.end, lines });
        return null;
      },
      (error: unknown) => ({ error }),
    );
  }

  #count(results: readonly IngestedMessage[]): void {
    for (const { outcome } of results) {
      if (outcome === "stored") this.#counts.imported += 1;
      else if (outcome === "revision") this.#counts.revisions += 1;
      else this.#counts.skipped += 1;
    }
  }

  #ingest(
    messages: readonly Arrival[],
    cursor: ImportCursor,
    prepared?: PackedPrepared,
    origin?: OriginUpdate,
  ): ReturnType<ImportTarget["ingest"]> {
    const stored = this.#options.engine.ingest({
      session: this.#session,
      messages,
      sequence: this.#sequence,
      import: this.#options.mark,
      prepared,
      origin,
      cursor: this.#mayMoveCursor
        ? { value: renderCursor(this.#format.name, cursor, this.#traces) }
        : undefined,
    });
    return stored.then((result) => {
      this.#refusal = result.skipped ?? null;
      this.#conversationId = result.conversationId;
      return result;
    });
  }

  #isSettled(): boolean {
    return this.#startsSettled && this.#index.extendsBranch;
  }

  /** Sets the off-branch entries in the engine, then marks the branch as decided. */
  async #settleBranch(): Promise<void> {
    if (!this.#index.isComplete) await this.#readPrefix();
    const { offBranch, end } = await this.#index.decideBranch(this.#readNamedLines(this.#transcript.end));
    if (end === null) return;
    await this.#options.engine.setBranch({ session: this.#session, offBranch });
    // The end before an open line may be on any branch; marking it inactive only makes the next import check more closely.
    const isOpen = this.#cursor.openEventId !== null;
    const endBefore = this.#cursor.end === null ? null : { id: this.#cursor.end.id, isActive: false };
    this.#cursor = { ...this.#cursor, isSettled: true, end: isOpen ? endBefore : end };
    await this.#ingest([], this.#cursor);
  }

  async #readPrefix(): Promise<void> {
    await this.#index.complete(this.#readNamedLines(this.#transcript.end), this.#start.lines);
  }

  async *#readNamedLines(end: number): AsyncGenerator<NamedLine, void, void> {
    for await (const lines of this.#readRuns(START, end))
      for (const line of lines) yield this.#nameParsed(line, parseLine(line.bytes));
  }

  #nameParsed(line: Line, parsed: ParsedLine): NamedLine {
    const facts = parsed.kind === "entry" ? this.#format.readFacts(parsed.entry, this.#identity) : null;
    return { name: nameLine(line.bytes, facts?.id), facts };
  }

  #readRuns(from: ImportCursor, end: number): AsyncGenerator<readonly Line[], void, void> {
    const { signal, maxLineBytes = MAX_LINE_BYTES } = this.#options;
    const { file, path } = this.#transcript;
    return readLineRuns(file, {
      path,
      offset: from.offset,
      lineNumber: from.lines + 1,
      end,
      signal,
      maxLineBytes,
      chunkBytes: CHUNK_BYTES,
      reusesBuffer: true,
    });
  }

  #reportRefusal(refusal: string): ImportResult {
    const message = `nothing is stored for session ${this.#session.key}: ${refusal} by the settings`;
    const nothing = { conversationId: null, imported: 0, skipped: 0, revisions: 0, bytes: 0 };
    const { path } = this.#transcript;
    const problems: ImportProblem[] = [{ code: "not_stored", line: 0, message }];
    return { path, format: this.#format.name, sessionId: this.#session.id, ...nothing, problems };
  }

  #report(code: ImportProblemCode, line: number, message: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push({ code, line, message });
    else this.#counts.problemsCut += 1;
  }

  #listProblems(): ImportProblem[] {
    const { problemsCut } = this.#counts;
    if (problemsCut === 0) return this.#problems;
    return [
      ...this.#problems,
      { code: "more_problems", line: 0, message: `${problemsCut} more problems are not listed` },
    ];
  }
}

async function chooseFormat(
  transcript: OpenTranscript,
  options: ImportOptions,
): Promise<TranscriptFormat | null> {
  const { format = "auto", signal } = options;
  if (format !== "auto") return getFormat(format);
  const detection = await detectFormat(transcript, signal);
  return detection.kind === "found" ? detection.format : null;
}

function reportTooEarly({ path, end }: OpenTranscript): ImportResult {
  const message = "the first line is not finished and waits for its end";
  const problems: ImportProblem[] = end === 0 ? [] : [{ code: "incomplete_line", line: 1, message }];
  const counts = { imported: 0, skipped: 0, revisions: 0, bytes: 0 };
  return { path, format: null, sessionId: null, conversationId: null, ...counts, problems };
}

function reportLeftOut(
  { path }: OpenTranscript,
  format: FormatName,
  sessionId: string,
  message: string,
): ImportResult {
  const counts = { imported: 0, skipped: 0, revisions: 0, bytes: 0 };
  return {
    path,
    format,
    sessionId,
    conversationId: null,
    ...counts,
    problems: [{ code: "left_out", line: 0, message }],
  };
}

function throwFailure(outcome: StoreResult): void {
  if (outcome !== null) throw outcome.error;
}
