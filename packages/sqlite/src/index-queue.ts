/**
 * Queues messages for the full-text index. A turn is stored at once and indexed a moment later, many messages in one transaction: FTS5
 * writes a segment per transaction, and a segment per turn costs three times as much as a segment per hundred messages. A message that is
 * not indexed yet has a row in `index_pending`, written with the message, so the next writer indexes what a killed process left, from the
 * stored bytes.
 *
 * Invariant: a message is in the index, or has a row in `index_pending`, or is forgotten, or the index is marked degraded; never two of
 * them. A failure here marks the index and never affects a message.
 */
import type { StoredBody } from "@lossless/core/adapter";
import type { Derive } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import type { IndexDocument } from "./full-text-index.ts";
import { readParts, restoreBytes, toCuts } from "./read.ts";
import {
  blockRange,
  BlockWriter,
  countForgotten,
  countFullBlocks,
  dropOutdatedBlocks,
  listMissingBlocks,
  putBlock,
} from "./word-blocks.ts";

/** As one text: a row for each id would cost more than finding it. */
const NEXT = `
  SELECT json_group_array(message_id) AS ids FROM (
    SELECT message_id FROM index_pending ORDER BY message_id LIMIT ?)`;
/** They are taken in order of id in this transaction, and nobody else writes meanwhile, so all up to the last are done. */
const END_PENDING = "DELETE FROM index_pending WHERE message_id <= ?";
const BODY = "SELECT message_id, conversation_id, body, encoding FROM messages WHERE message_id = ?";
const BODIES = `
  SELECT message_id, conversation_id, body, encoding FROM messages
  WHERE message_id BETWEEN ? AND ? AND forgotten_at IS NULL ORDER BY message_id`;

/** This many waiting messages, or bytes of them, are indexed without further delay. */
const FULL_AT = 1_024;
const FULL_AT_BYTES = 4_000_000;
/** The rest after this time: long for a program that stores turn after turn, nothing for a person who searches. */
const DELAY_MS = 300;
/** Messages per transaction, so that other writers get their turn in between. */
const BATCH = FULL_AT;
/** Missing blocks of words are made a few at a time, whenever there is something to index anyway. */
const MENDED_AT_ONCE = 2;

/** A message as read for indexing. */
export interface IndexedBody extends StoredBody {
  readonly conversation_id: number;
}

/** A message of the store as a document of the index. */
export function toDocument(
  { connection, files }: StoreContext,
  row: IndexedBody,
  derive: Derive,
): IndexDocument {
  const messageId = row.message_id;
  const parts = readParts(connection, messageId);
  const bytes = restoreBytes(row, parts, (path) => files.read(path));
  const { readTerms } = derive(bytes, toCuts(parts));
  return { messageId, conversationId: row.conversation_id, bytes: bytes.byteLength, readTerms };
}

export class IndexQueue {
  #context: StoreContext;
  #derive: Derive | null;
  #timer: NodeJS.Timeout | null = null;
  /** For a database that was just opened, it is not known how much the index lacks. */
  #isChecked = false;
  readonly #blocks: BlockWriter;
  /** How many blocks were checked, which of them are missing, and the count of forgotten messages then. */
  #listedBlocks = 0;
  #missingBlocks: number[] = [];
  #forgotten = 0;

  constructor(context: StoreContext, derive: Derive | null) {
    this.#context = context;
    this.#derive = derive;
    this.#blocks = new BlockWriter(context.connection);
  }

  /** After a write: indexes when enough is waiting, otherwise soon. */
  settleSoon(): void {
    const { waiting, waitingBytes } = this.#context.index;
    if (waiting.size === 0 && this.#isChecked) return;
    if (waiting.size >= FULL_AT || waitingBytes >= FULL_AT_BYTES) return this.settle();
    this.#wait(DELAY_MS);
  }

  /** Messages arrived without their documents: look up which are not in the index. */
  lookAgain(): void {
    this.#isChecked = false;
    this.settleSoon();
  }

  /** Indexes everything that waits. If another process holds the lock it is postponed, and search reports how much is missing. */
  settle(): void {
    const { connection, index } = this.#context;
    if (connection.readOnly || (this.#isChecked && index.waiting.size === 0)) return;
    if (index.notedProblem() !== null) return index.dropWaiting([...index.waiting.keys()]);
    for (let isDone = false; !isDone;) {
      const attempt = connection.tryWrite(() => this.#settleBatch());
      if (attempt.kind === "busy") return this.#wait(DELAY_MS * 3);
      if (attempt.kind === "failed") return this.#fail(attempt.error);
      index.dropWaiting(attempt.value.ids);
      ({ isDone } = attempt.value);
    }
    // Messages that another process has indexed, or that were forgotten, no longer wait either.
    if (this.#derive !== null) index.dropWaiting([...index.waiting.keys()]);
    this.#isChecked = true;
    this.#mendBlocks();
  }

  /** Makes missing blocks of words. Failures are ignored: the blocks are only an optimisation. */
  #mendBlocks(): void {
    const { connection } = this.#context;
    const derive = this.#derive;
    if (derive === null) return;
    try {
      this.#listBlocks(countFullBlocks(connection));
    } catch {
      // A damaged table: reads from it fail with an error, and `verify` reports it.
      return;
    }
    for (const block of this.#missingBlocks.splice(0, MENDED_AT_ONCE)) {
      connection.tryWrite(() => {
        const documents = connection
          .all<IndexedBody>(BODIES, ...blockRange(block))
          .map((row) => toDocument(this.#context, row, derive));
        putBlock(connection, block, documents);
      });
    }
  }

  /** The list stays valid until something is forgotten; checking all blocks again each time would take longer the more there are. */
  #listBlocks(full: number): void {
    const { connection } = this.#context;
    const forgotten = countForgotten(connection);
    if (forgotten !== this.#forgotten) [this.#listedBlocks, this.#missingBlocks] = [0, []];
    this.#forgotten = forgotten;
    if (full <= this.#listedBlocks) return;
    this.#missingBlocks.push(...listMissingBlocks(connection, this.#listedBlocks, full));
    this.#listedBlocks = full;
  }

  /** Stops indexing: a closed database cannot be written. */
  close(): void {
    this.settle();
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #settleBatch(): { ids: readonly number[]; isDone: boolean } {
    const { connection, index } = this.#context;
    const { tables } = index.readHead();
    if (!this.#isChecked) index.tune(tables.message);
    const next = connection.get<{ ids: string }>(NEXT, BATCH);
    const ids = (JSON.parse(next?.ids ?? "[]") as number[]).sort((a, b) => a - b);
    const documents: IndexDocument[] = [];
    for (const id of ids) {
      const document = index.waiting.get(id) ?? this.#readDocument(id);
      if (document === null) break;
      documents.push(document);
    }
    const done = documents.map(({ messageId }) => messageId);
    const [first] = done;
    const last = done.at(-1);
    if (first !== undefined && last !== undefined) {
      dropOutdatedBlocks(connection, first, last);
      index.insert(tables.message, documents, this.#blocks);
      connection.run(END_PENDING, last);
    }
    return { ids: done, isDone: documents.length < BATCH };
  }

  /** A message that another process stored and did not get to index. Null without a way to read it: then others do that. */
  #readDocument(messageId: number): IndexDocument | null {
    const row = this.#derive ? this.#context.connection.get<IndexedBody>(BODY, messageId) : undefined;
    return row && this.#derive ? toDocument(this.#context, row, this.#derive) : null;
  }

  #wait(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.settle();
    }, delayMs).unref();
  }

  #fail(error: unknown): void {
    const { connection, index } = this.#context;
    connection.tryWrite(() => index.markProblem(error instanceof Error ? error.message : String(error)));
    index.dropWaiting([...index.waiting.keys()]);
  }
}
