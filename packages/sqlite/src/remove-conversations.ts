/**
 * Removes whole conversations on SQLite: the rules are in `archive/remove.ts`. References are checked once, before the commit, and no id is
 * reused.
 */
import { EngineError, planRemoveConversations } from "@lossless/core/adapter";
import type { ConversationTies, RemovedCounts } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { keepHighestIds } from "./next-id.ts";
import { writePlan } from "./plans.ts";

export function removeConversations(
  context: StoreContext,
  expected: readonly ConversationTies[],
): RemovedCounts | null {
  const { connection, files } = context;
  // Checked for each deleted row, foreign keys cost scans of whole tables; at the end they are checked once, together.
  connection.exec("PRAGMA foreign_keys = OFF");
  try {
    const removal = connection.write(() => {
      keepHighestIds(connection);
      const planned = writePlan(context, () => planRemoveConversations(expected));
      if (planned !== null) checkReferences(connection);
      return planned;
    });
    for (const blob of removal?.blobs ?? []) files.remove(blob);
    return removal?.counts ?? null;
  } finally {
    connection.exec("PRAGMA foreign_keys = ON");
  }
}

function checkReferences(connection: Connection): void {
  const [broken] = connection.all<{ table: string }>("PRAGMA foreign_key_check");
  if (broken === undefined) return;
  throw new EngineError(
    "verification_failed",
    `cannot remove these conversations: rows of ${broken.table} that belong to others refer to them`,
    { step: { kind: "verify" } },
  );
}
