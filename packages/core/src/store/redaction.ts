/**
 * The part of the store port for redacted messages: their entries in the vault. The store has no key; it keeps the sealed values, returns
 * them to callers that have the key, and erases them with the message.
 */

/** A value in the vault: where its placeholder is in the stored bytes, and the sealed value. */
export interface SealedValue {
  readonly ordinal: number;
  readonly at: number;
  readonly length: number;
  /** Identifies the key it was sealed with. */
  readonly keyId: string;
  readonly nonce: Uint8Array;
  /** Ciphertext and tag. */
  readonly sealed: Uint8Array;
}

/** What is stored beside a redacted message when there was a key. */
export interface PreparedRedaction {
  /** Identifies the key of the keyed commitment, which never changes; values may be re-encrypted with another one. */
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

/** Checks a redacted message with the key. Undefined: unknown. Null: it is what arrived. Otherwise: what is wrong. */
export type ProveArrival = (message: RedactedMessage) => string | null | undefined;

export interface RedactionStore {
  /** A redacted message with its vault entries; null if it does not exist, or if nothing of it was redacted with a key. */
  readRedacted(messageId: number, owner?: string): Promise<RedactedMessage | null>;
  /** Redacted messages that have values in the vault, by their number. */
  listSealed(request: { after: number; limit: number }): Promise<number[]>;
  /** Records in the ledger that a value was opened. */
  recordUnsealing(messageId: number, ordinals: readonly number[], now: number): Promise<void>;
  /** Replaces values by re-encrypted ones, all or none. */
  replaceSealed(messageId: number, values: readonly SealedValue[]): Promise<void>;
}
