/**
 * Writes conversations into a Remnic LCM database (`state/lcm.sqlite` of a memory folder), directly in its tables: messages with a turn index
 * per session, parts with their payload, summaries with the range of turns they cover and a pointer to their parent (the coarser summary), and
 * one compaction event per session that got something new.
 *
 * Running it again adds nothing: messages are recognised by the session and event id in their metadata, summaries by their id.
 */
import { isObject } from "@lossless/core/formats";

import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

import { EngineError, must } from "@lossless/core";
import type { PartView } from "@lossless/core";
import type { ListedConversation, MovedSummary, Snapshot, Store } from "@lossless/core/ports";

import {
  listSeqsBelow,
  readMessages,
  readSummaries,
  type ReadMessage,
} from "../archive/conversation-reader.ts";
import { chooseConversations, type ExportOptions, type ExportResult } from "../archive/export-archive.ts";
import { parseLine } from "./format.ts";
import { readToolArguments } from "./tool-arguments.ts";
import { createPrivateDatabase } from "./whole-file.ts";

const SCHEMA_VERSION = "2";
/** How long to wait for Remnic's lock on its database. */
const BUSY_MS = 5000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS lcm_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lcm_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, turn_index INTEGER NOT NULL, role TEXT NOT NULL,
  content TEXT NOT NULL, token_count INTEGER NOT NULL, created_at TEXT NOT NULL, metadata TEXT);
CREATE INDEX IF NOT EXISTS idx_lcm_messages_session ON lcm_messages (session_id, turn_index);
CREATE TABLE IF NOT EXISTS lcm_message_parts (
  id INTEGER PRIMARY KEY AUTOINCREMENT, message_id INTEGER NOT NULL REFERENCES lcm_messages (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL, kind TEXT NOT NULL, payload TEXT NOT NULL, tool_name TEXT, file_path TEXT, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS idx_lcm_message_parts_msg ON lcm_message_parts (message_id, ordinal);
CREATE INDEX IF NOT EXISTS idx_lcm_message_parts_tool ON lcm_message_parts (tool_name);
CREATE INDEX IF NOT EXISTS idx_lcm_message_parts_file ON lcm_message_parts (file_path);
CREATE TABLE IF NOT EXISTS lcm_summary_nodes (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, depth INTEGER NOT NULL, parent_id TEXT REFERENCES lcm_summary_nodes (id),
  summary_text TEXT NOT NULL, token_count INTEGER NOT NULL, msg_start INTEGER NOT NULL, msg_end INTEGER NOT NULL,
  escalation INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS idx_lcm_summary_session ON lcm_summary_nodes (session_id, depth);
CREATE INDEX IF NOT EXISTS idx_lcm_summary_range ON lcm_summary_nodes (session_id, msg_start, msg_end);
CREATE TABLE IF NOT EXISTS lcm_compaction_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, fired_at TEXT NOT NULL, msg_before INTEGER NOT NULL,
  tokens_before INTEGER NOT NULL, tokens_after INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS lcm_messages_fts USING fts5 (content, content = lcm_messages, content_rowid = id);
CREATE VIRTUAL TABLE IF NOT EXISTS lcm_summaries_fts USING fts5 (summary_text, content = lcm_summary_nodes, content_rowid = rowid);
`;

const ESCALATIONS: Readonly<Record<string, number>> = { normal: 0, aggressive: 1, extractive: 2 };

export interface RemnicExportOptions extends ExportOptions {
  /** Does everything, then rolls back. */
  readonly dryRun?: boolean | undefined;
  readonly now: number;
}

export interface RemnicExportResult extends ExportResult {
  /** Messages and summaries that were there before. */
  readonly known: number;
  readonly events: number;
}

export async function exportRemnic(store: Store, options: RemnicExportOptions): Promise<RemnicExportResult> {
  const { out, dryRun = false } = options;
  const isNew = !existsSync(out);
  if (isNew && !dryRun) mkdirSync(dirname(out), { recursive: true, mode: 0o700 });
  const database =
    isNew && !dryRun
      ? createPrivateDatabase(out)
      : new DatabaseSync(isNew ? ":memory:" : out, { timeout: BUSY_MS });
  try {
    if (!dryRun) database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA foreign_keys = ON; BEGIN IMMEDIATE");
    const report = await store.withSnapshot((snapshot) =>
      new RemnicWriter(snapshot, database, options).writeAll(),
    );
    database.exec(dryRun ? "ROLLBACK" : "COMMIT");
    return report;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  } finally {
    database.close();
  }
}

class RemnicWriter {
  readonly #store: Snapshot;
  readonly #options: RemnicExportOptions;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #touched = new Set<string>();
  readonly #counts = { conversations: 0, messages: 0, summaries: 0, files: 0, known: 0, events: 0 };

  constructor(store: Snapshot, database: DatabaseSync, options: RemnicExportOptions) {
    this.#store = store;
    this.#database = database;
    this.#options = options;
    this.#prepareSchema();
  }

  #prepareSchema(): void {
    const tables = this.#database
      .prepare(
        "SELECT count(*) AS n FROM sqlite_schema WHERE name NOT LIKE 'lcm_%' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'idx_lcm_%'",
      )
      .get();
    if (Number(tables?.["n"] ?? 0) > 0) {
      throw new EngineError(
        "usage",
        `cannot write ${this.#options.out}: it is a database of another program`,
        {
          hint: "name Remnic's state/lcm.sqlite, or a file that does not exist",
        },
      );
    }
    this.#database.exec(SCHEMA);
    this.#run(
      "INSERT INTO lcm_meta (key, value) VALUES ('schema_version', ?) ON CONFLICT DO NOTHING",
      SCHEMA_VERSION,
    );
    const version = this.#get("SELECT value FROM lcm_meta WHERE key = 'schema_version'")?.["value"];
    if (version === "1")
      this.#run("UPDATE lcm_meta SET value = ? WHERE key = 'schema_version'", SCHEMA_VERSION);
    else if (version !== SCHEMA_VERSION) {
      throw new EngineError(
        "usage",
        `cannot write ${this.#options.out}: its schema has version ${String(version)}, known is ${SCHEMA_VERSION}`,
      );
    }
  }

  async writeAll(): Promise<RemnicExportResult> {
    const conversations = await chooseConversations(this.#store, this.#options);
    const total = conversations.reduce((sum, { rows }) => sum + rows, 0);
    let done = 0;
    for (const conversation of conversations.toSorted(
      (a, b) => a.createdAt - b.createdAt || a.conversationId - b.conversationId,
    )) {
      if (this.#options.signal?.aborted)
        throw new EngineError("aborted", `cannot finish ${this.#options.out}: cancelled`);
      this.#counts.conversations += 1;
      await this.#writeConversation(conversation);
      done += conversation.rows;
      this.#options.onProgress?.({ done, total });
    }
    for (const session of this.#touched) this.#writeEvent(session);
    return { path: this.#options.out, ...this.#counts, bytes: 0 };
  }

  async #writeConversation(conversation: ListedConversation): Promise<void> {
    const session = nameHostSession(conversation.sessionId);
    const turnOfSeq = new Map<number, number>();
    let next = Number(
      this.#get(
        "SELECT coalesce(max(turn_index), -1) + 1 AS n FROM lcm_messages WHERE session_id = ?",
        session,
      )?.["n"] ?? 0,
    );
    const known = this.#listKnown(session);
    for await (const message of readMessages(this.#store, conversation.conversationId)) {
      if (message.row.hidden.length > 0) continue;
      const key = keyOf(message.row.sessionId, message.row.eventId);
      const turn = known.get(key) ?? next;
      turnOfSeq.set(message.row.seq, turn);
      if (known.has(key)) this.#counts.known += 1;
      else {
        this.#writeMessage(session, turn, message);
        next += 1;
      }
    }
    await this.#writeSummaries(session, conversation.conversationId, turnOfSeq);
  }

  /** Turns of the messages that an earlier export wrote. */
  #listKnown(session: string): Map<string, number> {
    const known = new Map<string, number>();
    const rows = this.#database
      .prepare("SELECT turn_index, metadata FROM lcm_messages WHERE session_id = ? AND metadata IS NOT NULL")
      .iterate(session);
    for (const row of rows) {
      const parsed = parseLine(Buffer.from(String(row["metadata"])));
      if (parsed.kind !== "entry" || parsed.entry["source"] !== "lossless-claw") continue;
      const { session_id: sessionId, event_id: eventId } = parsed.entry;
      if (typeof sessionId === "string" && typeof eventId === "string")
        known.set(keyOf(sessionId, eventId), Number(row["turn_index"]));
    }
    return known;
  }

  #writeMessage(session: string, turn: number, { row, view, bytes }: ReadMessage): void {
    const content = view.parts
      .map((part) => part.text)
      .filter((text) => text !== "")
      .join("\n");
    const createdAt = toIso(row.createdAt);
    const metadata = JSON.stringify({
      conversation_id: row.conversationId,
      event_id: row.eventId,
      session_id: row.sessionId,
      source: "lossless-claw",
      source_seq: row.seq,
    });
    const id = this.#run(
      "INSERT INTO lcm_messages (session_id, turn_index, role, content, token_count, created_at, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)",
      session,
      turn,
      view.role === "other" ? "system" : view.role,
      content,
      row.tokens,
      createdAt,
      metadata,
    );
    this.#run("INSERT INTO lcm_messages_fts (rowid, content) VALUES (?, ?)", id, content);
    for (const part of view.parts) {
      this.#run(
        "INSERT INTO lcm_message_parts (message_id, ordinal, kind, payload, tool_name, file_path, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        id,
        part.ordinal,
        part.type,
        JSON.stringify(describePart(part)),
        part.toolName ?? null,
        findPath(part, bytes),
        createdAt,
      );
    }
    this.#counts.messages += 1;
    this.#touched.add(session);
  }

  /** Coarser ones first, so that a parent exists before anything points to it. */
  async #writeSummaries(
    session: string,
    conversationId: number,
    turnOfSeq: ReadonlyMap<number, number>,
  ): Promise<void> {
    const summaries: MovedSummary[] = [];
    for await (const summary of readSummaries(this.#store, conversationId))
      if (summary.state === "cover") summaries.push(summary);
    const sourcesOf = new Map(summaries.map((summary) => [summary.summaryId, summary.sources]));
    const parentOf = new Map<string, string>();
    for (const { summaryId, sources } of summaries) {
      for (const source of sources) if (typeof source === "string") parentOf.set(source, summaryId);
    }
    for (const summary of summaries.toSorted((a, b) => b.depth - a.depth)) {
      const turns = listSeqsBelow(summary.summaryId, sourcesOf)
        .map((seq) => turnOfSeq.get(seq))
        .filter((turn) => turn !== undefined);
      if (turns.length > 0)
        this.#writeSummary(session, summary, parentOf.get(summary.summaryId) ?? null, turns);
    }
  }

  #writeSummary(
    session: string,
    summary: MovedSummary,
    parent: string | null,
    turns: readonly number[],
  ): void {
    const known = this.#get("SELECT parent_id FROM lcm_summary_nodes WHERE id = ?", summary.summaryId);
    if (known !== undefined) {
      this.#counts.known += 1;
      // It may have been folded into a coarser one since.
      if (known["parent_id"] !== parent)
        this.#run("UPDATE lcm_summary_nodes SET parent_id = ? WHERE id = ?", parent, summary.summaryId);
      return;
    }
    const rowid = this.#run(
      `INSERT INTO lcm_summary_nodes (id, session_id, depth, parent_id, summary_text, token_count, msg_start, msg_end, escalation, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      summary.summaryId,
      session,
      summary.depth,
      parent,
      summary.content,
      summary.tokens,
      turns.reduce((a, b) => Math.min(a, b)),
      turns.reduce((a, b) => Math.max(a, b)),
      ESCALATIONS[summary.level] ?? 0,
      toIso(summary.createdAt),
    );
    this.#run("INSERT INTO lcm_summaries_fts (rowid, summary_text) VALUES (?, ?)", rowid, summary.content);
    this.#counts.summaries += 1;
    this.#touched.add(session);
  }

  #writeEvent(session: string): void {
    const totals = must(
      this.#get(
        "SELECT coalesce(max(turn_index), -1) + 1 AS turns, coalesce(sum(token_count), 0) AS tokens FROM lcm_messages WHERE session_id = ?",
        session,
      ),
      "totals of a session",
    );
    this.#run(
      "INSERT INTO lcm_compaction_events (session_id, fired_at, msg_before, tokens_before, tokens_after) VALUES (?, ?, ?, ?, ?)",
      session,
      toIso(this.#options.now),
      Number(totals["turns"]),
      Number(totals["tokens"]),
      Number(totals["tokens"]),
    );
    this.#counts.events += 1;
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...values).lastInsertRowid);
  }

  #get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return this.#prepare(sql).get(...values);
  }
}

/** History imported from a documented database is exported under the host's own session id. */
function nameHostSession(sessionId: string): string {
  const own = /^lossless-claw:\d+:(.+)$/su.exec(sessionId)?.[1];
  return own ?? sessionId;
}

const keyOf = (sessionId: string, eventId: string): string => JSON.stringify([sessionId, eventId]);

function describePart({ text, toolCallId, toolName, isError, mimeType, fileName }: PartView): object {
  return {
    text,
    tool_call_id: toolCallId,
    tool_name: toolName,
    is_error: isError,
    mime_type: mimeType,
    file_name: fileName,
  };
}

const PATH_KEYS = ["file_path", "filePath", "path", "filename", "notebook_path"];

/** The file that a tool call refers to, or the name of a file block. */
function findPath(part: PartView, bytes: Uint8Array): string | null {
  if (part.type === "image" || part.type === "file") return part.fileName ?? null;
  if (part.type !== "tool_call") return null;
  const values = readToolArguments(part, bytes);
  if (!isObject(values)) return null;
  const path = PATH_KEYS.map((key) => values[key]).find((value) => typeof value === "string");
  return typeof path === "string" ? path : null;
}

const toIso = (time: number): string => new Date(time).toISOString();
