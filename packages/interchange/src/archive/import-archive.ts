/**
 * Reads an archive (`.lcmx`, `.lcmx.zst`) into a store. A conversation that is there already is compared row by row: equal rows add
 * nothing, rows after them are added. A conversation that differs, or whose sessions are stored elsewhere, is left alone and named.
 *
 * Invariant: all or nothing. What was imported is proven, by the checks of `verify`, before it is committed; until then nobody sees it, and a
 * file that is refused, or an import that is killed, leaves nothing. Other programs go on meanwhile; only where the file has something that
 * is stored already may they have to wait to write.
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { createZstdDecompress } from "node:zlib";

import { EngineError, isServerAddress, makeImportId } from "@lossless/core";
import { findNameProblem } from "@lossless/core/formats";
import type { ImportMark } from "@lossless/core/formats";
import type {
  Derive,
  Intake,
  MovedConversation,
  MovedCut,
  MovedFile,
  MovedRow,
  MovedSummary,
  Store,
} from "@lossless/core/ports";

import { ARCHIVE_VERSION, parseRecord, type ArchiveRecord } from "./archive-records.ts";
import type { ImportProblem, ImportProgress } from "../transcript/import-result.ts";
import { createAbortError } from "../transcript/lines.ts";

const BATCH_ROWS = 400;
const BATCH_BYTES = 1024 * 1024;
/** One message is at most this long; base64 adds a third. */
const MAX_RECORD_BYTES = 160 * 1024 * 1024;
const ZSTD_MAGIC = 0xfd2fb528;

export interface ArchiveImportOptions extends IntakeOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

export interface IntakeOptions {
  /** The file, or the name of what the records come from. */
  readonly path: string;
  /** Gives everything to this owner instead of the one it had. */
  readonly owner?: string | undefined;
  readonly sessionFilter?: readonly string[] | undefined;
  readonly since?: number | undefined;
  readonly derive: Derive;
  readonly now: number;
  /** Has its own when absent. */
  readonly importId?: string | undefined;
}

export interface ArchiveImportResult {
  readonly path: string;
  readonly imported: number;
  readonly skipped: number;
  readonly summaries: number;
  readonly conversationIds: readonly number[];
  readonly problems: readonly ImportProblem[];
  readonly bytes: number;
}

/** True for a file that begins as an archive does. */
export async function isArchive(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(64);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    if (bytesRead >= 4 && head.readUInt32LE(0) === ZSTD_MAGIC) return true;
    return head.toString("utf8", 0, bytesRead).startsWith('{"record":"lcmx"');
  } finally {
    await file.close();
  }
}

export async function importArchive(
  store: Pick<Store, "bringIn">,
  options: ArchiveImportOptions,
): Promise<ArchiveImportResult> {
  const ownerProblem = options.owner === undefined ? null : findNameProblem(options.owner);
  if (ownerProblem !== null)
    throw new EngineError("invalid_input", `cannot import ${options.path}: its owner ${ownerProblem}`);
  return store.bringIn(async (into) => {
    const run = new ArchiveIntake(into, options);
    try {
      for await (const { record, lineNumber } of readArchive(options)) await run.take(record, lineNumber);
      await run.prove();
    } catch (error) {
      throw describeFailure(error, options.path);
    }
    return run.finish((await stat(options.path)).size);
  }, REPEATABLE);
}

/** The file is read again from its beginning. */
const REPEATABLE = { isRepeatable: true } as const;

interface NumberedRecord {
  readonly record: ArchiveRecord;
  readonly lineNumber: number;
}

/** The records of a file, with its end proven. */
async function* readArchive(options: ArchiveImportOptions): AsyncGenerator<NumberedRecord> {
  const { path, signal, onProgress } = options;
  const bytesTotal = (await stat(path)).size;
  const hash = createHash("sha256");
  const source = createReadStream(path, { highWaterMark: 256 * 1024 });
  let lineNumber = 0;
  let hasEnd = false;
  for await (const line of splitLines(await decompress(source, path), path)) {
    if (signal?.aborted) throw createAbortError(path);
    lineNumber += 1;
    if (hasEnd) throw refuse(path, `it has content after its end, on line ${lineNumber}`);
    const record = parseRecord(line, lineNumber);
    if (lineNumber === 1) checkHeader(record, path);
    if (record.record === "end") {
      hasEnd = true;
      const isRight = record.records === lineNumber - 1 && record.sha256 === hash.digest("hex");
      if (!isRight) throw refuse(path, "its lines are not those that were written");
    } else hash.update(line).update("\n");
    yield { record, lineNumber };
    if (lineNumber % 256 === 0) onProgress?.({ bytesDone: source.bytesRead, bytesTotal, lines: lineNumber });
  }
  if (!hasEnd) throw refuse(path, "it is cut off: its last record is missing");
}

async function decompress(
  source: ReturnType<typeof createReadStream>,
  path: string,
): Promise<AsyncIterable<Uint8Array>> {
  const file = await open(path, "r");
  const magic = Buffer.alloc(4);
  try {
    await file.read(magic, 0, 4, 0);
  } finally {
    await file.close();
  }
  if (magic.readUInt32LE(0) !== ZSTD_MAGIC) return source;
  const decompressor = createZstdDecompress();
  source.on("error", (error) => decompressor.destroy(error));
  return readWhole(source.pipe(decompressor), path);
}

/** What zlib says of a file that was cut off or changed, in our words. */
async function* readWhole(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!/^(?:ZSTD_error|Z_)/.test(code)) throw error;
    throw refuse(path, `it cannot be decompressed to its end (${(error as Error).message})`);
  }
}

async function* splitLines(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let feed = chunk.indexOf(0x0a); feed !== -1; feed = chunk.indexOf(0x0a, start)) {
      yield Buffer.concat([...held, chunk.subarray(start, feed)]);
      [held, size, start] = [[], 0, feed + 1];
    }
    if (start < chunk.length) held.push(Buffer.from(chunk.subarray(start)));
    size += chunk.length - start;
    if (size > MAX_RECORD_BYTES)
      throw refuse(path, `one of its lines has more than ${MAX_RECORD_BYTES} bytes`);
  }
  if (size > 0) yield Buffer.concat(held);
}

function checkHeader(record: ArchiveRecord, path: string): void {
  if (record.record !== "lcmx") throw refuse(path, "its first line is not an archive header");
  if (record.version <= ARCHIVE_VERSION) return;
  throw new EngineError(
    "invalid_input",
    `cannot import ${path}: it is an archive of version ${record.version}, this program reads up to ${ARCHIVE_VERSION}`,
    {
      hint: "install the newer version of lossless-claw",
    },
  );
}

type FileEntry = { file: MovedFile; content: Uint8Array };

/** The conversation whose records are being read. */
interface OpenConversation {
  readonly moved: MovedConversation;
  readonly conversationId: number;
  /** Rows that were there before. */
  readonly present: number;
  readonly summaries: number;
}

/** Takes the records of an archive in order, whatever they come from. */
export class ArchiveIntake {
  readonly #store: Intake;
  readonly #options: IntakeOptions;
  readonly #mark: ImportMark;
  readonly #problems: ImportProblem[] = [];
  readonly #conversationIds: number[] = [];
  /** Those that got something; the others are not this file's to prove. */
  readonly #changed = new Set<number>();
  readonly #seen: Map<string, number>;
  readonly #counts = { imported: 0, skipped: 0, summaries: 0 };
  #sessions: Extract<ArchiveRecord, { record: "session" }>[] = [];
  #turns: Extract<ArchiveRecord, { record: "turn" }>[] = [];
  /** Null between conversations, and inside one that is left out. */
  #current: OpenConversation | null = null;
  #isLeftOut = false;
  #rows: MovedRow[] = [];
  #rowBytes = 0;
  #files = new Map<string, FileEntry>();
  #openFile: { file: MovedFile; missing: number; pieces: Buffer[] } | null = null;
  #summaries: MovedSummary[] = [];
  #storedSummaries = 0;

  /** `seen` counts the conversations of one owner, key and age that were met before. */
  constructor(store: Intake, options: IntakeOptions, seen: ReadonlyMap<string, number> = new Map()) {
    this.#store = store;
    this.#options = options;
    this.#seen = new Map(seen);
    const { importId = makeImportId(), path, now } = options;
    this.#mark = { importId, source: isServerAddress(path) ? path : resolve(path), at: now };
  }

  async take(record: ArchiveRecord, lineNumber: number): Promise<void> {
    switch (record.record) {
      case "lcmx":
      case "end":
        return;
      case "session":
        this.#sessions.push(record);
        return;
      case "turn":
        this.#turns.push(record);
        return;
      case "conversation":
        return this.#open(record, lineNumber);
      case "file":
        return this.#startFile(record);
      case "piece":
        return this.#addPiece(record.base64);
      case "row":
        return this.#addRow(record.row);
      case "summary":
        return this.#addSummary(record);
      case "cover":
        return this.#close(record.summaries, lineNumber);
    }
  }

  /** Refuses what does not prove: then the archive was forged, or made by a program that erred. */
  async prove(conversationIds: Iterable<number> = this.#changed): Promise<void> {
    const [problem] = await this.#store.proveMoved([...conversationIds], this.#options.derive);
    if (problem !== undefined) throw refuse(this.#options.path, `it does not verify: ${problem.message}`);
  }

  finish(bytes: number): ArchiveImportResult {
    const { path } = this.#options;
    return { path, ...this.#counts, conversationIds: this.#conversationIds, problems: this.#problems, bytes };
  }

  async #open(record: Extract<ArchiveRecord, { record: "conversation" }>, lineNumber: number): Promise<void> {
    const { owner, now } = this.#options;
    const { record: _record, number: _number, summaries, ...stored } = record;
    const moved = owner === undefined ? stored : { ...stored, owner };
    const leftOut = this.#whyLeftOut(moved);
    if (leftOut !== null) return this.#leaveOut("left_out", lineNumber, leftOut);
    const identity = nameConversation(moved);
    const nth = this.#seen.get(identity) ?? 0;
    this.#seen.set(identity, nth + 1);
    await this.#saveSessions(moved);
    const outcome = await this.#store.openMoved(moved, nth, now);
    if (outcome.kind === "conflict")
      return this.#leaveOut("conflict", lineNumber, `conversation of ${moved.sessionKey}: ${outcome.reason}`);
    if (outcome.archivedInstead) {
      const message = `${moved.sessionKey} has an active conversation; the one of the archive is stored as archived`;
      this.#problems.push({ code: "conflict", line: lineNumber, message });
    }
    this.#conversationIds.push(outcome.conversationId);
    this.#current = { moved, conversationId: outcome.conversationId, present: outcome.rows, summaries };
    this.#storedSummaries = 0;
    if (outcome.rows === 0) this.#changed.add(outcome.conversationId);
  }

  #whyLeftOut(moved: MovedConversation): string | null {
    const { sessionFilter } = this.#options;
    if (sessionFilter === undefined || sessionFilter.length === 0) return null;
    const names = [
      moved.sessionKey,
      moved.sessionId,
      ...moved.placements.map((placement) => placement.sessionId),
    ];
    return sessionFilter.some((wanted) => names.includes(wanted))
      ? null
      : `session ${moved.sessionKey} was not asked for`;
  }

  #leaveOut(code: "left_out" | "conflict", line: number, message: string): void {
    this.#problems.push({ code, line, message });
    this.#isLeftOut = true;
  }

  /** The sessions of a conversation; those of conversations that are left out are not stored. */
  async #saveSessions(moved: MovedConversation): Promise<void> {
    const ids = new Set(moved.placements.map((placement) => placement.sessionId));
    const withOwner = <T extends { owner: string; sessionId: string }>(list: readonly T[]): T[] =>
      list.filter((entry) => ids.has(entry.sessionId)).map((entry) => ({ ...entry, owner: moved.owner }));
    await this.#store.moveSessions(withOwner(this.#sessions), withOwner(this.#turns));
  }

  async #startFile({
    record: _record,
    pieces,
    ...file
  }: Extract<ArchiveRecord, { record: "file" }>): Promise<void> {
    this.#openFile = { file, missing: pieces, pieces: [] };
    if (pieces === 0) this.#finishFile();
  }

  #addPiece(base64: string): void {
    const open = this.#openFile;
    if (open === null) throw refuse(this.#options.path, "a piece belongs to no file");
    open.pieces.push(Buffer.from(base64, "base64"));
    open.missing -= 1;
    if (open.missing === 0) this.#finishFile();
  }

  #finishFile(): void {
    const { file, pieces } = this.#openFile ?? { file: null, pieces: [] };
    this.#openFile = null;
    if (file === null || this.#isLeftOut) return;
    const content = Buffer.concat(pieces);
    const isRight =
      content.byteLength === file.byteSize &&
      createHash("sha256").update(content).digest("hex") === file.sha256;
    if (!isRight) throw refuse(this.#options.path, `the content of file ${file.sha256} is not what it was`);
    this.#files.set(file.sha256, { file, content });
    this.#rowBytes += content.byteLength;
  }

  async #addRow(row: MovedRow): Promise<void> {
    if (this.#isLeftOut || this.#current === null) return;
    // Only in front of a message: a message and the records of its files belong together.
    const isFull = this.#rows.length >= BATCH_ROWS || this.#rowBytes > BATCH_BYTES;
    const isAtEdge = this.#rows.at(-1)?.seq === this.#current.present;
    if (row.kind === "message" && (isFull || isAtEdge)) await this.#flushRows();
    this.#rows.push(row);
    this.#rowBytes += row.kind === "message" ? row.body.byteLength : row.body.length;
  }

  async #flushRows(): Promise<void> {
    const current = this.#current;
    const rows = this.#rows;
    [this.#rows, this.#rowBytes] = [[], 0];
    if (current === null || rows.length === 0 || this.#isLeftOut) return;
    const known = rows.filter((row) => row.seq <= current.present);
    const added = rows.filter((row) => row.seq > current.present);
    const different = await this.#findDifference(current.conversationId, known);
    if (different !== null) {
      const message = `conversation ${current.conversationId} (${current.moved.sessionKey}) differs from row ${different} on; nothing more of it is stored`;
      this.#problems.push({ code: "conflict", line: 0, message });
      this.#isLeftOut = true;
      return;
    }
    if (added.length > 0) {
      await this.#recallFiles(current.conversationId, added);
      await this.#store.moveRows(
        current.conversationId,
        added,
        this.#files,
        this.#options.derive,
        this.#options.now,
      );
      this.#changed.add(current.conversationId);
      await this.#store.noteImported(this.#mark, current.conversationId, countMessages(added));
    }
    this.#counts.skipped += countMessages(known);
    this.#counts.imported += countMessages(added);
    for (const { sha256 } of listCuts(rows)) this.#files.delete(sha256);
  }

  /** The seq of the first of these rows that is not what is stored; null when all are. */
  async #findDifference(conversationId: number, rows: readonly MovedRow[]): Promise<number | null> {
    const [first] = rows;
    if (!first) return null;
    const stored = await this.#store.readMovedRows(conversationId, first.seq - 1, rows.length);
    return rows.find((row, i) => !isSameRow(row, stored[i]))?.seq ?? null;
  }

  /** A file stands in the archive once, before the first message that holds it; for later ones it is read back from the store. */
  async #recallFiles(conversationId: number, rows: readonly MovedRow[]): Promise<void> {
    for (const { sha256 } of listCuts(rows)) {
      if (this.#files.has(sha256)) continue;
      const found = await this.#store.readMovedFile(conversationId, sha256);
      if (!found || found.content === null) throw refuse(this.#options.path, `the file ${sha256} is missing`);
      this.#files.set(sha256, { file: found.file, content: found.content });
    }
  }

  async #addSummary({
    record: _record,
    ...summary
  }: Extract<ArchiveRecord, { record: "summary" }>): Promise<void> {
    if (this.#isLeftOut) return;
    await this.#flushRows();
    this.#summaries.push(summary);
    if (this.#summaries.length >= BATCH_ROWS) await this.#flushSummaries();
  }

  async #flushSummaries(): Promise<void> {
    const summaries = this.#summaries;
    this.#summaries = [];
    if (this.#current === null || summaries.length === 0 || this.#isLeftOut) return;
    const { stored } = await this.#store.moveSummaries(this.#current.conversationId, summaries);
    this.#storedSummaries += stored;
    if (stored > 0) this.#changed.add(this.#current.conversationId);
    this.#counts.summaries += stored;
  }

  async #close(cover: readonly string[], lineNumber: number): Promise<void> {
    await this.#flushRows();
    await this.#flushSummaries();
    if (this.#current !== null && !this.#isLeftOut) await this.#setCover(this.#current, cover, lineNumber);
    this.#current = null;
    this.#isLeftOut = false;
    this.#files = new Map();
  }

  /** A conversation that went on since, or got nothing, keeps its own cover. */
  async #setCover(current: OpenConversation, cover: readonly string[], lineNumber: number): Promise<void> {
    const { moved, conversationId } = current;
    if (!this.#changed.has(conversationId)) return;
    const [listed] = await this.#store.listMoved({ conversationIds: [conversationId] });
    const hasGrown = (listed?.rows ?? 0) > moved.rows || (listed?.summaries ?? 0) > current.summaries;
    if (!hasGrown) return this.#store.moveCover(conversationId, cover, moved);
    if (this.#storedSummaries === 0) return;
    // Where no row was added here, they count the same rows; once retired, nobody counts again.
    if (listed?.rows === moved.rows) await this.prove([conversationId]);
    await this.#store.retireBeside(conversationId);
    const message = `conversation ${conversationId} was folded further since; the summaries of the archive are stored beside its own`;
    this.#problems.push({ code: "conflict", line: lineNumber, message });
  }
}

/** What another archive knows a conversation by; several may share it, in order. */
export const nameConversation = ({
  owner,
  sessionKey,
  createdAt,
}: Pick<MovedConversation, "owner" | "sessionKey" | "createdAt">): string =>
  JSON.stringify([owner, sessionKey, createdAt]);

function isSameRow(a: MovedRow, b: MovedRow | undefined): boolean {
  if (a.kind === "message" && b?.kind === "message")
    return a.seq === b.seq && a.eventId === b.eventId && Buffer.compare(a.commitment, b.commitment) === 0;
  return (
    a.kind === "ledger" &&
    b?.kind === "ledger" &&
    a.seq === b.seq &&
    a.change === b.change &&
    a.body === b.body &&
    a.at === b.at
  );
}

const listCuts = (rows: readonly MovedRow[]): readonly MovedCut[] =>
  rows.flatMap((row) => (row.kind === "message" ? row.cuts : []));
const countMessages = (rows: readonly MovedRow[]): number =>
  rows.filter((row) => row.kind === "message").length;

/**
 * Rows that contradict each other break a rule of the database or an assumption of the code that stores them: the file is wrong then, not the
 * program. What the system says of files and disks is passed on.
 */
export function describeFailure(error: unknown, path: string): unknown {
  const isOurs = error instanceof EngineError && error.code !== "internal";
  const system = (error as NodeJS.ErrnoException).code;
  if (isOurs || (typeof system === "string" && /^E[A-Z]+$/u.test(system))) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return refuse(path, `its records contradict each other (${reason})`, error);
}

function refuse(path: string, reason: string, cause?: unknown): EngineError {
  return new EngineError("invalid_input", `cannot import ${path}: ${reason}`, {
    hint: "the file was changed or damaged; nothing of it was stored; export it again",
    cause,
  });
}
