/** The rows of a redacted message: what it is committed to, and what can be told about the values in the vault without the key. */
import { commit, commitRedacted } from "../model/chain.ts";
import type { PreparedRedaction } from "../store/redaction.ts";
import type { Row } from "./tables.ts";

export type RedactionRow = Pick<Row<"redactions">, "key_id" | "keyed">;
export type SealedValueRow = Omit<Row<"sealed_values">, "message_id">;

/** `values` in order. */
export function toRedaction(row: RedactionRow, values: readonly SealedValueRow[]): PreparedRedaction {
  return {
    keyId: row.key_id,
    keyed: row.keyed,
    values: values.map(({ key_id: keyId, ordinal, at, length, nonce, sealed }) => ({
      ordinal,
      at,
      length,
      keyId,
      nonce,
      sealed,
    })),
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
