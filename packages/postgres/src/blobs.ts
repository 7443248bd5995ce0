/**
 * Large payloads: in the database, in pieces, or in a folder that every machine sees. In the database they are written and removed with the rows
 * that name them; in a folder they are written before and removed after, so that a crash leaves at most an orphan.
 */
import { BlobFolder } from "@lossless/core/adapter";
import type { Sql, WriteSql } from "./connection.ts";
import { statement } from "./connection.ts";

export interface Files {
  /** Whether what is put and removed in a transaction is part of it. */
  readonly isTransactional: boolean;
  put(sql: WriteSql, name: string, content: Uint8Array): void;
  /** Null when there is none. */
  read(sql: Sql, name: string): Promise<Uint8Array | null>;
  /** Reads the payloads cut out of some messages, by name: one round trip, before their names are known. */
  readCut(sql: Sql, messageIds: readonly number[]): Promise<(name: string) => Uint8Array | null>;
  /** Removes a payload that no row names any more, with the transaction or after its commit. */
  remove(sql: WriteSql, name: string): void;
  /** Removes it now, while the caller holds the lock of its conversation; false when there was none. */
  discard(sql: WriteSql, name: string): Promise<boolean>;
  list(sql: Sql): Promise<string[]>;
}

/** Small enough to be one value on the wire and on a page, large enough that most payloads are one piece. */
const PIECE_BYTES = 1_048_576;

const CUT = `
  SELECT b.name, b.content FROM (
    SELECT DISTINCT f.storage_path FROM message_parts p JOIN large_files f USING (file_id)
    WHERE p.message_id = ANY($1::bigint[]) AND p.type = 'payload') f
  JOIN blobs b ON b.name = f.storage_path ORDER BY b.name, b.piece`;

export const databaseFiles: Files = {
  isTransactional: true,

  put(sql, name, content) {
    sql.post(statement("DELETE FROM blobs WHERE name = $1", name));
    for (let piece = 0, at = 0; piece === 0 || at < content.byteLength; piece++, at += PIECE_BYTES) {
      const bytes = content.subarray(at, at + PIECE_BYTES);
      sql.post(statement("INSERT INTO blobs (name, piece, content) VALUES ($1, $2, $3)", name, piece, bytes));
    }
  },

  async read(sql, name) {
    const pieces = await sql.all<{ content: Uint8Array }>(
      "SELECT content FROM blobs WHERE name = $1 ORDER BY piece",
      name,
    );
    return join(pieces);
  },

  async readCut(sql, messageIds) {
    const rows = await sql.all<{ name: string; content: Uint8Array }>(CUT, [...messageIds]);
    const pieces = Map.groupBy(rows, ({ name }) => name);
    return (name) => join(pieces.get(name) ?? []);
  },

  remove(sql, name) {
    sql.post(statement("DELETE FROM blobs WHERE name = $1", name));
  },

  async discard(sql, name) {
    return (await sql.all("DELETE FROM blobs WHERE name = $1 RETURNING piece", name)).length > 0;
  },

  async list(sql) {
    const rows = await sql.all<{ name: string }>("SELECT DISTINCT name FROM blobs ORDER BY name");
    return rows.map(({ name }) => name);
  },
};

function join(pieces: readonly { readonly content: Uint8Array }[]): Uint8Array | null {
  const [only] = pieces;
  if (only === undefined || pieces.length === 1) return only?.content ?? null;
  return Buffer.concat(pieces.map(({ content }) => content));
}

export function folderFiles(root: string): Files {
  const folder = new BlobFolder(root);
  return {
    isTransactional: false,
    put: (_sql, name, content) => folder.put(name, content),
    read: async (_sql, name) => folder.read(name),
    readCut: async () => (name) => folder.read(name),
    remove: (sql, name) => sql.afterCommit(() => folder.remove(name)),
    discard: async (_sql, name) => folder.remove(name),
    list: async () => folder.list(),
  };
}
