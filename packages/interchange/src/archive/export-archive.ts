/**
 * Writes conversations as an archive (`.lcmx`): sessions, then each conversation with its rows, files, summaries and cover. The order
 * and the numbers follow from the content alone, so that an archive that was imported elsewhere exports to the same bytes.
 */

import { createHash } from "node:crypto";

import { EngineError, must } from "@lossless/core";
import type { ListedConversation, MoveChoice, MovedRow, Snapshot, Store } from "@lossless/core/ports";

import { ARCHIVE_VERSION, renderRecord, type ArchiveRecord } from "./archive-records.ts";
import { writeWholeFile } from "../formats/whole-file.ts";

const PAGE_ROWS = 200;
const PAGE_SUMMARIES = 100;
/** A multiple of three, so that base64 pieces can be joined. */
const PIECE_BYTES = 192 * 1024;

export interface ExportProgress {
  readonly done: number;
  readonly total: number;
}

export interface ExportChoice extends MoveChoice {
  /** ms UTC: only conversations with a message at or after this time. */
  readonly since?: number | undefined;
  /** Session ids or keys. */
  readonly sessionFilter?: readonly string[] | undefined;
}

export interface ExportOptions extends ExportChoice {
  readonly out: string;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ExportProgress) => void) | undefined;
}

export interface ExportResult {
  readonly path: string;
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  readonly files: number;
  readonly bytes: number;
}

/** The conversations that the export selects. */
export async function chooseConversations(
  store: Snapshot,
  choice: ExportChoice,
): Promise<ListedConversation[]> {
  const { since, sessionFilter } = choice;
  const isWanted = (conversation: ListedConversation): boolean => {
    if (since !== undefined && (conversation.lastAt ?? conversation.createdAt) < since) return false;
    if (sessionFilter === undefined || sessionFilter.length === 0) return true;
    const names = [
      conversation.sessionKey,
      conversation.sessionId,
      ...conversation.placements.map((placement) => placement.sessionId),
    ];
    return sessionFilter.some((wanted) => names.includes(wanted));
  };
  const found = await store.listMoved(choice);
  const missing = choice.conversationIds?.find((id) => !found.some((one) => one.conversationId === id));
  if (missing !== undefined) throw new EngineError("not_found", `cannot find conversation ${missing}`);
  return found.filter(isWanted);
}

/** Writes an archive; compressed with zstd when the path ends in `.zst`. */
export async function exportArchive(store: Store, options: ExportOptions): Promise<ExportResult> {
  const counts = { conversations: 0, messages: 0, summaries: 0, files: 0 };
  const compress = options.out.endsWith(".zst");
  const { bytes } = await store.withSnapshot((snapshot) =>
    writeWholeFile(options.out, renderLines(readRecords(snapshot, options, counts)), {
      compress,
      signal: options.signal,
    }),
  );
  return { path: options.out, ...counts, bytes };
}

async function* renderLines(records: AsyncIterable<ArchiveRecord>): AsyncGenerator<string> {
  const hash = createHash("sha256");
  let count = 0;
  for await (const record of records) {
    const line = `${renderRecord(record)}\n`;
    hash.update(line);
    count += 1;
    yield line;
  }
  yield `${renderRecord({ record: "end", records: count, sha256: hash.digest("hex") })}\n`;
}

export type ArchiveCounts = { conversations: number; messages: number; summaries: number; files: number };

/** All records of an archive file of these conversations, except the end record. */
export async function* readRecords(
  store: Snapshot,
  options: Omit<ExportOptions, "out">,
  counts: ArchiveCounts,
): AsyncGenerator<ArchiveRecord> {
  yield { record: "lcmx", version: ARCHIVE_VERSION };
  const conversations = await chooseConversations(store, options);
  const total = conversations.reduce((sum, conversation) => sum + conversation.rows, 0);
  const { sessions, turns } = await store.readMovedSessions(
    conversations.map(({ conversationId }) => conversationId),
  );
  for (const session of sessions) yield { record: "session", ...session };
  for (const { sessionId, owner, key, at } of turns) yield { record: "turn", sessionId, owner, key, at };
  let before = 0;
  for (const [index, conversation] of conversations.entries()) {
    counts.conversations += 1;
    const report = (rows: number): void => options.onProgress?.({ done: before + rows, total });
    yield* readConversation(store, conversation, index + 1, counts, report);
    before += conversation.rows;
  }
}

async function* readConversation(
  store: Snapshot,
  listed: ListedConversation,
  number: number,
  counts: ArchiveCounts,
  report: (rows: number) => void,
): AsyncGenerator<ArchiveRecord> {
  const { conversationId, lastAt: _lastAt, summaries, ...conversation } = listed;
  const { placements, ...facts } = conversation;
  yield { record: "conversation", number, summaries, ...facts, placements };
  const written = new Set<string>();
  for (let after = 0; after < conversation.rows; after += PAGE_ROWS) {
    for (const row of await store.readMovedRows(conversationId, after, PAGE_ROWS)) {
      yield* readFiles(store, conversationId, row, written, counts);
      if (row.kind === "message") counts.messages += 1;
      yield { record: "row", row };
    }
    report(Math.min(after + PAGE_ROWS, conversation.rows));
  }
  for (let offset = 0; offset < summaries; offset += PAGE_SUMMARIES) {
    for (const summary of await store.readMovedSummaries(conversationId, offset, PAGE_SUMMARIES)) {
      counts.summaries += 1;
      yield { record: "summary", ...summary };
    }
  }
  yield { record: "cover", summaries: await store.readMovedCover(conversationId) };
}

/** The files a row needs to be stored: those it holds or records. */
function listContents(row: MovedRow): string[] {
  if (row.kind === "message") return row.cuts.map(({ sha256 }) => sha256);
  const { sha256 } = row.change === "file" ? (JSON.parse(row.body) as { sha256?: string }) : {};
  return sha256 === undefined ? [] : [sha256];
}

/** Each file comes before the first row that needs it: the message that brought it may be forgotten while others still hold it. */
async function* readFiles(
  store: Snapshot,
  conversationId: number,
  row: MovedRow,
  written: Set<string>,
  counts: ArchiveCounts,
): AsyncGenerator<ArchiveRecord> {
  for (const sha256 of listContents(row)) {
    if (written.has(sha256)) continue;
    written.add(sha256);
    counts.files += 1;
    const found = must(await store.readMovedFile(conversationId, sha256), `large file ${sha256}`);
    const content = must(found.content, `content of large file ${sha256}`);
    yield { record: "file", pieces: Math.ceil(content.byteLength / PIECE_BYTES), ...found.file };
    for (let at = 0; at < content.byteLength; at += PIECE_BYTES) {
      const piece = content.subarray(at, at + PIECE_BYTES);
      yield {
        record: "piece",
        sha256,
        base64: Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("base64"),
      };
    }
  }
}
