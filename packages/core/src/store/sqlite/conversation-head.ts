/**
 * The growing end of a conversation inside one write transaction: counters, positions and the head of the hash chain are read
 * once, advanced in memory row by row, and written back once.
 *
 * Invariant: `seq` and `chain` advance together; whoever takes a seq must store the link that `takeMessage` or `takeRecord` returned.
 */
import { chainGenesis, chainMessage, chainRecord } from "../../model/chain.ts";
import type { ArrivalFacts, ForkOrigin } from "../../model/chain.ts";
import { must } from "../../model/errors.ts";
import { POSITION_STEP } from "../../model/message.ts";
import type { SessionRef } from "../../model/message.ts";
import type { CacheReport } from "../rows.ts";
import type { Connection } from "./connection.ts";

const NEXT_CONVERSATION_ID = "SELECT coalesce(max(conversation_id), 0) + 1 AS id FROM conversations";
const INSERT_CONVERSATION = `
  INSERT INTO conversations (conversation_id, owner, session_key, session_id, created_at, head_chain, parent_id, fork_seq, fork_pos)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SELECT_HEAD = `
  SELECT conversation_id, session_id, head_seq, head_chain, message_count, shown_messages, shown_tokens, arrival_bytes, last_position,
         first_at, last_at, summary_count, fold_revision, epoch_seq
  FROM conversations WHERE conversation_id = ?`;
const UPDATE_HEAD = `
  UPDATE conversations SET session_id = ?, head_seq = ?, head_chain = ?, message_count = ?, shown_messages = ?, shown_tokens = ?,
         arrival_bytes = ?, last_position = ?, first_at = ?, last_at = ?, stored_at = coalesce(?, stored_at), summary_count = ?, fold_revision = ?, epoch_seq = ?
  WHERE conversation_id = ?`;
const INSERT_RECORD =
  "INSERT INTO ledger (conversation_id, seq, kind, body, at, chain) VALUES (?, ?, ?, ?, ?, ?)";

const ADD_CACHE_USAGE = `
  INSERT INTO cache_usage (conversation_id, requests, prompt_tokens, cached_tokens, updated_at, last_answer) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, updated_at = excluded.updated_at, last_answer = excluded.last_answer`;
const LAST_ANSWER = "SELECT last_answer FROM cache_usage WHERE conversation_id = ?";

interface HeadRow {
  conversation_id: number;
  session_id: string;
  head_seq: number;
  head_chain: Uint8Array;
  message_count: number;
  shown_messages: number;
  shown_tokens: number;
  arrival_bytes: number;
  last_position: number;
  first_at: number | null;
  last_at: number | null;
  summary_count: number;
  fold_revision: number;
  epoch_seq: number;
}

export class ConversationHead {
  readonly conversationId: number;
  #row: HeadRow;
  #changed = false;
  #hasNewRows = false;
  #cacheReports: CacheReport[] = [];

  constructor(row: HeadRow) {
    this.conversationId = row.conversation_id;
    this.#row = row;
  }

  static read(connection: Connection, conversationId: number): ConversationHead {
    return new ConversationHead(
      must(connection.get<HeadRow>(SELECT_HEAD, conversationId), `conversation ${conversationId}`),
    );
  }

  static create(
    connection: Connection,
    session: SessionRef,
    now: number,
    fork: (ForkOrigin & { readonly position: number }) | null = null,
  ): ConversationHead {
    const conversationId = must(
      connection.get<{ id: number }>(NEXT_CONVERSATION_ID),
      "next conversation id",
    ).id;
    const genesis = chainGenesis({
      conversationId,
      owner: session.owner,
      sessionKey: session.key,
      createdAt: now,
      fork,
    });
    connection.run(
      INSERT_CONVERSATION,
      conversationId,
      session.owner,
      session.key,
      session.id,
      now,
      genesis,
      fork?.conversationId ?? null,
      fork?.seq ?? null,
      fork?.position ?? null,
    );
    return ConversationHead.read(connection, conversationId);
  }

  get hasSummaries(): boolean {
    return this.#row.summary_count > 0;
  }

  /** Gives out the next seq and the link of a message that takes it. */
  takeMessage(facts: Omit<ArrivalFacts, "seq">, commitment: Uint8Array): { seq: number; chain: Buffer } {
    const seq = this.#row.head_seq + 1;
    const chain = chainMessage(this.#row.head_chain, { ...facts, seq }, commitment);
    this.#advance(seq, chain);
    return { seq, chain };
  }

  /** Writes a record into the ledger and the chain. */
  takeRecord(connection: Connection, kind: string, body: unknown, at: number): number {
    const seq = this.#row.head_seq + 1;
    const text = JSON.stringify(body);
    const chain = chainRecord(this.#row.head_chain, { seq, kind, body: text, at });
    connection.run(INSERT_RECORD, this.conversationId, seq, kind, text, at, chain);
    this.#advance(seq, chain);
    return seq;
  }

  /** The place behind everything else. */
  nextPosition(): number {
    return this.#row.last_position + POSITION_STEP;
  }

  get lastPosition(): number {
    return this.#row.last_position;
  }

  noteMessage(message: {
    position: number;
    createdAt: number;
    arrivalBytes: number;
    sessionId: string;
  }): void {
    const row = this.#row;
    this.#hasNewRows = true;
    row.message_count += 1;
    row.arrival_bytes += message.arrivalBytes;
    row.session_id = message.sessionId;
    row.last_position = Math.max(row.last_position, message.position);
    row.first_at = Math.min(row.first_at ?? message.createdAt, message.createdAt);
    row.last_at = Math.max(row.last_at ?? message.createdAt, message.createdAt);
  }

  noteCacheUsage(report: CacheReport): void {
    this.#cacheReports.push(report);
  }

  noteShown(messages: number, tokens: number): void {
    this.#row.shown_messages += messages;
    this.#row.shown_tokens += tokens;
    this.#changed = true;
  }

  /** A summary was stored; a published one begins a new epoch. */
  noteSummary(isPublished: boolean, stored = 1): void {
    this.#row.summary_count += stored;
    if (isPublished) {
      this.#row.fold_revision += 1;
      this.#row.epoch_seq = this.#row.head_seq;
    }
    this.#changed = true;
  }

  /** The newest seq when the epoch began. */
  get epochSeq(): number {
    return this.#row.epoch_seq;
  }

  get foldRevision(): number {
    return this.#row.fold_revision;
  }

  get seq(): number {
    return this.#row.head_seq;
  }

  save(connection: Connection, now: number): void {
    if (!this.#changed) return;
    const row = this.#row;
    connection.run(
      UPDATE_HEAD,
      row.session_id,
      row.head_seq,
      row.head_chain,
      row.message_count,
      row.shown_messages,
      row.shown_tokens,
      row.arrival_bytes,
      row.last_position,
      row.first_at,
      row.last_at,
      this.#hasNewRows ? now : null,
      row.summary_count,
      row.fold_revision,
      row.epoch_seq,
      row.conversation_id,
    );
    this.#changed = false;
    this.#saveCacheUsage(connection, now);
  }

  #saveCacheUsage(connection: Connection, now: number): void {
    if (this.#cacheReports.length === 0) return;
    // The rows of an answer follow each other, but not always in one batch; each further one tells of the same request.
    let last = connection.get<{ last_answer: string | null }>(LAST_ANSWER, this.conversationId)?.last_answer;
    const reports = this.#cacheReports.filter(({ answer }) => {
      const isRepeated = answer === last;
      last = answer;
      return !isRepeated;
    });
    this.#cacheReports = [];
    if (reports.length === 0) return;
    const promptTokens = reports.reduce((sum, report) => sum + report.promptTokens, 0);
    const cachedTokens = reports.reduce((sum, report) => sum + report.cachedTokens, 0);
    connection.run(
      ADD_CACHE_USAGE,
      this.conversationId,
      reports.length,
      promptTokens,
      cachedTokens,
      now,
      last ?? null,
    );
  }

  #advance(seq: number, chain: Buffer): void {
    this.#row.head_seq = seq;
    this.#row.head_chain = chain;
    this.#changed = true;
  }
}
