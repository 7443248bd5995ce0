/**
 * The growing end of a conversation inside one write: counters, positions and the head of the hash chain are read once, advanced in memory
 * row by row, and written back once.
 *
 * Invariant: `seq` and `chain` advance together; the caller of `takeMessage` must store the returned link, and `takeRecord` stores its own.
 */
import { chainGenesis, chainMessage, chainRecord } from "../model/chain.ts";
import type { ArrivalFacts, ForkOrigin } from "../model/chain.ts";
import { NO_LABELS } from "../model/labels.ts";
import { NO_ORIGIN } from "../model/origin.ts";
import { POSITION_STEP } from "../model/message.ts";
import type { SessionRef } from "../model/message.ts";
import type { RowWriter } from "./changes.ts";
import { fromLabels } from "./labels.ts";
import type { HeadRow } from "./reads.ts";
import type { Row } from "./tables.ts";

/** A new conversation; a fork begins from its parent's chain. */
export function describeConversation(
  conversationId: number,
  session: SessionRef,
  now: number,
  fork: (ForkOrigin & { readonly position: number }) | null,
): Row<"conversations"> {
  const { owner, key: sessionKey } = session;
  return {
    conversation_id: conversationId,
    owner,
    session_key: sessionKey,
    session_id: session.id,
    created_at: now,
    archived_at: null,
    archive_cause: null,
    ...NO_ORIGIN,
    parent_id: fork?.conversationId ?? null,
    fork_seq: fork?.seq ?? null,
    fork_pos: fork?.position ?? null,
    head_seq: 0,
    head_chain: chainGenesis({ conversationId, owner, sessionKey, createdAt: now, fork }),
    fold_revision: 0,
    epoch_seq: 0,
    message_count: 0,
    summary_count: 0,
    shown_messages: 0,
    shown_tokens: 0,
    arrival_bytes: 0,
    last_position: 0,
    first_at: null,
    last_at: null,
    stored_at: null,
    ...fromLabels(NO_LABELS),
  };
}

export class Head {
  readonly conversationId: number;
  readonly #row: HeadRow;
  #isChanged = false;
  #hasNewRows = false;

  constructor(row: HeadRow) {
    this.conversationId = row.conversation_id;
    this.#row = { ...row };
  }

  get summaryCount(): number {
    return this.#row.summary_count;
  }

  /** Whether anything of it is shown. */
  get isShown(): boolean {
    return this.#row.shown_messages > 0;
  }

  get hasSummaries(): boolean {
    return this.#row.summary_count > 0;
  }

  /** Returns the next seq and the link of the message that takes it. */
  takeMessage(facts: Omit<ArrivalFacts, "seq">, commitment: Uint8Array): { seq: number; chain: Buffer } {
    const seq = this.#row.head_seq + 1;
    const chain = chainMessage(this.#row.head_chain, { ...facts, seq }, commitment);
    this.#advance(seq, chain);
    return { seq, chain };
  }

  /** Writes a record into the ledger and the chain. */
  takeRecord(writer: RowWriter, kind: string, body: unknown, at: number): number {
    const seq = this.#row.head_seq + 1;
    const text = JSON.stringify(body);
    const chain = chainRecord(this.#row.head_chain, { seq, kind, body: text, at });
    writer.insert("ledger", { conversation_id: this.conversationId, seq, kind, body: text, at, chain });
    this.#advance(seq, chain);
    return seq;
  }

  /** The position after everything else. */
  nextPosition(): number {
    return this.#row.last_position + POSITION_STEP;
  }

  get lastPosition(): number {
    return this.#row.last_position;
  }

  noteMessage(message: {
    position: number;
    createdAt: number;
    isDated: boolean;
    arrivalBytes: number;
    sessionId: string;
  }): void {
    const row = this.#row;
    this.#hasNewRows = true;
    row.message_count += 1;
    row.arrival_bytes += message.arrivalBytes;
    row.session_id = message.sessionId;
    row.last_position = Math.max(row.last_position, message.position);
    if (!message.isDated) return;
    row.first_at = Math.min(row.first_at ?? message.createdAt, message.createdAt);
    row.last_at = Math.max(row.last_at ?? message.createdAt, message.createdAt);
  }

  noteShown(messages: number, tokens: number): void {
    this.#row.shown_messages += messages;
    this.#row.shown_tokens += tokens;
    this.#isChanged = true;
  }

  /** Records a stored summary; a published one begins a new epoch. */
  noteSummary(isPublished: boolean, stored = 1): void {
    this.#row.summary_count += stored;
    if (isPublished) {
      this.#row.fold_revision += 1;
      this.#row.epoch_seq = this.#row.head_seq;
    }
    this.#isChanged = true;
  }

  /** The cover was rebuilt: its contents were counted, and an epoch begins. */
  recount(counted: { readonly summaries: number; readonly messages: number; readonly tokens: number }): void {
    this.#row.summary_count = counted.summaries;
    this.#row.shown_messages = counted.messages;
    this.#row.shown_tokens = counted.tokens;
    this.noteSummary(true, 0);
  }

  /** The newest seq when the epoch began. */
  get epochSeq(): number {
    return this.#row.epoch_seq;
  }

  get foldRevision(): number {
    return this.#row.fold_revision;
  }

  get isArchived(): boolean {
    return this.#row.archived_at !== null;
  }

  get seq(): number {
    return this.#row.head_seq;
  }

  /** Closes the conversation; late rows are still accepted. */
  archive(writer: RowWriter, cause: string, now: number): void {
    if (this.#row.archived_at !== null) return;
    this.#row.archived_at = now;
    const key = { conversation_id: this.conversationId };
    writer.update("conversations", key, { archived_at: now, archive_cause: cause });
    writer.divide();
  }

  save(writer: RowWriter, now: number): void {
    if (!this.#isChanged) return;
    const key = { conversation_id: this.conversationId };
    const grown = pickGrown(this.#row);
    writer.update("conversations", key, this.#hasNewRows ? { ...grown, stored_at: now } : grown);
    this.#isChanged = false;
  }

  #advance(seq: number, chain: Buffer): void {
    this.#row.head_seq = seq;
    this.#row.head_chain = chain;
    this.#isChanged = true;
  }
}

/** Only the growing columns: a new conversation comes with its whole row, and may have been archived since. */
const pickGrown = (row: HeadRow): Omit<HeadRow, "conversation_id" | "owner" | "archived_at"> => ({
  session_id: row.session_id,
  head_seq: row.head_seq,
  head_chain: row.head_chain,
  message_count: row.message_count,
  shown_messages: row.shown_messages,
  shown_tokens: row.shown_tokens,
  arrival_bytes: row.arrival_bytes,
  last_position: row.last_position,
  first_at: row.first_at,
  last_at: row.last_at,
  summary_count: row.summary_count,
  fold_revision: row.fold_revision,
  epoch_seq: row.epoch_seq,
});
