/**
 * The full-text index: two contentless FTS5 tables, one of messages and one of summaries, filled with terms that were analysed in
 * JavaScript. It can always be rebuilt from the archive; damage to it is never damage to the archive. Each rebuild makes new tables (a
 * generation) beside the old ones and swaps.
 *
 * Invariant: a row of the index has the id of its message, or the number that `summary_refs` gives its summary, and the index contains
 * either every summary and every message without a row in `index_pending`, or is marked degraded. `index-queue.ts` adds pending messages.
 */
import { ANALYSIS_VERSION, encodeForIndex, FTS_TOKENIZE, must } from "@lossless/core/adapter";
import type { ReadTerms } from "@lossless/core/adapter";
import type { DocumentKind, IndexState } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import { dropBlocksOf } from "./word-blocks.ts";
import type { BlockWriter } from "./word-blocks.ts";

const GET_META = "SELECT value FROM meta WHERE key = ?";
const SET_META =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const DELETE_META = "DELETE FROM meta WHERE key = ?";
const TABLE_EXISTS = "SELECT 1 AS found FROM sqlite_schema WHERE name = ?";

const GENERATION = "index_generation";
const PROBLEM = "index_problem";
const ANALYSIS = "index_analysis_version";
const COUNT_PENDING = "SELECT count(*) AS n FROM index_pending";
const END_PENDING = "DELETE FROM index_pending WHERE message_id = ?";
const END_ALL_PENDING = "DELETE FROM index_pending";

/** The state of the index, as columns of any statement: several facts for the price of one. */
export const HEAD_COLUMNS = `
  (SELECT json_group_object(key, value) FROM meta
   WHERE key IN ('${GENERATION}', '${PROBLEM}', '${ANALYSIS}')) AS index_meta,
  (SELECT count(*) FROM (SELECT CAST(value AS INTEGER) AS n FROM meta WHERE key = '${GENERATION}') g
   JOIN sqlite_schema t ON t.name IN ('messages_fts_' || g.n, 'summaries_fts_' || g.n)) AS index_tables`;

export interface HeadRow {
  readonly index_meta: string;
  readonly index_tables: number;
}

export interface IndexHead {
  readonly generation: number;
  readonly tables: IndexTables;
  /** Why search cannot be trusted, or null. */
  readonly problem: string | null;
}

/** The table of each kind of document. */
export type IndexTables = Readonly<Record<DocumentKind, string>>;

export function toHead(row: HeadRow): IndexHead {
  const meta = JSON.parse(row.index_meta) as Record<string, string | number | undefined>;
  const generation = Number(meta[GENERATION] ?? 0);
  return {
    generation,
    tables: { message: tableName(generation), summary: summaryTableName(generation) },
    problem: findProblem(meta, row.index_tables === 2),
  };
}

function findProblem(meta: Record<string, string | number | undefined>, isWhole: boolean): string | null {
  const noted = meta[PROBLEM];
  if (noted !== undefined) return String(noted);
  if (!isWhole) return "the index is missing";
  if (Number(meta[ANALYSIS]) !== ANALYSIS_VERSION)
    return "the index was made by another version of the text analysis";
  return null;
}

export interface IndexDocument {
  readonly messageId: number;
  readonly conversationId: number;
  /** Length of the message, to limit the queue. */
  readonly bytes: number;
  readonly readTerms: ReadTerms;
  /** Called when the terms will not be read again. */
  readonly release?: (() => void) | undefined;
}

/**
 * How the index of messages grows. Each transaction adds a segment, and segments are merged: with FTS5's default `automerge` of 4, every
 * term is rewritten at each power of four, which costs more than indexing itself. With 16 it is half as often. A merge advances a little
 * with every transaction; only if three times as many segments pile up would one transaction have to finish it, however long that takes.
 * The buffer fits a whole transaction of `index-queue.ts`, so that it adds one segment.
 */
const TUNING = { automerge: 16, crisismerge: 48, hashsize: 4 << 20 } as const;

const SELECT_REF = "SELECT summary_ref FROM summary_refs WHERE summary_id = ?";
const INSERT_REF = "INSERT INTO summary_refs (summary_id) VALUES (?)";
const ANY_SUMMARY = "SELECT 1 AS found FROM summaries LIMIT 1";

export interface SummaryDocument {
  readonly summaryId: string;
  readonly conversationId: number;
  readonly content: string;
}

export class FullTextIndex {
  #connection: Connection;
  /** Stored messages whose text is in memory and not indexed yet. */
  readonly #waiting = new Map<number, IndexDocument>();
  #waitingBytes = 0;
  /** The tables when the head was last read. */
  #tables: IndexTables | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Creates the first generation in a new database. */
  ensure(): void {
    if (this.#meta(GENERATION) !== null) return this.#ensureSummaries();
    this.#connection.write(() => {
      if (this.#meta(GENERATION) !== null) return;
      this.createTable(1);
      this.#setMeta(GENERATION, 1);
      this.#setMeta(ANALYSIS, ANALYSIS_VERSION);
    });
  }

  /** A database from before summaries were indexed gets their table; filling it is a rebuild. */
  #ensureSummaries(): void {
    const { generation, tables } = this.readHead();
    if (this.#connection.get(TABLE_EXISTS, tables.summary)) return;
    this.#connection.write(() => {
      this.createTable(generation);
      if (this.#connection.get(ANY_SUMMARY)) this.markProblem("its summaries are not indexed yet");
    });
  }

  readHead(): IndexHead {
    const head = toHead(
      must(this.#connection.get<HeadRow>(`SELECT ${HEAD_COLUMNS}`), "the state of the index"),
    );
    this.#tables = head.tables;
    return head;
  }

  /** Reads with the known tables; if that fails, with those that a rebuild has swapped in meanwhile. */
  readTables<T>(read: (tables: IndexTables) => T): T {
    const known = this.#tables ?? this.readHead().tables;
    try {
      return read(known);
    } catch (error) {
      const { tables } = this.readHead();
      if (tables.message === known.message) throw error;
      return read(tables);
    }
  }

  createTable(generation: number): void {
    for (const name of [tableName(generation), summaryTableName(generation)]) {
      this.#connection.exec(
        `CREATE VIRTUAL TABLE IF NOT EXISTS ${name} USING fts5 (
           words, idents, scope, content = '', contentless_delete = 1, tokenize = "${FTS_TOKENIZE}")`,
      );
    }
    this.tune(tableName(generation));
  }

  /** Sets {@link TUNING}, which FTS5 stores with the table, for older tables without it. Inside the caller's transaction. */
  tune(table: string): void {
    const rows = this.#connection.all<{ k: string; v: number }>(`SELECT k, v FROM ${table}_config`);
    const kept = new Map(rows.map(({ k, v }) => [k, v]));
    for (const [name, value] of Object.entries(TUNING))
      if (kept.get(name) !== value)
        this.#connection.run(`INSERT INTO ${table} (${table}, rank) VALUES (?, ?)`, name, BigInt(value));
  }

  /** Adds a summary inside the caller's transaction; a failure marks the index and never fails the caller. */
  addSummary(document: SummaryDocument): string | null {
    const ref = this.#refOf(document.summaryId);
    const noted = this.notedProblem();
    if (noted !== null) return noted;
    const { tables } = this.readHead();
    const attempt = this.#connection.savepoint(() => this.insertSummary(tables.summary, ref, document));
    if (attempt.kind === "done") return null;
    return this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
  }

  #refOf(summaryId: string): number {
    const known = this.#connection.get<{ summary_ref: number }>(SELECT_REF, summaryId);
    return known?.summary_ref ?? this.#connection.run(INSERT_REF, summaryId);
  }

  insertSummary(table: string, ref: number, { conversationId, content }: SummaryDocument): void {
    const { words, idents } = encodeForIndex(content);
    const sql = `INSERT INTO ${table} (rowid, words, idents, scope) VALUES (?, ?, ?, ?)`;
    this.#connection.run(sql, ref, words, idents, scopeTerm(conversationId));
  }

  /** Takes documents of messages that the caller's transaction stores; they are indexed after it commits. */
  add(documents: readonly IndexDocument[]): void {
    if (documents.length === 0 || this.notedProblem() !== null) return;
    this.#connection.afterCommit(() => {
      for (const document of documents) {
        this.#waiting.set(document.messageId, document);
        this.#waitingBytes += document.bytes;
      }
    });
  }

  get waiting(): ReadonlyMap<number, IndexDocument> {
    return this.#waiting;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Removes these from the queue. */
  dropWaiting(ids: Iterable<number>): void {
    for (const id of ids) {
      const document = this.#waiting.get(id);
      if (document === undefined) continue;
      this.#waiting.delete(id);
      document.release?.();
      this.#waitingBytes -= document.bytes;
    }
  }

  /** Removes messages from the index. Their terms leave the file only with {@link compress}. */
  remove(messageIds: readonly number[]): void {
    if (messageIds.length === 0) return;
    dropBlocksOf(this.#connection, messageIds);
    const head = this.readHead();
    const indexed = messageIds.filter((id) => this.#connection.change(END_PENDING, id) === 0);
    this.#attempt(
      head,
      `DELETE FROM ${head.tables.message} WHERE rowid IN (SELECT value FROM json_each(?))`,
      JSON.stringify(indexed),
    );
  }

  removeSummary(summaryId: string): void {
    const ref = this.#connection.get<{ summary_ref: number }>(SELECT_REF, summaryId);
    if (!ref) return;
    const head = this.readHead();
    this.#attempt(head, `DELETE FROM ${head.tables.summary} WHERE rowid = ?`, ref.summary_ref);
  }

  #attempt({ problem }: IndexHead, sql: string, value: number | string): void {
    if (problem !== null) return;
    const attempt = this.#connection.savepoint(() => this.#connection.run(sql, value));
    if (attempt.kind === "failed")
      this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
  }

  /** Merges the index into one segment; only then are the terms of removed rows gone. Inside the caller's transaction. */
  compress(): void {
    const { problem, tables } = this.readHead();
    if (problem !== null) return;
    for (const table of [tables.message, tables.summary]) {
      const attempt = this.#connection.savepoint(() =>
        this.#connection.exec(`INSERT INTO ${table} (${table}) VALUES ('optimize')`),
      );
      if (attempt.kind === "failed")
        this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
    }
  }

  /** Search is degraded from now on, until a rebuild. */
  markProblem(reason: string): string {
    this.#setMeta(PROBLEM, reason);
    return reason;
  }

  /** Inserts messages into a table of the index, ordered by id, and their spelled words into blocks. */
  insert(table: string, documents: readonly IndexDocument[], blocks: BlockWriter): void {
    const sql = `INSERT INTO ${table} (rowid, words, idents, scope) VALUES (?, ?, ?, ?)`;
    for (const { messageId, conversationId, readTerms } of documents) {
      const { words, idents } = blocks.add(messageId, readTerms);
      this.#connection.run(sql, messageId, words, idents, scopeTerm(conversationId));
    }
  }

  /** Makes a complete rebuilt generation the current one and drops the others. Inside the caller's transaction. */
  swapTo(generation: number): void {
    const old = this.readHead().generation;
    this.#setMeta(GENERATION, generation);
    this.#setMeta(ANALYSIS, ANALYSIS_VERSION);
    this.#connection.run(DELETE_META, PROBLEM);
    this.#connection.run(END_ALL_PENDING);
    if (old !== generation) this.drop(old);
  }

  drop(generation: number): void {
    this.#connection.forgetStatements();
    for (const name of [tableName(generation), summaryTableName(generation)]) this.#dropTable(name);
  }

  #dropTable(name: string): void {
    const attempt = this.#connection.savepoint(() => this.#connection.exec(`DROP TABLE IF EXISTS ${name}`));
    // A damaged table may refuse to be dropped as a virtual table; its shadow tables are ordinary ones.
    if (attempt.kind === "failed") {
      for (const part of ["data", "idx", "docsize", "config", "content"]) {
        this.#connection.exec(`DROP TABLE IF EXISTS ${name}_${part}`);
      }
    }
  }

  /** The problem that was recorded. */
  notedProblem(): string | null {
    const noted = this.#meta(PROBLEM);
    return noted === null ? null : String(noted);
  }

  state(): IndexState {
    const { problem, tables } = this.readHead();
    if (problem !== null) return { kind: "degraded", reason: problem };
    try {
      const row = this.#connection.get<{ n: number }>(`SELECT count(*) AS n FROM ${tables.message}_docsize`);
      const pending = this.#connection.get<{ n: number }>(COUNT_PENDING)?.n ?? 0;
      return { kind: "ready", messages: row?.n ?? 0, pending };
    } catch (error) {
      return { kind: "degraded", reason: error instanceof Error ? error.message : String(error) };
    }
  }

  #meta(key: string): unknown {
    return this.#connection.get<{ value: unknown }>(GET_META, key)?.value ?? null;
  }

  #setMeta(key: string, value: string | number): void {
    this.#connection.run(SET_META, key, value);
  }
}

export const tableName = (generation: number): string => `messages_fts_${generation}`;
export const summaryTableName = (generation: number): string => `summaries_fts_${generation}`;

/** Every document has one term for its conversation, so that a search inside one reads no other. */
export const scopeTerm = (conversationId: number): string => `c${conversationId}`;
