/**
 * What the verbs of the PostgreSQL store share. `sql` is where their statements go: any connection, or the one of a snapshot or of a
 * transaction that several verbs make up together. A verb does not know which, and asks for `sql.read` or `sql.write` either way.
 */
import type { Changes, Derive } from "@lossless/core/ports";
import type { Files } from "./blobs.ts";
import type { Sql, Statement } from "./connection.ts";

export type { Files } from "./blobs.ts";

/** What a change set asks of the text index. */
export type IndexWork = Changes["index"][number];

/** What plans need of the text index, which `full-text-index.ts` is. */
export interface IndexWriter {
  /** What belongs into the transaction of the change set, behind its rows. */
  render(work: readonly IndexWork[]): readonly Statement[];
  /** Called when that was committed: what was stored can be brought in soon. Only a hint: the pending rows are the truth. */
  noteCommitted(work: readonly IndexWork[]): void;
}

export interface StoreContext {
  readonly sql: Sql;
  readonly files: Files;
  readonly index: IndexWriter;
  /** Reads a stored message; null where nobody said how. */
  readonly derive: Derive | null;
  /** Hears how often each plan asked; for tests. */
  readonly onPlan?: ((asks: number) => void) | undefined;
}
