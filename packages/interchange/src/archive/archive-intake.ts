/**
 * Stores the records of an archive in order, from a file or from another store. A conversation that already exists is compared row by row: equal
 * rows add nothing, rows after them are added. A conversation that differs, or whose sessions are stored elsewhere, is left alone and reported.
 */
import { createHash } from "node:crypto";
import { resolve } from "node:path";

import { EngineError, isServerAddress, makeImportId } from "@lossless/core";
import type { ImportMark } from "@lossless/core/formats";
import type {
  Derive,
  Intake,
  MovedConversation,
  MovedCut,
  MovedFile,
  MovedRow,
  MovedSummary,
} from "@lossless/core/ports";

import type { ArchiveRecord } from "./archive-records.ts";
import type { ImportProblem } from "../transcript/import-result.ts";

const BATCH_ROWS = 400;
const BATCH_BYTES = 1024 * 1024;

export interface IntakeOptions {
  /** The file, or a name for the source of the records. */
  readonly path: string;
  /** Assigns everything to this owner instead of the original one. */
  readonly owner?: string | undefined;
  readonly sessionFilter?: readonly string[] | undefined;
  readonly since?: number | undefined;
  readonly derive: Derive;
  readonly now: number;
  /** Overwrites what is known about existing conversations and sessions with what the records say; otherwise it stays as it is. */
  readonly follows?: boolean | undefined;
  /** Generated when absent. */
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

/** A conversation that is already stored completely, exactly as in the archive. */
export interface StoredAlready {
  readonly conversationId: number;
  /** The number of its message rows in the archive. */
  readonly messages: number;
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

export class ArchiveIntake {
  readonly #store: Intake;
  readonly #options: IntakeOptions;
  readonly #mark: ImportMark;
  readonly #problems: ImportProblem[] = [];
  readonly #conversationIds: number[] = [];
  /** Conversations that got rows. Only these are proven; the others did not come from this file. */
  readonly #changed = new Set<number>();
  readonly #seen: Map<string, number>;
  readonly #stored: ReadonlyMap<number, StoredAlready>;
  readonly #counts = { imported: 0, skipped: 0, summaries: 0 };
  #sessions: Extract<ArchiveRecord, { record: "session" }>[] = [];
  #turns: Extract<ArchiveRecord, { record: "turn" }>[] = [];
  /** Null between conversations, and inside one that is left out. */
  #current: OpenConversation | null = null;
  #isLeftOut = false;
  #rows: MovedRow[] = [];
  #rowBytes = 0;
  /** Of the rows of the conversation so far; rows are numbered from one. */
  #lastSeq = 0;
  #files = new Map<string, FileEntry>();
  #openFile: { file: MovedFile; missing: number; pieces: Buffer[] } | null = null;
  #summaries: MovedSummary[] = [];
  #storedSummaries = 0;

  /**
   * `seen` counts earlier conversations with the same owner, key and age; `stored` maps the first line of each conversation that need not be
   * compared.
   */
  constructor(
    store: Intake,
    options: IntakeOptions,
    seen: ReadonlyMap<string, number> = new Map(),
    stored: ReadonlyMap<number, StoredAlready> = new Map(),
  ) {
    this.#store = store;
    this.#stored = stored;
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

  /** Fails if the conversations do not prove: then the archive was forged, or written by a faulty program. */
  async prove(conversationIds: Iterable<number> = this.#changed): Promise<void> {
    const [problem] = await this.#store.proveMoved([...conversationIds], this.#options.derive);
    if (problem !== undefined) throw refuse(this.#options.path, `it does not verify: ${problem.message}`);
  }

  finish(bytes: number): ArchiveImportResult {
    const { path } = this.#options;
    return { path, ...this.#counts, conversationIds: this.#conversationIds, problems: this.#problems, bytes };
  }

  async #open(record: Extract<ArchiveRecord, { record: "conversation" }>, lineNumber: number): Promise<void> {
    const { owner, now, follows = false } = this.#options;
    const { record: _record, number: _number, summaries, ...stored } = record;
    const moved = owner === undefined ? stored : { ...stored, owner };
    const leftOut = this.#whyLeftOut(moved);
    if (leftOut !== null) return this.#leaveOut("left_out", lineNumber, leftOut);
    const identity = nameConversation(moved);
    const nth = this.#seen.get(identity) ?? 0;
    this.#seen.set(identity, nth + 1);
    const same = this.#stored.get(lineNumber);
    if (same) return this.#passOver(same);
    await this.#saveSessions(moved);
    const outcome = await this.#store.openMoved(moved, nth, now, follows);
    if (outcome.kind === "conflict")
      return this.#leaveOut("conflict", lineNumber, `conversation of ${moved.sessionKey}: ${outcome.reason}`);
    if (outcome.archivedInstead) {
      const message = `${moved.sessionKey} has an active conversation; the one of the archive is stored as archived`;
      this.#problems.push({ code: "conflict", line: lineNumber, message });
    }
    this.#conversationIds.push(outcome.conversationId);
    this.#current = { moved, conversationId: outcome.conversationId, present: outcome.rows, summaries };
    [this.#storedSummaries, this.#lastSeq] = [0, 0];
    if (outcome.rows === 0 || follows) this.#changed.add(outcome.conversationId);
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

  #passOver({ conversationId, messages }: StoredAlready): void {
    this.#conversationIds.push(conversationId);
    this.#counts.skipped += messages;
    this.#isLeftOut = true;
  }

  #leaveOut(code: "left_out" | "conflict", line: number, message: string): void {
    this.#problems.push({ code, line, message });
    this.#isLeftOut = true;
  }

  /** Stores the sessions of a conversation; sessions of conversations that are left out are not stored. */
  async #saveSessions(moved: MovedConversation): Promise<void> {
    const ids = new Set(moved.placements.map((placement) => placement.sessionId));
    const withOwner = <T extends { owner: string; sessionId: string }>(list: readonly T[]): T[] =>
      list.filter((entry) => ids.has(entry.sessionId)).map((entry) => ({ ...entry, owner: moved.owner }));
    await this.#store.moveSessions(withOwner(this.#sessions), withOwner(this.#turns), this.#options.follows);
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
    if (!isRight)
      throw refuse(this.#options.path, `the content of file ${file.sha256} does not match its hash`);
    this.#files.set(file.sha256, { file, content });
    this.#rowBytes += content.byteLength;
  }

  async #addRow(row: MovedRow): Promise<void> {
    if (this.#isLeftOut || this.#current === null) return;
    if (row.seq !== (this.#lastSeq += 1))
      throw refuse(
        this.#options.path,
        `row ${row.seq} of a conversation is where row ${this.#lastSeq} should be`,
      );
    // Flush only before a message: a message and the records of its files belong together.
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

  /** The seq of the first row that differs from the stored one; null when all are equal. */
  async #findDifference(conversationId: number, rows: readonly MovedRow[]): Promise<number | null> {
    const [first] = rows;
    if (!first) return null;
    const stored = await this.#store.readMovedRows(conversationId, first.seq - 1, rows.length);
    const erased = rows.findIndex((row, i) => isForgotten(row) && !isForgotten(stored[i]));
    if (erased >= 0)
      throw new EngineError(
        "invalid_input",
        `cannot import ${this.#options.path}: the message at row ${rows[erased]?.seq} of conversation ${conversationId} was forgotten there and is still stored here`,
        { step: { kind: "forget_or_choose_target" } },
      );
    return rows.find((row, i) => !isSameRow(row, stored[i]))?.seq ?? null;
  }

  /** The archive has each file once, before the first message that holds it; for later messages the file is read back from the store. */
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

  /** A conversation that has continued since, or got nothing, keeps its own cover. */
  async #setCover(current: OpenConversation, cover: readonly string[], lineNumber: number): Promise<void> {
    const { moved, conversationId } = current;
    if (!this.#changed.has(conversationId)) return;
    const [listed] = await this.#store.listMoved({ conversationIds: [conversationId] });
    const hasGrown = (listed?.rows ?? 0) > moved.rows || (listed?.summaries ?? 0) > current.summaries;
    if (!hasGrown) return this.#store.moveCover(conversationId, cover, moved);
    if (this.#storedSummaries === 0) return;
    // If no row was added here, the summaries count the same rows. Prove them now: retired summaries are not counted again.
    if (listed?.rows === moved.rows) await this.prove([conversationId]);
    await this.#store.retireBeside(conversationId);
    const message = `conversation ${conversationId} was folded further since; the summaries of the archive are stored beside its own`;
    this.#problems.push({ code: "conflict", line: lineNumber, message });
  }
}

/** The identity of a conversation across archives; several may share it, in order. */
export const nameConversation = ({
  owner,
  sessionKey,
  createdAt,
}: Pick<MovedConversation, "owner" | "sessionKey" | "createdAt">): string =>
  JSON.stringify([owner, sessionKey, createdAt]);

const isForgotten = (row: MovedRow | undefined): boolean =>
  row?.kind === "message" && row.forgottenAt !== null;

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
 * Rows that contradict each other violate a database constraint or an assumption of the code that stores them: then the file is wrong, not the
 * program. System errors about files and disks are passed on.
 */
export function describeFailure(error: unknown, path: string): unknown {
  const isOurs = error instanceof EngineError && error.code !== "internal";
  const system = (error as NodeJS.ErrnoException).code;
  if (isOurs || (typeof system === "string" && /^E[A-Z]+$/u.test(system))) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return refuse(path, `its records contradict each other (${reason})`, error);
}

export function refuse(path: string, reason: string, cause?: unknown): EngineError {
  return new EngineError("invalid_input", `cannot import ${path}: ${reason}`, {
    hint: "the file was changed or damaged; nothing of it was stored; export it again",
    cause,
  });
}
