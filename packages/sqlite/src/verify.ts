/**
 * Runs the proof on SQLite, and checks what only SQLite can see: the schema, the file format, links between rows, the full-text index and
 * vectors. Everything else is a rule of the archive.
 */
import { proveArchive, proveConversations } from "@lossless/core/adapter";
import type { Problems, StorageProof } from "@lossless/core/adapter";
import type { Derive, Problem, ProveArrival, VerifyResult } from "@lossless/core/ports";
import { isBusy } from "./errors.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { compareSchema } from "./migrate.ts";
import { answerNow, readPlan } from "./plans.ts";
import { IndexCheck } from "./verify-index.ts";
import { checkVectors } from "./verify-vectors.ts";

const MAX_REPORTED = 20;

export function verify(
  context: StoreContext,
  derive: Derive,
  onProgress: (done: number, total: number) => void,
  proveArrival?: ProveArrival,
): VerifyResult {
  const request = { derive, proveArrival, onProgress, storage: proveStorage(context) };
  return readPlan(context, () => {
    context.connection.checkSchemaVersion();
    return proveArchive(request);
  });
}

/** Inside the transaction that has written them. */
export const verifyConversations = (
  context: StoreContext,
  conversationIds: readonly number[],
  derive: Derive,
): Problem[] =>
  answerNow(context, proveConversations(conversationIds, { derive, storage: proveStorage(context) }));

const proveStorage = (context: StoreContext): StorageProof => ({
  checkDatabase: (problems) => checkDatabase(context.connection, problems),
  openIndex: (problems) => new IndexCheck(context, problems),
  checkVectors: (problems) => checkVectors(context.connection, problems),
  isTransient: isBusy,
});

function checkDatabase(connection: Connection, problems: Problems): void {
  for (const difference of compareSchema(connection)) problems.add("schema", "archive", difference);
  const rows = connection.all<{ integrity_check: string }>(`PRAGMA integrity_check(${MAX_REPORTED})`);
  for (const { integrity_check: found } of rows) {
    // The index reports its own damage, with the command that fixes it.
    if (found === "ok" || /(?:messages|summaries)_fts_/.test(found)) continue;
    problems.add("database", "archive", `SQLite finds: ${found}`);
  }
  for (const { table, rowid, parent } of connection
    .all<DanglingLink>("PRAGMA foreign_key_check")
    .slice(0, MAX_REPORTED))
    problems.add(
      "dangling_link",
      `${table}:${rowid ?? ""}`,
      `a row of ${table} refers to a missing row of ${parent}`,
    );
}

interface DanglingLink {
  readonly table: string;
  readonly rowid: number | null;
  readonly parent: string;
}
