/**
 * The shared context of the verbs of the PostgreSQL store. `sql` receives their statements: any connection, or that of a snapshot or of a
 * transaction of several verbs. A verb does not know which, and uses `sql.read` or `sql.write` either way.
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
  /** Reads a stored message; null if no reader was given. */
  readonly derive: Derive | null;
  /** Called with the number of reads of each plan; for tests. */
  readonly onPlan?: ((asks: number) => void) | undefined;
}
