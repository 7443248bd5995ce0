/** Removing whole conversations: the rules are in `archive/remove.ts`. The server refuses to leave dangling references. */
import { planRemoveConversations } from "@lossless/core/adapter";
import type { ConversationTies, RemovedCounts } from "@lossless/core/ports";
import { statement } from "./connection.ts";
import { CONFLICTING, writePlan } from "./plans.ts";
import type { StoreContext } from "./store-context.ts";

export const removeConversations = (
  context: StoreContext,
  expected: readonly ConversationTies[],
): Promise<RemovedCounts | null> =>
  context.sql.write(async (sql) => {
    // Versions of one message refer to each other, and may be removed page by page.
    sql.post(statement("SET CONSTRAINTS ALL DEFERRED"));
    const removal = await writePlan({ ...context, sql }, () => planRemoveConversations(expected));
    for (const blob of removal?.blobs ?? []) context.files.remove(sql, blob);
    return removal?.counts ?? null;
  }, CONFLICTING);
