/**
 * The part of the store port for redacted messages: what the vault keeps of them. The store knows no key; it keeps what was sealed, hands it
 * out to whoever has the key, and erases it with the message.
 */

/** A value in the vault: where its placeholder stands in the stored bytes, and what was sealed. */
export interface SealedValue {
  readonly ordinal: number;
  readonly at: number;
  readonly length: number;
  /** Names the key it was sealed with. */
  readonly keyId: string;
  readonly nonce: Uint8Array;
  /** Ciphertext and tag. */
  readonly sealed: Uint8Array;
}

/** What is stored beside a redacted message when there was a key. */
export interface PreparedRedaction {
  /** Names the key of the keyed commitment, which never changes; values may be re-encrypted with another one. */
  readonly keyId: string;
  /** HMAC-SHA-256 over the salt and the bytes that arrived. */
  readonly keyed: Uint8Array;
  /** Empty when values are dropped. */
  readonly values: readonly SealedValue[];
}

export interface RedactedMessage extends PreparedRedaction {
  readonly messageId: number;
  readonly bytes: Uint8Array;
  readonly salt: Uint8Array;
  readonly commitment: Uint8Array;
}

/** Checks a redacted message with the key. Undefined: cannot tell. Null: it is what arrived. Else what is wrong. */
export type ProveArrival = (message: RedactedMessage) => string | null | undefined;

export interface RedactionStore {
  /** A redacted message with what the vault has of it; null when there is no such message, or nothing of it was redacted with a key. */
  readRedacted(messageId: number, owner?: string): Promise<RedactedMessage | null>;
  /** Redacted messages that have values in the vault, by their number. */
  listSealed(request: { after: number; limit: number }): Promise<number[]>;
  /** Writes into the ledger that a value was opened. */
  recordUnsealing(messageId: number, ordinals: readonly number[], now: number): Promise<void>;
  /** Puts values re-encrypted in the place of the old ones, all or none. */
  replaceSealed(messageId: number, values: readonly SealedValue[]): Promise<void>;
}
