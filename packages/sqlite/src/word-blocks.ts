/**
 * Finds the longer words that a literal of a regular expression can be part of. A block is the distinct words of 512 messages with consecutive
 * ids, as their texts spell them, compressed: a hundredth of the raw archive, read in milliseconds where the texts would take seconds. Like
 * the full-text index it can be rebuilt from the archive at any time.
 *
 * Invariant: a stored block spells every word of every message in its range that is not forgotten. Blocks may be missing: the newest until
 * it is full, those with a forgotten message until they are made again, all in a database from before there were any. Messages of a missing
 * block have to be read.
 *
 * Private to SQLite: its ids are assigned in commit order, because there is one writer at a time. A block is compared with the number of
 * messages in its range before it is stored, so that a late message would leave the block missing, not wrong.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { DoubtReader, Spelling } from "@lossless/core/adapter";
import type { IndexTerms, ReadTerms, SpellingDoubt } from "@lossless/core/adapter";
import type { DoubtsFound, IdRange } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";

/** Larger blocks are smaller in total and leave more to read where a literal is found. */
const BLOCK_MESSAGES = 512;
/** Most blocks fit into this; pieces of the default size would have to be joined. */
const DECODED_BYTES = 1 << 18;

const PUT =
  "INSERT INTO word_blocks (block, words) VALUES (?, ?) ON CONFLICT DO UPDATE SET words = excluded.words";
const DROP = "DELETE FROM word_blocks WHERE block = ?";
const DROP_RANGE = "DELETE FROM word_blocks WHERE block BETWEEN ? AND ?";
const STORED = "SELECT block FROM word_blocks WHERE block >= ? AND block < ?";
const WORDS = "SELECT words FROM word_blocks WHERE block = ?";
const FORGOTTEN = "SELECT value FROM meta WHERE key = 'words_forgotten'";
const COUNT_FORGOTTEN =
  "INSERT INTO meta (key, value) VALUES ('words_forgotten', 1) ON CONFLICT DO UPDATE SET value = value + 1";
/** A forgotten message has lost its salt, which is at the beginning of a row; `forgotten_at` is at its end. */
const COUNT_MESSAGES =
  "SELECT count(*) AS n FROM messages WHERE message_id BETWEEN ? AND ? AND length(salt) > 0";
const LAST_INDEXED = `
  SELECT coalesce((SELECT min(message_id) - 1 FROM index_pending), (SELECT max(message_id) FROM messages), 0) AS id`;
const BLOCKS = "SELECT block, words FROM word_blocks WHERE block BETWEEN ? AND ? ORDER BY block";

export const blockOf = (messageId: number): number => Math.floor((messageId - 1) / BLOCK_MESSAGES);
const firstOf = (block: number): number => block * BLOCK_MESSAGES + 1;
const lastOf = (block: number): number => (block + 1) * BLOCK_MESSAGES;

/**
 * Collects the words of messages in order of id, and stores each full block, if all of its messages came through here: others may have been
 * indexed by another process.
 */
export class BlockWriter {
  #connection: Connection;
  /** The last message taken. */
  #reached = 0;
  readonly #spelling = new Spelling();
  #opaqueIds: number[] = [];
  /** Messages of the block that came through here. */
  #taken = 0;
  /** How many messages had been forgotten when the block was begun. */
  #forgotten: number | null = null;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Collects the words of a message while its terms are read. */
  add(messageId: number, readTerms: ReadTerms): IndexTerms {
    // A rolled-back transaction brings its messages again.
    if (messageId <= this.#reached) this.#begin();
    else if (blockOf(messageId) !== blockOf(this.#reached)) this.#close(blockOf(this.#reached));
    this.#taken += 1;
    this.#forgotten ??= countForgotten(this.#connection);
    const terms = readTerms(this.#spelling);
    if (this.#spelling.takeOpaque()) this.#opaqueIds.push(messageId);
    this.#reached = messageId;
    if (messageId === lastOf(blockOf(messageId))) this.#close(blockOf(messageId));
    return terms;
  }

  /** The block will get no more. One that was collected in part, or may contain a forgotten word, is left to be made from the archive. */
  #close(block: number): void {
    const isWhole = this.#taken > 0 && this.#taken === countMessages(this.#connection, block);
    if (isWhole && countForgotten(this.#connection) === (this.#forgotten ?? 0))
      this.#connection.run(PUT, block, encodeBlock(this.#spelling, this.#opaqueIds));
    this.#begin();
  }

  #begin(): void {
    this.#spelling.clear();
    this.#opaqueIds = [];
    this.#taken = 0;
    this.#forgotten = null;
  }
}

const countMessages = (connection: Connection, block: number): number =>
  connection.get<{ n: number }>(COUNT_MESSAGES, ...blockRange(block))?.n ?? 0;

/** A stored block that gets another message no longer spells all of its words: removes those of some messages. */
export function dropOutdatedBlocks(connection: Connection, firstId: number, lastId: number): void {
  if (connection.change(DROP_RANGE, blockOf(firstId), blockOf(lastId)) > 0) connection.run(COUNT_FORGOTTEN);
}

/** Blocks from the first on whose messages are all indexed. */
export const countFullBlocks = (connection: Connection): number =>
  Math.floor((connection.get<{ id: number }>(LAST_INDEXED)?.id ?? 0) / BLOCK_MESSAGES);

/** Those of the blocks from one to before another that are not stored, oldest first. */
export function listMissingBlocks(connection: Connection, from: number, to: number): number[] {
  const stored = new Set(connection.all<{ block: number }>(STORED, from, to).map(({ block }) => block));
  return Array.from({ length: to - from }, (_, index) => from + index).filter((block) => !stored.has(block));
}

/** Stores a block made from all its messages that are not forgotten. Inside the caller's transaction. */
export function putBlock(
  connection: Connection,
  block: number,
  messages: readonly { readonly messageId: number; readonly readTerms: ReadTerms }[],
): void {
  const spelling = new Spelling();
  const opaqueIds: number[] = [];
  for (const { messageId, readTerms } of messages) {
    readTerms(spelling);
    if (spelling.takeOpaque()) opaqueIds.push(messageId);
  }
  connection.run(PUT, block, encodeBlock(spelling, opaqueIds));
}

export const blockRange = (block: number): IdRange => [firstOf(block), lastOf(block)];

/** Removes the blocks of messages, because they spell what is to be forgotten; a process that collects words meanwhile notices. */
export function dropBlocksOf(connection: Connection, messageIds: readonly number[]): void {
  for (const block of new Set(messageIds.map(blockOf))) connection.run(DROP, block);
  connection.run(COUNT_FORGOTTEN);
}

/** Grows whenever blocks are removed. */
export const countForgotten = (connection: Connection): number =>
  connection.get<{ value: number }>(FORGOTTEN)?.value ?? 0;

/** The words of the messages from `low` to `high` that raise the doubts, and the messages whose words are not known. */
export function findDoubtful(
  connection: Connection,
  doubts: readonly SpellingDoubt[],
  [low, high]: IdRange,
): Pick<DoubtsFound, "words" | "unresolved"> {
  const reader = new DoubtReader(doubts);
  const ranges: [number, number][] = [];
  const add = (first: number, last: number): void => {
    const [from, to] = [Math.max(first, low), Math.min(last, high)];
    const before = ranges.at(-1);
    if (from > to) return;
    if (before && before[1] + 1 === from) before[1] = to;
    else ranges.push([from, to]);
  };
  let next = blockOf(low);
  for (const [block, words] of connection.walk<readonly [number, Uint8Array]>(BLOCKS, next, blockOf(high))) {
    if (block > next) add(firstOf(next), lastOf(block - 1));
    next = block + 1;
    const text = decodeBlock(words);
    if (text === null || !reader.read(text)) add(firstOf(block), lastOf(block));
    else for (const id of readOpaqueIds(text)) add(id, id);
  }
  add(firstOf(next), high);
  return { words: reader.found, unresolved: ranges };
}

/** The words of a block, for checking it: null when it is not stored, "damaged" when it cannot be read. */
export function readBlock(
  connection: Connection,
  block: number,
): { words: ReadonlySet<string>; opaqueIds: ReadonlySet<number> } | "damaged" | null {
  const row = connection.get<{ words: Uint8Array }>(WORDS, block);
  if (!row) return null;
  const text = decodeBlock(row.words);
  if (text === null) return "damaged";
  const [, ...words] = text.toString().split("\n");
  return { words: new Set(words), opaqueIds: new Set(readOpaqueIds(text)) };
}

function encodeBlock(spelling: Spelling, opaqueIds: readonly number[]): Uint8Array {
  const words = spelling.encode();
  const text = Buffer.concat([Buffer.from(opaqueIds.join(" ") + (words.length === 0 ? "" : "\n")), words]);
  return zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
}

/** Null if it is damaged. */
function decodeBlock(words: Uint8Array): Buffer | null {
  try {
    return zstdDecompressSync(words, { chunkSize: DECODED_BYTES });
  } catch {
    return null;
  }
}

function readOpaqueIds(text: Buffer): number[] {
  const end = text.indexOf(10);
  const line = text.toString("latin1", 0, end < 0 ? text.length : end);
  return line === "" ? [] : line.split(" ").map(Number);
}
