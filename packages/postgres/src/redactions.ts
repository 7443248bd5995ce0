/** The vault's rows: keyed commitments of redacted messages, and sealed values. No key is used here. */
import { must, toRedaction } from "@lossless/core/adapter";
import type { RedactionRow, SealedValueRow } from "@lossless/core/adapter";
import type { PreparedRedaction, RedactedMessage, Row } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { restoreAll } from "./read.ts";
import type { StoreContext } from "./store-context.ts";

const ROWS = (chosen: string): string => `
  SELECT r.message_id, r.key_id, r.keyed FROM messages m JOIN redactions r USING (message_id) WHERE ${chosen}`;
const VALUES = (chosen: string): string => `
  SELECT v.* FROM messages m JOIN sealed_values v USING (message_id) WHERE ${chosen} ORDER BY v.message_id, v.ordinal`;
const ONE = "m.message_id = $1";
const RANGE = "m.conversation_id = $1 AND m.seq > $2 AND m.seq <= $3";
const SELECT_MESSAGE = `
  SELECT m.message_id, m.body, m.encoding, m.arrival_bytes, m.salt, m.commitment
  FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.message_id = $1 AND m.forgotten_at IS NULL AND ($2::text IS NULL OR c.owner = $2)`;
type SealedMessage = Pick<
  Row<"messages">,
  "message_id" | "body" | "encoding" | "arrival_bytes" | "salt" | "commitment"
>;

/** The redactions of messages of a conversation, by message. */
export const readRedactions = (
  sql: Sql,
  ...range: readonly [conversationId: number, afterSeq: number, lastSeq: number]
): Promise<ReadonlyMap<number, PreparedRedaction>> => readChosen(sql, RANGE, range);

async function readChosen(
  sql: Sql,
  chosen: string,
  values: readonly number[],
): Promise<ReadonlyMap<number, PreparedRedaction>> {
  const [rows, sealed] = await Promise.all([
    sql.all<RedactionRow & { readonly message_id: number }>(ROWS(chosen), ...values),
    sql.all<SealedValueRow & { readonly message_id: number }>(VALUES(chosen), ...values),
  ]);
  const valuesOf = Map.groupBy(sealed, ({ message_id }) => message_id);
  return new Map(rows.map((row) => [row.message_id, toRedaction(row, valuesOf.get(row.message_id) ?? [])]));
}

export function readRedacted(
  { sql, files }: StoreContext,
  messageId: number,
  owner?: string,
): Promise<RedactedMessage | null> {
  return sql.read(async (own) => {
    const [row, redactions] = await Promise.all([
      own.get<SealedMessage>(SELECT_MESSAGE, messageId, owner ?? null),
      readChosen(own, ONE, [messageId]),
    ]);
    const redaction = redactions.get(messageId);
    if (!row || !redaction) return null;
    const [bytes] = await restoreAll(files, own, [row]);
    return {
      ...redaction,
      messageId,
      bytes: must(bytes, "a body"),
      salt: row.salt,
      commitment: row.commitment,
    };
  });
}
