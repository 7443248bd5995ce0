/**
 * The floor of the archive benchmark: the minimum work of any store with full-text search. The JSON goes into one plain table, the text into a
 * contentless FTS5 index, in this thread, with the archive's durability (WAL, every commit on the disk).
 */
import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import type { GeneratedMessage } from "./archive-messages.ts";

export class Floor {
  readonly #database: DatabaseSync;
  readonly #insertRow: StatementSync;
  readonly #insertText: StatementSync;

  constructor(path: string) {
    this.#database = new DatabaseSync(path);
    this.#database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      CREATE TABLE floor (id INTEGER PRIMARY KEY, json TEXT);
      CREATE VIRTUAL TABLE floor_text USING fts5 (text, content = '', tokenize = 'unicode61');
    `);
    this.#insertRow = this.#database.prepare("INSERT INTO floor (json) VALUES (?)");
    this.#insertText = this.#database.prepare("INSERT INTO floor_text (rowid, text) VALUES (?, ?)");
  }

  /** Stores messages in one transaction. */
  insert(messages: readonly GeneratedMessage[]): void {
    this.#database.exec("BEGIN IMMEDIATE");
    for (const { json, text } of messages) {
      this.#insertText.run(this.#insertRow.run(json).lastInsertRowid, text);
    }
    this.#database.exec("COMMIT");
  }

  close(): void {
    this.#database.close();
  }
}
