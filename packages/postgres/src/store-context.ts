/**
 * What the verbs of the PostgreSQL store share. `sql` is where their statements go: any connection, or the one of a snapshot or of a
 * transaction that several verbs make up together. A verb does not know which, and asks for `sql.read` or `sql.write` either way.
 */
import type { Derive } from "@lossless/core/ports";
import type { Files } from "./blobs.ts";
import type { Sql } from "./connection.ts";
import type { FullTextIndex } from "./full-text-index.ts";

export type { Files } from "./blobs.ts";

export interface StoreContext {
  readonly sql: Sql;
  readonly files: Files;
  readonly index: FullTextIndex;
  /** Reads a stored message; null where nobody said how. */
  readonly derive: Derive | null;
  /** Hears how often each plan asked; for tests. */
  readonly onPlan?: ((asks: number) => void) | undefined;
}
