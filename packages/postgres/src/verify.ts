/**
 * Runs the proof on PostgreSQL, on one snapshot of the archive, and checks what only this adapter can see: the schema, and its text index.
 * Asynchronous queries run before the proof begins.
 */
import { proveArchive, proveConversations } from "@lossless/core/adapter";
import type { StorageProof } from "@lossless/core/adapter";
import type { Derive, Problem, ProveArrival, VerifyResult } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import type { Sql } from "./connection.ts";
import { compareSchema } from "./migrate.ts";
import { answerNow } from "./plans.ts";
import { readIndexProof } from "./verify-index.ts";
import { readVectorProof } from "./verify-vectors.ts";

export const verify = (
  context: StoreContext,
  derive: Derive,
  onProgress: (done: number, total: number) => void,
  proveArrival?: ProveArrival,
): Promise<VerifyResult> =>
  context.sql.read(async (sql) => {
    const storage = await proveStorage(sql);
    return answerNow(context, sql, proveArchive({ derive, proveArrival, onProgress, storage }));
  });

/** Inside the transaction that has written them: they are not in the index yet. */
export const verifyConversations = (
  context: StoreContext,
  conversationIds: readonly number[],
  derive: Derive,
): Promise<Problem[]> =>
  context.sql.read((sql) =>
    answerNow(context, sql, proveConversations(conversationIds, { derive, storage: NOTHING_ELSE })),
  );

async function proveStorage(sql: Sql): Promise<StorageProof> {
  const differences = await compareSchema(sql);
  const openIndex = await readIndexProof(sql);
  const checkVectors = await readVectorProof(sql);
  return {
    ...NOTHING_ELSE,
    checkDatabase: (problems) => {
      for (const difference of differences) problems.add("schema", "archive", difference);
    },
    openIndex,
    checkVectors,
  };
}

const NOTHING_ELSE: StorageProof = {
  checkDatabase: () => undefined,
  openIndex: () => ({ expect: () => undefined, finish: () => undefined }),
  checkVectors: () => undefined,
  // A snapshot does not change while it is read.
  isTransient: () => false,
};
