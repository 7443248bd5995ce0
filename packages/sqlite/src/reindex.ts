/**
 * Rebuilds the full-text index online: a new generation is filled in short transactions, so that writers get their turn between them, and
 * the last one swaps it in. Until then search uses the old generation, if it can. An interrupted rebuild leaves the old one in place; the
 * next run drops its half-filled table.
 *
 * Invariant: a table that is being filled belongs to one rebuild, because no generation number is used twice. A forget drops the table with
 * its terms; its rebuild then starts over.
 */
import { setImmediate } from "node:timers/promises";
import { EngineError } from "@lossless/core/adapter";
import type { Derive, Row } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import { summaryTableName, tableName } from "./full-text-index.ts";
import { toDocument } from "./index-queue.ts";
import type { IndexedBody } from "./index-queue.ts";
import { BlockWriter } from "./word-blocks.ts";

const BATCH = 200;
const NEXT_MESSAGES = `
  SELECT message_id, conversation_id, body, encoding FROM messages
  WHERE message_id > ? AND forgotten_at IS NULL ORDER BY message_id LIMIT ${BATCH}`;
const SUMMARIES = `
  SELECT r.summary_ref, s.summary_id, s.conversation_id, s.content FROM summary_refs r JOIN summaries s USING (summary_id)
  WHERE r.summary_ref > ? ORDER BY r.summary_ref LIMIT ${BATCH}`;
/**
 * Messages that no page had, because they were stored under an id that the pages had passed. The ids come from an index with nothing else
 * in it.
 */
const selectLeftOut = (table: string): string => `
  SELECT m.message_id, m.conversation_id, m.body, m.encoding
  FROM messages i INDEXED BY messages_by_seq CROSS JOIN messages m ON m.message_id = i.message_id
  WHERE NOT EXISTS (SELECT 1 FROM ${table}_docsize d WHERE d.id = i.message_id) AND m.forgotten_at IS NULL
  ORDER BY m.message_id LIMIT ${BATCH}`;
/** Rows of messages that were removed since their page was read. */
const deleteRemoved = (table: string): string => `
  DELETE FROM ${table} WHERE rowid IN (
    SELECT id FROM ${table}_docsize WHERE id NOT IN (SELECT message_id FROM messages INDEXED BY messages_by_seq))`;
const FORGOTTEN =
  "SELECT message_id AS id FROM messages WHERE message_id > ? AND message_id <= ? AND forgotten_at IS NOT NULL";
const COUNT = "SELECT count(*) AS n FROM messages WHERE forgotten_at IS NULL";
const GENERATIONS =
  "SELECT name FROM sqlite_schema WHERE name LIKE 'messages\\_fts\\_%' ESCAPE '\\' AND sql LIKE 'CREATE VIRTUAL%'";

const NUMBER = "index_rebuild";
const LAST_NUMBER = "SELECT CAST(value AS INTEGER) AS n FROM meta WHERE key = ?";
const SET_NUMBER =
  "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const EXISTS = "SELECT 1 AS found FROM sqlite_schema WHERE name = ?";

export async function reindex(
  context: StoreContext,
  derive: Derive,
  onProgress: (done: number, total: number) => void,
  signal?: AbortSignal,
): Promise<number> {
  for (;;) {
    const done = await new Rebuild(context, derive).run(onProgress, signal);
    if (done !== null) return done;
  }
}

/** One attempt at a new generation. */
class Rebuild {
  readonly #context: StoreContext;
  readonly #derive: Derive;
  readonly #generation: number;
  readonly #table: string;
  readonly #blocks: BlockWriter;

  constructor(context: StoreContext, derive: Derive) {
    this.#context = context;
    this.#derive = derive;
    this.#generation = begin(context);
    this.#table = tableName(this.#generation);
    this.#blocks = new BlockWriter(context.connection);
  }

  /** How many messages are in the new index; null if its table was dropped meanwhile. */
  async run(
    onProgress: (done: number, total: number) => void,
    signal: AbortSignal | undefined,
  ): Promise<number | null> {
    const { connection } = this.#context;
    let done = 0;
    for (let after = 0; ;) {
      if (signal?.aborted) this.#abort();
      const total = Math.max(done, connection.get<{ n: number }>(COUNT)?.n ?? 0);
      onProgress(done, total);
      const rows = connection.read(() => connection.all<IndexedBody>(NEXT_MESSAGES, after));
      const last = rows.at(-1)?.message_id;
      const added = last === undefined ? this.#finish() : this.#fill(rows, after, last);
      if (added === null) return null;
      done += added;
      if (last === undefined) {
        onProgress(done, done);
        return done;
      }
      after = last;
      // Lets other calls to this connection, and a cancellation, run in between.
      await setImmediate();
    }
  }

  #abort(): never {
    const { connection, index } = this.#context;
    connection.write(() => index.drop(this.#generation));
    throw new EngineError("aborted", "cannot rebuild the index: the operation was cancelled", {
      hint: "the old index is still in use",
    });
  }

  #fill(rows: readonly IndexedBody[], after: number, last: number): number | null {
    const documents = rows.map((row) => toDocument(this.#context, row, this.#derive));
    const { connection, index } = this.#context;
    return this.#write(() => {
      // Messages forgotten since they were read must not come back as terms.
      const gone = new Set(connection.all<{ id: number }>(FORGOTTEN, after, last).map(({ id }) => id));
      const present = documents.filter(({ messageId }) => !gone.has(messageId));
      index.insert(this.#table, present, this.#blocks);
      return present.length;
    });
  }

  /** Only inside a write transaction is it certain that nothing has arrived since. */
  #finish(): number | null {
    const { connection, index } = this.#context;
    return this.#write(() => {
      let added = 0;
      for (;;) {
        const leftOut = connection.all<IndexedBody>(selectLeftOut(this.#table));
        if (leftOut.length === 0) break;
        const documents = leftOut.map((row) => toDocument(this.#context, row, this.#derive));
        index.insert(this.#table, documents, this.#blocks);
        added += leftOut.length;
      }
      connection.exec(deleteRemoved(this.#table));
      fillSummaries(this.#context, this.#generation);
      index.swapTo(this.#generation);
      return added;
    });
  }

  /** Null when the table no longer exists. */
  #write(work: () => number): number | null {
    const { connection } = this.#context;
    return connection.write(() => {
      if (connection.get(EXISTS, this.#table) !== undefined) return work();
      if (readLastNumber(this.#context) === this.#generation) return null;
      throw new EngineError("database_busy", "cannot rebuild the index: another program is rebuilding it", {
        hint: "wait until it is done",
      });
    });
  }
}

const readLastNumber = ({ connection }: StoreContext): number =>
  connection.get<{ n: number }>(LAST_NUMBER, NUMBER)?.n ?? 0;

/** Makes the tables of a new generation, and returns its number. */
function begin(context: StoreContext): number {
  const { connection, index } = context;
  return connection.write(() => {
    dropUnfinished(context);
    const generation = Math.max(index.readHead().generation, readLastNumber(context)) + 1;
    connection.run(SET_NUMBER, NUMBER, generation);
    index.createTable(generation);
    return generation;
  });
}

type SummaryText = Pick<Row<"summaries">, "summary_id" | "conversation_id" | "content"> &
  Pick<Row<"summary_refs">, "summary_ref">;

/** Summaries are few compared with messages, so the last transaction adds them all. */
function fillSummaries({ connection, index }: StoreContext, generation: number): void {
  const table = summaryTableName(generation);
  for (let after = 0; ;) {
    const rows = connection.all<SummaryText>(SUMMARIES, after);
    for (const row of rows) {
      index.insertSummary(table, row.summary_ref, {
        summaryId: row.summary_id,
        conversationId: row.conversation_id,
        content: row.content,
      });
    }
    const last = rows.at(-1);
    if (!last) return;
    after = last.summary_ref;
  }
}

/** Tables of an unfinished rebuild: nobody reads them, but they contain terms. */
export function dropUnfinished({ connection, index }: StoreContext): void {
  const current = index.readHead().tables.message;
  const stale = connection
    .all<{ name: string }>(GENERATIONS)
    .map((row) => row.name)
    .filter((name) => name !== current && /^messages_fts_\d+$/.test(name));
  for (const name of stale) connection.write(() => index.drop(Number(name.slice("messages_fts_".length))));
}
