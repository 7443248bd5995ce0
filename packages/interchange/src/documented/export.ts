/**
 * Writes conversations as a database of the documented lossless-claw schema, so that programs made for it keep working. History imported from
 * such a database is written with its original rows; everything else gets equivalent rows. The file is written under a temporary name and
 * renamed when it is complete.
 */
import { type JsonObject } from "@lossless/core/formats";

import { createHash, randomUUID } from "node:crypto";
import { renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

import { EngineError } from "@lossless/core";
import type { PartView } from "@lossless/core";
import type { ListedConversation, MovedSummary, Snapshot, Store } from "@lossless/core/ports";
import {
  listSeqsBelow,
  readMessages,
  readSummaries,
  type ReadMessage,
} from "../archive/conversation-reader.ts";
import { chooseConversations, type ExportOptions, type ExportResult } from "../archive/export-archive.ts";
import { parseLine } from "../formats/format.ts";
import { createPrivateDatabase } from "../formats/whole-file.ts";

import { readMessageRows, readRowEvent, type MessageRows } from "./message.ts";
import { DOCUMENTED_SCHEMA, FILL_INDEXES } from "./schema.ts";
import { numberOf, textOf, type SourceRow, type SourceValue } from "./source.ts";

export interface DocumentedExportOptions extends ExportOptions {
  /** Where the large files of the archive are; other programs open them there. */
  readonly filesDir: string;
}

export interface DocumentedExportResult extends ExportResult {
  /** Hidden rows that are not messages for other programs. */
  readonly leftOut: number;
}

export async function exportDocumented(
  store: Store,
  options: DocumentedExportOptions,
): Promise<DocumentedExportResult> {
  const { out } = options;
  const temporary = `${out}.${process.pid}.tmp`;
  const database = createPrivateDatabase(temporary);
  try {
    database.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN");
    database.exec(DOCUMENTED_SCHEMA);
    const report = await store.withSnapshot((snapshot) =>
      new DocumentedWriter(snapshot, database, options).writeAll(),
    );
    database.exec(FILL_INDEXES);
    database.exec("COMMIT");
    checkLinks(database, out);
    database.close();
    renameSync(temporary, out);
    return { ...report, bytes: statSync(out).size };
  } catch (error) {
    if (database.isOpen) database.close();
    rmSync(temporary, { force: true });
    throw error;
  }
}

function checkLinks(database: DatabaseSync, path: string): void {
  const [dangling] = database.prepare("PRAGMA foreign_key_check").all();
  if (dangling === undefined) return;
  throw new EngineError(
    "internal",
    `cannot write ${path}: a row of ${String(dangling["table"])} refers to a missing row of ${String(dangling["parent"])}`,
  );
}

/** Rows that a conversation brought from a documented database. */
interface ImportedRows {
  conversation: SourceRow | null;
  readonly summaries: Map<string, SourceRow>;
  readonly summaryMessages: SourceRow[];
  readonly summaryParents: SourceRow[];
  readonly contextItems: SourceRow[];
}

class DocumentedWriter {
  readonly #store: Snapshot;
  readonly #database: DatabaseSync;
  readonly #options: DocumentedExportOptions;
  readonly #counts = { conversations: 0, messages: 0, summaries: 0, files: 0, leftOut: 0 };
  readonly #statements = new Map<string, StatementSync>();
  readonly #columns = new Map<string, ReadonlySet<string>>();

  constructor(store: Snapshot, database: DatabaseSync, options: DocumentedExportOptions) {
    this.#store = store;
    this.#database = database;
    this.#options = options;
  }

  /** Conversations that already had numbers come first, so that they can keep them. */
  async writeAll(): Promise<DocumentedExportResult> {
    const conversations = await chooseConversations(this.#store, this.#options);
    const total = conversations.reduce((sum, { rows }) => sum + rows, 0);
    const isImported = ({ sessionId }: ListedConversation): boolean => sessionId.startsWith("lossless-claw:");
    let done = 0;
    for (const conversation of [
      ...conversations.filter(isImported),
      ...conversations.filter((one) => !isImported(one)),
    ]) {
      if (this.#options.signal?.aborted)
        throw new EngineError("aborted", `cannot finish ${this.#options.out}: cancelled`);
      await new ConversationWriter(this, this.#store, conversation, this.#options.filesDir).write();
      this.#counts.conversations += 1;
      done += conversation.rows;
      this.#options.onProgress?.({ done, total });
    }
    return { path: this.#options.out, ...this.#counts, bytes: 0 };
  }

  count(what: "messages" | "summaries" | "files" | "leftOut"): void {
    this.#counts[what] += 1;
  }

  /** Writes the columns of a row that the schema has. */
  insert(table: string, row: Readonly<Record<string, SourceValue | undefined>>): void {
    const known = this.#columnsOf(table);
    const columns = Object.keys(row).filter((column) => known.has(column) && row[column] !== undefined);
    const sql = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
    this.#prepare(sql).run(...columns.map((column) => toInput(row[column] ?? null)));
  }

  /** The wanted number if it is free, else the next one that is. */
  takeId(table: "conversations" | "messages", wanted: number | null): number {
    const column = table === "conversations" ? "conversation_id" : "message_id";
    const isTaken = (id: number): boolean =>
      this.#prepare(`SELECT 1 FROM ${table} WHERE ${column} = ?`).get(id) !== undefined;
    if (wanted !== null && !isTaken(wanted)) return wanted;
    return Number(
      this.#prepare(`SELECT coalesce(max(${column}), 0) + 1 AS id FROM ${table}`).get()?.["id"] ?? 1,
    );
  }

  isFree(table: "summaries" | "large_files" | "message_parts", column: string, id: string): boolean {
    return this.#prepare(`SELECT 1 FROM ${table} WHERE ${column} = ?`).get(id) === undefined;
  }

  isKeyActive(sessionKey: string): boolean {
    return (
      this.#prepare("SELECT 1 FROM conversations WHERE session_key = ? AND active = 1").get(sessionKey) !==
      undefined
    );
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #columnsOf(table: string): ReadonlySet<string> {
    const known =
      this.#columns.get(table) ??
      new Set(
        this.#database
          .prepare("SELECT name FROM pragma_table_info(?)")
          .all(table)
          .map((row) => String(row["name"])),
      );
    this.#columns.set(table, known);
    return known;
  }
}

class ConversationWriter {
  readonly #out: DocumentedWriter;
  readonly #store: Snapshot;
  readonly #conversation: ListedConversation;
  readonly #filesDir: string;
  readonly #imported: ImportedRows = {
    conversation: null,
    summaries: new Map(),
    summaryMessages: [],
    summaryParents: [],
    contextItems: [],
  };
  /** Message numbers there: by our seq, and by the number the imported row had. */
  readonly #idBySeq = new Map<number, number>();
  readonly #idByImported = new Map<number, number>();
  #conversationId = 0;
  #hostSession = "";
  #lastSeq = 0;
  #hasOwn = false;

  constructor(out: DocumentedWriter, store: Snapshot, conversation: ListedConversation, filesDir: string) {
    this.#out = out;
    this.#store = store;
    this.#conversation = conversation;
    this.#filesDir = filesDir;
  }

  async write(): Promise<void> {
    for await (const message of readMessages(this.#store, this.#conversation.conversationId)) {
      const event = parseEvent(message.bytes);
      const rows = event === null ? null : readRowEvent(event);
      if (rows !== null) this.#keepRows(rows.table, rows.rows);
      else {
        if (this.#conversationId === 0) this.#writeConversation();
        const imported = event === null ? null : readMessageRows(event);
        if (imported !== null) this.#writeImported(message, imported);
        else if (message.row.hidden.length > 0) this.#out.count("leftOut");
        else await this.#writeMessage(message);
      }
    }
    if (this.#conversationId === 0) this.#writeConversation();
    const summaries: MovedSummary[] = [];
    for await (const summary of readSummaries(this.#store, this.#conversation.conversationId))
      summaries.push(summary);
    this.#writeSummaries(summaries);
    await this.#writeContext(summaries);
  }

  #keepRows(table: string, rows: readonly SourceRow[]): void {
    const [first] = rows;
    if (table === "conversations") this.#imported.conversation = first ?? null;
    else if (table === "summary_messages") this.#imported.summaryMessages.push(...rows);
    else if (table === "summary_parents") this.#imported.summaryParents.push(...rows);
    else if (table === "context_items") this.#imported.contextItems.push(...rows);
    else if (table === "summaries")
      for (const row of rows) this.#imported.summaries.set(textOf(row, "summary_id") ?? "", row);
    else if (table === "large_files") for (const row of rows) this.#writeFileRow(row);
  }

  #writeFileRow(row: SourceRow): void {
    if (!this.#out.isFree("large_files", "file_id", textOf(row, "file_id") ?? "")) return;
    if (this.#conversationId === 0) this.#writeConversation();
    this.#out.insert("large_files", { ...row, conversation_id: this.#conversationId });
    this.#out.count("files");
  }

  #writeConversation(): void {
    const { sessionKey, sessionId, createdAt, archivedAt, archiveCause, title, lastAt } = this.#conversation;
    const row = this.#imported.conversation;
    this.#conversationId = this.#out.takeId(
      "conversations",
      row === null ? null : numberOf(row, "conversation_id"),
    );
    this.#hostSession = row === null ? sessionId : (textOf(row, "session_id") ?? sessionId);
    if (row !== null) {
      this.#out.insert("conversations", { ...row, conversation_id: this.#conversationId });
      return;
    }
    // Two agents may use one key; the documented schema allows one active conversation per key.
    const isActive = archivedAt === null && !this.#out.isKeyActive(sessionKey);
    this.#out.insert("conversations", {
      conversation_id: this.#conversationId,
      session_id: this.#hostSession,
      session_key: sessionKey,
      active: isActive ? 1 : 0,
      archived_at: isActive ? null : toIso(archivedAt ?? createdAt),
      archive_cause: archiveCause,
      title,
      created_at: toIso(createdAt),
      updated_at: toIso(lastAt ?? createdAt),
    });
  }

  #writeImported({ row }: ReadMessage, rows: MessageRows): void {
    const wanted = numberOf(rows.message, "message_id");
    const id = this.#out.takeId("messages", wanted);
    if (wanted !== null) this.#idByImported.set(wanted, id);
    this.#idBySeq.set(row.seq, id);
    this.#lastSeq = Math.max(this.#lastSeq, numberOf(rows.message, "seq") ?? 0);
    this.#out.count("messages");
    this.#out.insert("messages", { ...rows.message, message_id: id, conversation_id: this.#conversationId });
    for (const part of rows.parts)
      this.#out.insert("message_parts", { ...part, ...this.#freePart(part), message_id: id });
  }

  async #writeMessage(message: ReadMessage): Promise<void> {
    this.#hasOwn = true;
    const id = this.#out.takeId("messages", null);
    this.#idBySeq.set(message.row.seq, id);
    this.#lastSeq += 1;
    this.#out.count("messages");
    this.#writeOwnMessage(message, id);
    await this.#writeOwnFiles(message);
  }

  #freePart(part: SourceRow): { part_id: string } {
    const id = textOf(part, "part_id");
    return { part_id: id !== null && this.#out.isFree("message_parts", "part_id", id) ? id : randomUUID() };
  }

  #writeOwnMessage({ row, view, bytes }: ReadMessage, id: number): void {
    const role = view.role === "other" ? "system" : view.role;
    const content = view.parts
      .filter((part) => part.type === "text")
      .map((part) => part.text)
      .join("\n");
    this.#out.insert("messages", {
      message_id: id,
      conversation_id: this.#conversationId,
      seq: this.#lastSeq,
      role,
      content,
      token_count: row.tokens,
      identity_hash: createHash("sha256").update(`${role}\0${content}`).digest("hex"),
      transcript_entry_id: row.eventId,
      created_at: toIso(row.createdAt),
    });
    for (const part of view.parts) {
      this.#out.insert("message_parts", {
        part_id: randomUUID(),
        message_id: id,
        session_id: this.#hostSession,
        ordinal: part.ordinal,
        ...describePart(part, bytes, view.rawRole),
      });
    }
  }

  async #writeOwnFiles({ parts }: ReadMessage): Promise<void> {
    for (const { fileId } of parts) {
      if (fileId === null || !this.#out.isFree("large_files", "file_id", fileId)) continue;
      const file = await this.#store.readFile(fileId);
      if (file === null) continue;
      this.#out.count("files");
      this.#out.insert("large_files", {
        file_id: fileId,
        conversation_id: this.#conversationId,
        file_name: file.fileName,
        mime_type: file.mimeType,
        byte_size: file.byteSize,
        line_count: file.lineCount,
        storage_uri: join(this.#filesDir, file.blob),
        exploration_summary: file.explorationSummary,
        created_at: toIso(file.createdAt),
      });
    }
  }

  #writeSummaries(summaries: readonly MovedSummary[]): void {
    const known = new Set<string>();
    const contents = new Map(summaries.map((summary) => [summary.summaryId, summary.content]));
    for (const [id, row] of this.#imported.summaries) {
      if (!this.#out.isFree("summaries", "summary_id", id)) continue;
      known.add(id);
      this.#out.count("summaries");
      this.#out.insert("summaries", {
        content: contents.get(id) ?? "",
        ...row,
        conversation_id: this.#conversationId,
      });
    }
    for (const row of this.#imported.summaryMessages) this.#writeMessageLink(row, known);
    for (const row of this.#imported.summaryParents) {
      const ends = [textOf(row, "summary_id"), textOf(row, "parent_summary_id")];
      if (ends.every((id) => known.has(id ?? ""))) this.#out.insert("summary_parents", row);
      else this.#out.count("leftOut");
    }
    for (const summary of summaries) {
      // Reserve and retired summaries are internal; other programs know only published summaries.
      if (known.has(summary.summaryId) || summary.state !== "cover") continue;
      this.#hasOwn = true;
      this.#writeOwnSummary(summary);
    }
  }

  #writeMessageLink(row: SourceRow, known: ReadonlySet<string>): void {
    const messageId = this.#idByImported.get(numberOf(row, "message_id") ?? 0);
    // A message of another conversation, or one that was forgotten, cannot be linked to.
    if (messageId === undefined || !known.has(textOf(row, "summary_id") ?? "")) this.#out.count("leftOut");
    else this.#out.insert("summary_messages", { ...row, message_id: messageId });
  }

  #writeOwnSummary(summary: MovedSummary): void {
    this.#out.count("summaries");
    this.#out.insert("summaries", {
      summary_id: summary.summaryId,
      conversation_id: this.#conversationId,
      kind: summary.kind,
      depth: summary.depth,
      content: summary.content,
      token_count: summary.tokens,
      earliest_at: toIso(summary.earliestAt),
      latest_at: toIso(summary.latestAt),
      descendant_count: summary.descendantCount,
      source_message_token_count: summary.sourceTokens,
      model: summary.model,
      created_at: toIso(summary.createdAt),
    });
    let ordinal = 0;
    for (const source of summary.sources) {
      const messageId = typeof source === "number" ? this.#idBySeq.get(source) : undefined;
      if (typeof source === "string") {
        this.#out.insert("summary_parents", {
          summary_id: summary.summaryId,
          parent_summary_id: source,
          ordinal: ordinal++,
        });
      } else if (messageId !== undefined) {
        this.#out.insert("summary_messages", {
          summary_id: summary.summaryId,
          message_id: messageId,
          ordinal: ordinal++,
        });
      }
    }
  }

  #writeContextRow(row: SourceRow): void {
    const wanted = numberOf(row, "message_id");
    const messageId = wanted === null ? null : this.#idByImported.get(wanted);
    if (messageId === undefined) this.#out.count("leftOut");
    else
      this.#out.insert("context_items", {
        ...row,
        conversation_id: this.#conversationId,
        message_id: messageId,
      });
  }

  /** The original context if nothing has been added since; otherwise the current cover. */
  async #writeContext(summaries: readonly MovedSummary[]): Promise<void> {
    if (!this.#hasOwn && this.#imported.conversation !== null) {
      for (const row of this.#imported.contextItems) this.#writeContextRow(row);
      return;
    }
    const cover = await this.#store.readMovedCover(this.#conversation.conversationId);
    const sourcesOf = new Map(summaries.map((summary) => [summary.summaryId, summary.sources]));
    const summaryOfSeq = new Map<number, string>();
    for (const id of cover) for (const seq of listSeqsBelow(id, sourcesOf)) summaryOfSeq.set(seq, id);
    let ordinal = 0;
    const written = new Set<string>();
    // The messages were written, and so numbered, by position.
    for (const [seq, messageId] of this.#idBySeq) {
      const summaryId = summaryOfSeq.get(seq);
      if (summaryId !== undefined && written.has(summaryId)) continue;
      if (summaryId !== undefined) written.add(summaryId);
      this.#out.insert("context_items", {
        conversation_id: this.#conversationId,
        ordinal: ordinal++,
        item_type: summaryId === undefined ? "message" : "summary",
        message_id: summaryId === undefined ? messageId : null,
        summary_id: summaryId ?? null,
      });
    }
  }
}

function describePart(part: PartView, bytes: Uint8Array, rawRole: string): Record<string, SourceValue> {
  const parsed = parseValue(bytes, part);
  const rawType =
    typeof parsed === "object" && parsed !== null ? ((parsed as JsonObject)["type"] ?? part.type) : part.type;
  const isTool = part.type === "tool_call" || part.type === "tool_result";
  const types = {
    text: "text",
    reasoning: "reasoning",
    tool_call: "tool",
    tool_result: "tool",
    image: "file",
    file: "file",
    other: "text",
  } as const;
  return {
    part_type: types[part.type],
    text_content: isTool ? null : part.text,
    tool_call_id: part.toolCallId ?? null,
    tool_name: part.toolName ?? null,
    tool_input: part.type === "tool_call" ? part.text : null,
    tool_output: part.type === "tool_result" ? part.text : null,
    file_mime: part.mimeType ?? null,
    file_name: part.fileName ?? null,
    metadata: JSON.stringify({ originalRole: rawRole, rawType, raw: parsed }),
  };
}

function parseValue(bytes: Uint8Array, { at, length }: PartView): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString("utf8")) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function parseEvent(bytes: Uint8Array): JsonObject | null {
  const parsed = parseLine(bytes);
  return parsed.kind === "entry" ? parsed.entry : null;
}

function toInput(value: SourceValue): SQLInputValue {
  return typeof value === "object" && value !== null ? Buffer.from(value.base64, "base64") : value;
}

const toIso = (time: number): string => new Date(time).toISOString();
