/**
 * The vault's rows: keyed commitments of redacted messages, and sealed values. Written with the message, moved with it, erased with it.
 * No key comes here.
 */
import {
  addSealedValues,
  commit,
  commitRedacted,
  EngineError,
  formatMessageId,
} from "@lossless/core/adapter";
import type { PreparedRedaction, RedactedMessage, SealedValue } from "@lossless/core/ports";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { openHeads } from "./placement.ts";
import { restoreBytes, SELECT_PARTS } from "./read.ts";

const SELECT = "SELECT key_id, keyed, sealed FROM redactions WHERE message_id = ?";
const SELECT_VALUES = "SELECT * FROM sealed_values WHERE message_id = ? ORDER BY ordinal";
const DELETE_VALUES = "DELETE FROM sealed_values WHERE message_id = ?";
const SELECT_MESSAGE = `
  SELECT m.message_id, m.body, m.encoding, m.salt, m.commitment FROM messages m JOIN conversations c USING (conversation_id)
  WHERE m.message_id = ?1 AND m.forgotten_at IS NULL AND (?2 IS NULL OR c.owner = ?2)`;
const SELECT_PLACE = "SELECT conversation_id, seq FROM messages WHERE message_id = ?";
const LIST = `
  SELECT message_id FROM redactions WHERE message_id > ?1 AND sealed > 0 ORDER BY message_id LIMIT ?2`;
const LOST = `
  SELECT message_id FROM sealed_values v
  WHERE NOT EXISTS (SELECT 1 FROM redactions r WHERE r.message_id = v.message_id) GROUP BY message_id`;

export function readRedaction(connection: Connection, messageId: number): PreparedRedaction | null {
  const row = connection.get(SELECT, messageId);
  if (!row) return null;
  return {
    keyId: row.key_id as string,
    keyed: row.keyed as Uint8Array,
    values: connection.all(SELECT_VALUES, messageId).map(toValue),
  };
}

function toValue(row: Row): SealedValue {
  return {
    ordinal: row.ordinal as number,
    at: row.at as number,
    length: row.length as number,
    keyId: row.key_id as string,
    nonce: row.nonce as Uint8Array,
    sealed: row.sealed as Uint8Array,
  };
}

/** What a stored message must be committed to, as far as that follows from what is stored. */
export function commitStored(
  salt: Uint8Array,
  bytes: Uint8Array,
  redaction: PreparedRedaction | null,
): Buffer {
  const plain = commit(salt, bytes);
  return redaction === null ? plain : commitRedacted(plain, redaction.keyed, redaction.values.length);
}

const PLACEHOLDER = /^"?\[redacted:[\w-]+\]"?$/u;

/** What is wrong with the entries of a message, as far as it can be told without the key; null when nothing is. */
export function checkValues(bytes: Uint8Array, { values }: PreparedRedaction): string | null {
  for (const [index, { ordinal, at, length }] of values.entries()) {
    if (ordinal !== index) return `its sealed value ${index} is gone`;
    const text = Buffer.from(bytes.subarray(at, at + length)).toString("latin1");
    if (!PLACEHOLDER.test(text)) return `its sealed value ${index} belongs to no placeholder`;
  }
  return null;
}

/** Messages with sealed values and without the row that says so. */
export function listLost(connection: Connection): number[] {
  return connection.all<{ message_id: number }>(LOST).map((row) => row.message_id);
}

export function readRedacted(
  { connection, files }: StoreContext,
  messageId: number,
  owner?: string,
): RedactedMessage | null {
  return connection.read(() => {
    const row = connection.get(SELECT_MESSAGE, messageId, owner ?? null);
    const redaction = row ? readRedaction(connection, messageId) : null;
    if (!row || redaction === null) return null;
    const parts = connection.all(SELECT_PARTS, messageId);
    return {
      ...redaction,
      messageId,
      bytes: restoreBytes(row, parts, (path) => files.read(path)),
      salt: row.salt as Uint8Array,
      commitment: row.commitment as Uint8Array,
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
