/** The record of imports: how many messages each stored in which conversation, written in the transaction that stores them. */
import type { ImportMark } from "../model/message.ts";
import { Changes } from "./changes.ts";
import { read } from "./plan.ts";
import type { Plan, Question } from "./plan.ts";
import type { Row } from "./tables.ts";

export type Noted = Pick<Row<"imports">, "conversation_id" | "messages">;

/** What an import has stored in these conversations so far. */
export const askNoted = (
  mark: ImportMark | undefined,
  conversationIds: readonly number[],
): Question<"rows"> =>
  read.rows({
    table: "imports",
    columns: ["conversation_id", "messages"],
    where: { import_id: mark?.importId ?? "" },
    order: [],
    column: "conversation_id",
    keys: mark ? conversationIds : [],
  });

/** Adds message counts by conversation to the record of an import. */
export function noteImported(
  changes: Changes,
  { importId: import_id, source, at }: ImportMark,
  stored: ReadonlyMap<number, number>,
  noted: readonly Noted[],
): void {
  for (const [conversation_id, count] of stored) {
    const known = noted.find((row) => row.conversation_id === conversation_id);
    if (known)
      changes.update("imports", { import_id, conversation_id }, { messages: known.messages + count });
    else changes.insert("imports", { import_id, conversation_id, source, at, messages: count });
  }
}

export function* planNoteImported(mark: ImportMark, conversationId: number, messages: number): Plan<null> {
  const changes = new Changes();
  const noted = (yield* askNoted(mark, [conversationId])) as Noted[];
  noteImported(changes, mark, new Map([[conversationId, messages]]), noted);
  return changes.done(null);
}
