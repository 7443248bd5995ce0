/**
 * Commitments and the hash chain. A commitment binds a message to its arrival bytes without revealing them; the chain binds every message
 * and ledger record of a conversation to all earlier ones. Changing, removing or reordering any row breaks the chain at that row, and the
 * head stored in the conversation reveals missing rows at the end.
 */
import { hash } from "node:crypto";

export const SALT_BYTES = 16;

/** Through a binary string: for a buffer, `hash` allocates separate memory, which costs half as much as hashing a message. */
const sha256 = (data: Uint8Array): Buffer => Buffer.from(hash("sha256", data, "binary"), "binary");

/** SHA-256 (salt ‖ arrival bytes). */
export function commit(salt: Uint8Array, arrival: Uint8Array): Buffer {
  return sha256(Buffer.concat([salt, arrival]));
}

/**
 * The commitment of a redacted message: over what is stored, which anybody can recompute, over what arrived, which needs the key, and over
 * the number of values in the vault. Without the key it reveals nothing about the removed text.
 */
export function commitRedacted(stored: Uint8Array, keyed: Uint8Array, sealed: number): Buffer {
  return sha256(Buffer.concat([Buffer.from(JSON.stringify(["redacted", sealed])), stored, keyed]));
}

/**
 * The value before the first link: the conversation's identity, so that this cannot be changed either. A fork also includes its parent's
 * chain value at the point where it left.
 */
export function chainGenesis(conversation: {
  conversationId: number;
  owner: string;
  sessionKey: string;
  createdAt: number;
  fork?: ForkOrigin | null;
}): Buffer {
  const { conversationId, owner, sessionKey, createdAt, fork = null } = conversation;
  const facts = ["conversation", conversationId, owner, sessionKey, createdAt];
  const origin =
    fork === null ? [] : [fork.conversationId, fork.seq, Buffer.from(fork.chain).toString("hex")];
  return sha256(Buffer.from(JSON.stringify([...facts, ...origin])));
}

/** Where a fork left its parent, and the parent's chain value there. */
export interface ForkOrigin {
  readonly conversationId: number;
  readonly seq: number;
  readonly chain: Uint8Array;
}

/** What a message is bound to besides its bytes: its place and its event id on arrival. */
export interface ArrivalFacts {
  readonly seq: number;
  readonly sessionId: string;
  readonly eventId: string;
  readonly position: number;
  readonly createdAt: number;
  readonly hidden: number;
  /** seq of the first message of the event, 0 when this is the first. */
  readonly revisesSeq: number;
}

export function chainMessage(previous: Uint8Array, facts: ArrivalFacts, commitment: Uint8Array): Buffer {
  const { seq, sessionId, eventId, position, createdAt, hidden, revisesSeq } = facts;
  const text = JSON.stringify(["message", seq, sessionId, eventId, position, createdAt, hidden, revisesSeq]);
  return sha256(Buffer.concat([previous, commitment, Buffer.from(text)]));
}

/** Binds a row to the chain: the ledger keeps this hash of all its columns. */
export function hashFacts(facts: readonly (string | number | null)[]): string {
  return hash("sha256", JSON.stringify(facts));
}

export interface LedgerRecord {
  readonly seq: number;
  readonly kind: string;
  readonly body: string;
  readonly at: number;
}

export function chainRecord(previous: Uint8Array, record: LedgerRecord): Buffer {
  const text = JSON.stringify(["record", record.seq, record.kind, record.body, record.at]);
  return sha256(Buffer.concat([previous, Buffer.from(text)]));
}
