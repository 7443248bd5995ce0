/** The record of imports: how many messages of which conversation each brought in, written in the transaction that stores them. */
import { toImported } from "@lossless/core/adapter";
import type { ImportMark, IngestedMessage } from "@lossless/core/adapter";
import type { ImportedPart, Row } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";

const NOTE = `
  INSERT INTO imports (import_id, conversation_id, source, at, messages)
  SELECT ?1, conversation_id, ?2, ?3, count(*) FROM messages
  WHERE message_id IN (SELECT value FROM json_each(?4)) GROUP BY conversation_id
  ON CONFLICT DO UPDATE SET messages = messages + excluded.messages`;
const NOTE_COUNT = `
  INSERT INTO imports (import_id, conversation_id, source, at, messages) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET messages = messages + excluded.messages`;
const LIST = `
  SELECT import_id, conversation_id, source, at, messages FROM imports ORDER BY at DESC, import_id, conversation_id`;

/** Notes those of the results that were stored. Inside the caller's transaction. */
export function noteStored(
  connection: Connection,
  { importId, source, at }: ImportMark,
  results: readonly IngestedMessage[],
): void {
  const ids = results
    .filter(({ outcome }) => outcome === "stored" || outcome === "revision")
    .map(({ messageId }) => messageId);
  if (ids.length > 0) connection.run(NOTE, importId, source, at, JSON.stringify(ids));
}

export function noteImported(
  { connection }: StoreContext,
  { importId, source, at }: ImportMark,
  conversationId: number,
  messages: number,
): void {
  connection.write(() => connection.run(NOTE_COUNT, importId, conversationId, source, at, messages));
}

export function listImports({ connection }: StoreContext): ImportedPart[] {
  return connection.all<Row<"imports">>(LIST).map(toImported);
}
