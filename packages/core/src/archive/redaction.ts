/** The rows of a redacted message: its commitment, and what can be checked about its vault entries without the key. */
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

/** The required commitment of a stored message, as far as it can be derived from what is stored. */
export function commitStored(
  salt: Uint8Array,
  bytes: Uint8Array,
  redaction: PreparedRedaction | null,
): Buffer {
  const plain = commit(salt, bytes);
  return redaction === null ? plain : commitRedacted(plain, redaction.keyed, redaction.values.length);
}

const PLACEHOLDER = /^"?\[redacted:[\w-]+\]"?$/u;

/** What is wrong with the vault entries of a message, as far as that can be checked without the key; null if nothing is. */
export function checkValues(bytes: Uint8Array, { values }: PreparedRedaction): string | null {
  for (const [index, { ordinal, at, length }] of values.entries()) {
    if (ordinal !== index) return `its sealed value ${index} is gone`;
    const text = Buffer.from(bytes.subarray(at, at + length)).toString("latin1");
    if (!PLACEHOLDER.test(text)) return `its sealed value ${index} belongs to no placeholder`;
  }
  return null;
}
