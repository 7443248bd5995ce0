/**
 * The vault's rows: keyed commitments of redacted messages, and sealed values. Written with the message, moved with it, erased with it.
 * No key comes here.
 */
import { addSealedValues, EngineError, formatMessageId, toRedaction } from "@lossless/core/adapter";
import type { RedactionRow, SealedValueRow } from "@lossless/core/adapter";
import type { PreparedRedaction, RedactedMessage, Row, SealedValue } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { readParts, restoreBytes } from "./read.ts";

const SELECT = "SELECT key_id, keyed, sealed FROM redactions WHERE message_id = ?";
const SELECT_VALUES = "SELECT * FROM sealed_values WHERE message_id = ? ORDER BY ordinal";
const DELETE_VALUES = "DELETE FROM sealed_values WHERE message_id = ?";
const SELECT_MESSAGE = `
  SELECT m.message_id, m.body, m.encoding, m.salt, m.commitment FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.message_id = ?1 AND m.forgotten_at IS NULL AND (?2 IS NULL OR c.owner = ?2)`;
const SELECT_PLACE = "SELECT conversation_id, seq FROM messages WHERE message_id = ?";
const LIST = `
  SELECT message_id FROM redactions WHERE message_id > ?1 AND sealed > 0 ORDER BY message_id LIMIT ?2`;

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

export function listSealed(
  { connection }: StoreContext,
  { after, limit }: { after: number; limit: number },
): number[] {
  return connection.all<{ message_id: number }>(LIST, after, limit).map((row) => row.message_id);
}

export function recordUnsealing(
  { connection }: StoreContext,
  messageId: number,
  ordinals: readonly number[],
  now: number,
): void {
  connection.write(() => {
    const place = connection.get<{ conversation_id: number; seq: number }>(SELECT_PLACE, messageId);
    if (!place) throw new EngineError("not_found", `cannot find ${formatMessageId(messageId)}`);
    const head = openHeads(connection).of(place.conversation_id);
    head.takeRecord(connection, "unseal", { seq: place.seq, ordinals }, now);
    head.save(connection, now);
  });
}

export function replaceSealed(
  { connection }: StoreContext,
  messageId: number,
  values: readonly SealedValue[],
): void {
  connection.write(() => {
    // It may have been forgotten, or re-encrypted by somebody else, while the values were open.
    const stored = readRedaction(connection, messageId);
    if (stored === null || stored.values.length !== values.length) return;
    connection.exec("PRAGMA secure_delete = ON");
    connection.run(DELETE_VALUES, messageId);
    addSealedValues(connection, messageId, values);
  });
}
