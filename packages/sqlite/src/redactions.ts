/**
 * The vault's rows: keyed commitments of redacted messages, and sealed values. Written, moved and erased with their message. There is never
 * a key here.
 */
import { planReplaceSealed, toRedaction } from "@lossless/core/adapter";
import type { RedactionRow, SealedValueRow } from "@lossless/core/adapter";
import type { PreparedRedaction, RedactedMessage, Row, SealedValue } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { writePlan } from "./plans.ts";
import { readParts, restoreBytes } from "./read.ts";

const SELECT = "SELECT key_id, keyed, sealed FROM redactions WHERE message_id = ?";
const SELECT_VALUES = "SELECT * FROM sealed_values WHERE message_id = ? ORDER BY ordinal";
const SELECT_MESSAGE = `
  SELECT m.message_id, m.body, m.encoding, m.salt, m.commitment FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.message_id = ?1 AND m.forgotten_at IS NULL AND (?2 IS NULL OR c.owner = ?2)`;
type SealedMessage = Pick<Row<"messages">, "message_id" | "body" | "encoding" | "salt" | "commitment">;

export function readRedaction(connection: Connection, messageId: number): PreparedRedaction | null {
  const row = connection.get<RedactionRow>(SELECT, messageId);
  return row ? toRedaction(row, connection.all<SealedValueRow>(SELECT_VALUES, messageId)) : null;
}

export function readRedacted(
  { connection, files }: StoreContext,
  messageId: number,
  owner?: string,
): RedactedMessage | null {
  return connection.read(() => {
    const row = connection.get<SealedMessage>(SELECT_MESSAGE, messageId, owner ?? null);
    const redaction = row ? readRedaction(connection, messageId) : null;
    if (!row || redaction === null) return null;
    const parts = readParts(connection, messageId);
    return {
      ...redaction,
      messageId,
      bytes: restoreBytes(row, parts, (path) => files.read(path)),
      salt: row.salt,
      commitment: row.commitment,
    };
  });
}

export function replaceSealed(
  context: StoreContext,
  messageId: number,
  values: readonly SealedValue[],
): void {
  context.connection.write(() => {
    // Overwrite deleted content in place.
    context.connection.exec("PRAGMA secure_delete = ON");
    writePlan(context, () => planReplaceSealed(messageId, values));
  });
}
