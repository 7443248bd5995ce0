/** The record of imports: how many messages each brought into which conversation, written in the transaction that stores them. */
import type { ImportMark } from "../model/message.ts";
import { Changes } from "./changes.ts";
import { readRows } from "./pages.ts";
import type { Asking, Plan } from "./plan.ts";

/** Adds rows of messages, by their conversation, to what is noted of an import. */
export function* noteImported(
  changes: Changes,
  { importId: import_id, source, at }: ImportMark,
  stored: ReadonlyMap<number, number>,
): Asking<void> {
  if (stored.size === 0) return;
  const noted = yield* readRows("imports", ["import_id", "conversation_id", "messages"], {
    column: "import_id",
    keys: [import_id],
  });
  for (const [conversation_id, count] of stored) {
    const known = noted.find((row) => row.conversation_id === conversation_id);
    if (known)
      changes.update("imports", { import_id, conversation_id }, { messages: known.messages + count });
    else changes.insert("imports", { import_id, conversation_id, source, at, messages: count });
  }
}

export function* planNoteImported(mark: ImportMark, conversationId: number, messages: number): Plan<null> {
  const changes = new Changes();
  yield* noteImported(changes, mark, new Map([[conversationId, messages]]));
  return changes.done(null);
}
