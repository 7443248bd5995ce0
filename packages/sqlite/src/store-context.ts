/**
 * What the verbs of the SQLite store share: the connection, the folder of large files, the full-text index, decoded bodies, and how to read
 * a message.
 */
import type { Blobs, Derive } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { FullTextIndex } from "./full-text-index.ts";
import type { ReservedIds } from "./next-id.ts";
import type { BodyCache, VectorCodes } from "@lossless/core/adapter";

export interface StoreContext {
  readonly connection: Connection;
  readonly files: Blobs;
  readonly index: FullTextIndex;
  readonly bodies: BodyCache;
  /** The codes of vectors that were read, by space. A space's number may be reused: `madeFor` says which space they were made for. */
  readonly codes: Map<number, { readonly madeFor: string; readonly known: VectorCodes }>;
  /** Reads a stored message; null if not provided. */
  readonly derive: Derive | null;
  /** The source of new row ids, if not this archive. */
  readonly reserved?: ReservedIds | undefined;
  /** Receives how often each plan asked; for tests. */
  readonly onPlan?: ((asks: number) => void) | undefined;
}
