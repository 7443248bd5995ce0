/**
 * The full-text index: two contentless FTS5 tables, one of messages and one of summaries, fed with terms that were analysed in
 * JavaScript. It can always be rebuilt from the archive; damage to it is never damage to the archive. Each rebuild makes new tables (a
 * generation) beside the old ones and swaps.
 *
 * Invariant: a row of the index has the id of its message, or the number `summary_refs` gives its summary, and the index holds either
 * every message and every summary or is marked degraded.
 */
import { analyzeForIndex, ANALYSIS_VERSION, FTS_TOKENIZE } from "../../text/index.ts";
import type { IndexState } from "../store.ts";
import type { Connection } from "./connection.ts";

const GET_META = "SELECT value FROM meta WHERE key = ?";
const SET_META =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const DELETE_META = "DELETE FROM meta WHERE key = ?";
const TABLE_EXISTS = "SELECT 1 AS found FROM sqlite_schema WHERE name = ?";

const GENERATION = "index_generation";
const PROBLEM = "index_problem";
const ANALYSIS = "index_analysis_version";

export interface IndexDocument {
  readonly messageId: number;
  readonly conversationId: number;
  readonly words: string;
  readonly idents: string;
}

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
    if (this.#connection.get(TABLE_EXISTS, this.summaryTable)) return;
    this.#connection.write(() => {
      this.createTable(this.generation);
      if (this.#connection.get(ANY_SUMMARY)) this.markProblem("its summaries are not indexed yet");
    });
  }

  get generation(): number {
    return Number(this.#meta(GENERATION) ?? 0);
  }

  get table(): string {
    return tableName(this.generation);
  }

  get summaryTable(): string {
    return summaryTableName(this.generation);
  }

  createTable(generation: number): void {
    for (const name of [tableName(generation), summaryTableName(generation)]) {
      this.#connection.exec(
        `CREATE VIRTUAL TABLE IF NOT EXISTS ${name} USING fts5 (
           words, idents, scope, content = '', contentless_delete = 1, tokenize = "${FTS_TOKENIZE}")`,
      );
    }
  }

  /** Adds a summary inside the caller's transaction; like {@link add}, it never fails the caller. */
  addSummary(document: SummaryDocument): string | null {
    const ref = this.#refOf(document.summaryId);
    const state = this.#meta(PROBLEM);
    if (state !== null) return String(state);
    const attempt = this.#connection.savepoint(() => this.insertSummary(this.summaryTable, ref, document));
    if (attempt.kind === "done") return null;
    return this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
  }

  #refOf(summaryId: string): number {
    const known = this.#connection.get<{ summary_ref: number }>(SELECT_REF, summaryId);
    return known?.summary_ref ?? this.#connection.run(INSERT_REF, summaryId);
  }

  insertSummary(table: string, ref: number, { conversationId, content }: SummaryDocument): void {
    const { words, idents } = analyzeForIndex(content);
    const sql = `INSERT INTO ${table} (rowid, words, idents, scope) VALUES (?, ?, ?, ?)`;
    this.#connection.run(sql, ref, words, idents, scopeTerm(conversationId));
  }

  /** Adds documents inside the caller's transaction. A failure marks the index and lets the messages through. */
  add(documents: readonly IndexDocument[]): string | null {
    if (documents.length === 0) return null;
    const state = this.#meta(PROBLEM);
    if (state !== null) return String(state);
    const attempt = this.#connection.savepoint(() => this.insert(this.table, documents));
    if (attempt.kind === "done") return null;
    return this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
  }

  /** Takes a message out of the index. Its terms leave the file only with {@link compress}. */
  remove(messageId: number): void {
    this.#remove(this.table, messageId);
  }

  removeSummary(summaryId: string): void {
    const ref = this.#connection.get<{ summary_ref: number }>(SELECT_REF, summaryId);
    if (ref) this.#remove(this.summaryTable, ref.summary_ref);
  }

  #remove(table: string, rowId: number): void {
    if (this.problem() !== null) return;
    const attempt = this.#connection.savepoint(() =>
      this.#connection.run(`DELETE FROM ${table} WHERE rowid = ?`, rowId),
    );
    if (attempt.kind === "failed")
      this.markProblem(attempt.error instanceof Error ? attempt.error.message : String(attempt.error));
  }

  /** Merges the index into one piece; only then are the terms of removed rows gone. Inside the caller's transaction. */
  compress(): void {
    if (this.problem() !== null) return;
    for (const table of [this.table, this.summaryTable]) {
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

  insert(table: string, documents: readonly IndexDocument[]): void {
    const sql = `INSERT INTO ${table} (rowid, words, idents, scope) VALUES (?, ?, ?, ?)`;
    for (const document of documents) {
      const { messageId, conversationId, words, idents } = document;
      this.#connection.run(sql, messageId, words, idents, scopeTerm(conversationId));
    }
  }

  /** Makes a rebuilt generation the current one and drops the others. Inside the caller's transaction. */
  swapTo(generation: number): void {
    const old = this.generation;
    this.#setMeta(GENERATION, generation);
    this.#setMeta(ANALYSIS, ANALYSIS_VERSION);
    this.#connection.run(DELETE_META, PROBLEM);
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

  /** The reason search cannot be trusted, or null. */
  problem(): string | null {
    const noted = this.#meta(PROBLEM);
    if (noted !== null) return String(noted);
    const isWhole = [this.table, this.summaryTable].every(
      (name) => this.#connection.get(TABLE_EXISTS, name) !== undefined,
    );
    if (this.generation === 0 || !isWhole) return "the index is missing";
    if (Number(this.#meta(ANALYSIS)) !== ANALYSIS_VERSION)
      return "the index was made by another version of the text analysis";
    return null;
  }

  state(): IndexState {
    const reason = this.problem();
    if (reason !== null) return { kind: "degraded", reason };
    try {
      const row = this.#connection.get<{ n: number }>(`SELECT count(*) AS n FROM ${this.table}_docsize`);
      return { kind: "ready", messages: row?.n ?? 0 };
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

/** Every document carries one term for its conversation, so that a search inside one reads no other. */
export const scopeTerm = (conversationId: number): string => `c${conversationId}`;
