/**
 * Rebuilding the full-text index while the program runs: a new generation is filled in short transactions, so that writers get their
 * turn between them, and swapped in by the last one. Until then search uses the old generation, if it can. An interrupted rebuild leaves
 * the old one in place; its half-filled table is dropped by the next run.
 */
import { setImmediate } from "node:timers/promises";
import { EngineError } from "@lossless/core/adapter";
import type { Derive, Row } from "@lossless/core/ports";
import type { StoreContext } from "./context.ts";
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
/** Those that no page had, because they were stored under an id that the pages had passed. The ids come from an index that holds nothing else. */
const selectLeftOut = (table: string): string => `
  SELECT m.message_id, m.conversation_id, m.body, m.encoding
  FROM messages i INDEXED BY messages_by_seq CROSS JOIN messages m ON m.message_id = i.message_id
  WHERE NOT EXISTS (SELECT 1 FROM ${table}_docsize d WHERE d.id = i.message_id) AND m.forgotten_at IS NULL
  ORDER BY m.message_id LIMIT ${BATCH}`;
/** What the pages had of messages that were removed since. */
const deleteRemoved = (table: string): string => `
  DELETE FROM ${table} WHERE rowid IN (
    SELECT id FROM ${table}_docsize WHERE id NOT IN (SELECT message_id FROM messages INDEXED BY messages_by_seq))`;
const FORGOTTEN =
  "SELECT message_id AS id FROM messages WHERE message_id > ? AND message_id <= ? AND forgotten_at IS NOT NULL";
const COUNT = "SELECT count(*) AS n FROM messages WHERE forgotten_at IS NULL";
const GENERATIONS =
  "SELECT name FROM sqlite_schema WHERE name LIKE 'messages\\_fts\\_%' ESCAPE '\\' AND sql LIKE 'CREATE VIRTUAL%'";

export async function reindex(
  context: StoreContext,
  derive: Derive,
  onProgress: (done: number, total: number) => void,
  signal?: AbortSignal,
): Promise<number> {
  const { connection, index } = context;
  const generation = index.readHead().generation + 1;
  dropUnfinished(context);
  connection.write(() => index.createTable(generation));
  const blocks = new BlockWriter(connection);
  let done = 0;
  for (let after = 0; ;) {
    if (signal?.aborted) {
      connection.write(() => index.drop(generation));
      throw new EngineError("aborted", "cannot rebuild the index: the operation was cancelled", {
        hint: "the index that was there is still in use",
      });
    }
    const total = Math.max(done, connection.get<{ n: number }>(COUNT)?.n ?? 0);
    onProgress(done, total);
    const rows = connection.read(() => connection.all<IndexedBody>(NEXT_MESSAGES, after));
    const documents = rows.map((row) => toDocument(context, row, derive));
    const last = rows.at(-1)?.message_id;
    const table = tableName(generation);
    const finished = connection.write(() => {
      if (last !== undefined) {
        // What was forgotten since it was read must not come back as terms.
        const gone = new Set(connection.all<{ id: number }>(FORGOTTEN, after, last).map(({ id }) => id));
        const present = documents.filter(({ messageId }) => !gone.has(messageId));
        index.insert(table, present, blocks);
        return false;
      }
      // Only inside a write transaction is it certain that nothing has arrived since.
      for (;;) {
        const leftOut = connection.all<IndexedBody>(selectLeftOut(table));
        if (leftOut.length === 0) break;
        index.insert(
          table,
          leftOut.map((row) => toDocument(context, row, derive)),
          blocks,
        );
        done += leftOut.length;
      }
      connection.exec(deleteRemoved(table));
      fillSummaries(context, generation);
      index.swapTo(generation);
      return true;
    });
    done += documents.length;
    if (last !== undefined) after = last;
    if (finished) {
      onProgress(done, done);
      return done;
    }
    // Lets other calls to this connection, and a cancellation, in between.
    await setImmediate();
  }
}

type SummaryText = Pick<Row<"summaries">, "summary_id" | "conversation_id" | "content"> &
  Pick<Row<"summary_refs">, "summary_ref">;

/** Summaries are few beside the messages, so the last transaction takes them all. */
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

/** Tables of a rebuild that was interrupted: nobody reads them, but they hold terms. */
export function dropUnfinished({ connection, index }: StoreContext): void {
  const current = index.readHead().tables.message;
  const stale = connection
    .all<{ name: string }>(GENERATIONS)
    .map((row) => row.name)
    .filter((name) => name !== current && /^messages_fts_\d+$/.test(name));
  for (const name of stale) connection.write(() => index.drop(Number(name.slice("messages_fts_".length))));
}
