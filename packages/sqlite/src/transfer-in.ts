/**
 * Writing whole conversations that come from another archive. Rows go through the same head as rows that arrive, so that seq, chain
 * and counters are made here and proven here; only times, places, salts and commitments are taken as they are.
 */
import {
  addParts,
  addRedaction,
  chainGenesis,
  commitStored,
  deriveFileId,
  encodeBody,
  EngineError,
  hashFacts,
  HIDDEN,
  hiddenMask,
  LargeFiles,
  must,
  spliceRanges,
} from "@lossless/core/adapter";
import type { Head, HiddenReason } from "@lossless/core/adapter";
import type {
  CutPayload,
  Derive,
  DerivedMessage,
  MovedConversation,
  MovedFile,
  MovedLedger,
  MovedMessage,
  MovedRow,
  MovedSession,
  MovedSummary,
  MovedTurn,
  OpenOutcome,
} from "@lossless/core/ports";
import type { Connection, Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { recordEvent } from "./event-ids.ts";
import { writeFile } from "./file-rows.ts";
import type { IndexDocument } from "./full-text-index.ts";
import { nextId } from "./next-id.ts";
import { findSession, openHeads } from "./placement.ts";
import { writeSummary } from "./summary-rows.ts";
import { readMovedRows } from "./transfer.ts";
import { dropVectors } from "./vectors.ts";

const SAVE_SESSION = `
  INSERT INTO sessions (session_ref, owner, session_id, cursor, last_event, base_tokens) VALUES (${nextId("sessions")}, ?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`;
const SAVE_TURN =
  "INSERT INTO turns (advancement_key, session_ref, committed_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const SAME_CONVERSATION = `
  SELECT conversation_id, head_seq FROM conversations WHERE owner = ? AND session_key = ? AND created_at = ?
  ORDER BY conversation_id LIMIT 1 OFFSET ?`;
const ACTIVE =
  "SELECT 1 AS found FROM conversations WHERE owner = ? AND session_key = ? AND archived_at IS NULL";
const NEXT_ID = `SELECT ${nextId("conversations")} AS id`;
const INSERT_CONVERSATION = `
  INSERT INTO conversations (conversation_id, owner, session_key, session_id, created_at, archived_at, archive_cause, head_chain)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const PLACEMENT_OF = "SELECT conversation_id FROM placements WHERE session_ref = ? AND start_position = ?";
const EVENT_OF = "SELECT message_id FROM event_ids WHERE session_ref = ? LIMIT 1";
const INSERT_PLACEMENT =
  "INSERT INTO placements (session_ref, start_position, conversation_id, base_position) VALUES (?, ?, ?, ?)";
const OWNER_OF = "SELECT owner FROM conversations WHERE conversation_id = ?";
const INSERT_MESSAGE = `
  INSERT INTO messages (message_id, conversation_id, seq, position, session_ref, event_id, revises, role, tokens, created_at, hidden,
                        hidden_now, arrival_bytes, encoding, body, salt, commitment, chain, forgotten_at)
  VALUES (${nextId("messages")}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const MESSAGE_AT =
  "SELECT message_id, position, seq, hidden_now, revises FROM messages WHERE conversation_id = ? AND seq = ?";
const SET_NEWEST = "UPDATE messages SET newest = ? WHERE message_id = ?";
const SET_HIDDEN = "UPDATE messages SET hidden_now = ? WHERE message_id = ?";
const FILE_FACTS = `
  SELECT file_id, conversation_id, file_name, mime_type, byte_size, line_count, sha256, storage_path, exploration_summary, created_at
  FROM large_files WHERE file_id = ?`;
const INSERT_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, tokens, messages, depth, hidden)
  VALUES (?1, ?2, ?3, ?2, ?4, ?5, 1, -1, ?6)`;
const ITEM =
  "SELECT tokens, hidden FROM context_items WHERE conversation_id = ? AND start_pos = ? AND seq = ? AND message_id IS NOT NULL";
const SET_ITEM_TOKENS =
  "UPDATE context_items SET tokens = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const SET_ITEM_HIDDEN =
  "UPDATE context_items SET hidden = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const INSERT_BOUNDARY = `
  INSERT INTO boundaries (conversation_id, session_ref, event_id, position, reason, retain_depth, shown_before, at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

export function moveSessions(
  { connection }: StoreContext,
  sessions: readonly MovedSession[],
  turns: readonly MovedTurn[],
): void {
  connection.write(() => {
    for (const { owner, sessionId, cursor, lastEventId, baseTokens } of sessions) {
      connection.run(SAVE_SESSION, owner, sessionId, cursor, lastEventId, baseTokens);
    }
    for (const { owner, sessionId, key, at } of turns) {
      connection.run(SAVE_TURN, key, sessionRefOf(connection, owner, sessionId), at);
    }
  });
}

export function openMoved(
  { connection }: StoreContext,
  moved: MovedConversation,
  nth: number | null,
  now: number,
): OpenOutcome {
  return connection.write(() => {
    const { owner, sessionKey, sessionId, createdAt } = moved;
    const known =
      nth === null
        ? undefined
        : connection.get<{ conversation_id: number; head_seq: number }>(
            SAME_CONVERSATION,
            owner,
            sessionKey,
            createdAt,
            nth,
          );
    if (known)
      return {
        kind: "opened",
        conversationId: known.conversation_id,
        rows: known.head_seq,
        archivedInstead: false,
      };
    const conflict = findConflict(connection, moved);
    if (conflict !== null) return { kind: "conflict", reason: conflict };
    const isTaken = moved.archivedAt === null && connection.get(ACTIVE, owner, sessionKey) !== undefined;
    const conversationId = must(connection.get<{ id: number }>(NEXT_ID), "next conversation id").id;
    const [archivedAt, cause] = isTaken ? [now, "import"] : [moved.archivedAt, moved.archiveCause];
    const genesis = chainGenesis({ conversationId, owner, sessionKey, createdAt });
    connection.run(
      INSERT_CONVERSATION,
      conversationId,
      owner,
      sessionKey,
      sessionId,
      createdAt,
      archivedAt,
      cause,
      genesis,
    );
    for (const { sessionId: placed, start, base } of moved.placements) {
      connection.run(INSERT_PLACEMENT, sessionRefOf(connection, owner, placed), start, conversationId, base);
    }
    return { kind: "opened", conversationId, rows: 0, archivedInstead: isTaken };
  });
}

/** Events are known by their session; a session that is placed elsewhere would be stored twice. */
function findConflict(connection: Connection, { owner, placements }: MovedConversation): string | null {
  for (const { sessionId, start } of placements) {
    const ref = findSession(connection, owner, sessionId);
    if (ref === null) continue;
    const taken = connection.get<{ conversation_id: number }>(PLACEMENT_OF, ref, start);
    if (taken) return `session ${sessionId} is already stored, in conversation ${taken.conversation_id}`;
    if (start === 0 && connection.get(EVENT_OF, ref)) return `session ${sessionId} is already stored`;
  }
  return null;
}

export function compareMoved(
  context: StoreContext,
  conversationId: number,
  rows: readonly MovedRow[],
): number | null {
  const first = rows[0];
  if (!first) return null;
  const stored = readMovedRows(context, conversationId, first.seq - 1, rows.length);
  for (const [index, row] of rows.entries()) {
    const same = stored[index];
    if (!same || same.seq !== row.seq || !isSameRow(same, row)) return row.seq;
  }
  return null;
}

function isSameRow(a: MovedRow, b: MovedRow): boolean {
  if (a.kind === "message" && b.kind === "message") {
    return a.eventId === b.eventId && Buffer.compare(a.commitment, b.commitment) === 0;
  }
  return (
    a.kind === "ledger" && b.kind === "ledger" && a.change === b.change && a.body === b.body && a.at === b.at
  );
}

type Files = ReadonlyMap<string, { file: MovedFile; content: Uint8Array }>;

/** A message with all that needs no lock done. */
interface Prepared {
  readonly message: MovedMessage;
  readonly derived: DerivedMessage;
  readonly arrivalBytes: number;
}

export function moveRows(
  context: StoreContext,
  conversationId: number,
  rows: readonly MovedRow[],
  files: Files,
  derive: Derive,
  now: number,
): void {
  const { connection, index } = context;
  const prepared = rows.map((row) => (row.kind === "message" ? prepare(row, files, derive) : row));
  connection.write(() => {
    const head = openHeads(connection).of(conversationId);
    const owner = must(connection.get<{ owner: string }>(OWNER_OF, conversationId), "the conversation").owner;
    const mover = new RowMover(context, head, owner, files);
    for (const row of prepared) {
      if ("message" in row) mover.addMessage(row);
      else mover.addRecord(row);
    }
    head.save(connection, now);
    // The others are read back when they are indexed: until a long import is committed they would all be kept in memory.
    index.add(mover.documents.slice(-1));
  });
}

function prepare(message: MovedMessage, files: Files, derive: Derive): Prepared {
  if (message.forgottenAt !== null) {
    const derived = {
      role: message.role,
      tokens: message.tokens,
      parts: [],
      readTerms: () => ({ words: new Uint8Array(), idents: new Uint8Array() }),
    };
    return { message, derived, arrivalBytes: 0 };
  }
  const payloads = message.cuts.map((cut) => ({
    cut,
    ...must(files.get(cut.sha256), `large file ${cut.sha256}`),
  }));
  const bytes = spliceRanges(
    message.body,
    payloads.map(({ cut, content }) => ({ at: cut.at, length: cut.length, encoding: cut.encoding, content })),
  );
  if (!commitStored(message.salt, bytes, message.redaction).equals(message.commitment)) {
    throw new EngineError(
      "invalid_input",
      `cannot store message ${message.eventId}: it is not what its commitment says`,
      {
        hint: "the archive was changed or damaged; make it again",
      },
    );
  }
  const cuts: CutPayload[] = payloads.map(({ cut, file }) => ({ at: cut.at, length: cut.length, ...file }));
  return { message, derived: derive(bytes, cuts), arrivalBytes: bytes.byteLength };
}

class RowMover {
  readonly documents: IndexDocument[] = [];
  readonly #context: StoreContext;
  readonly #connection: Connection;
  readonly #head: Head;
  readonly #owner: string;
  readonly #files: Files;

  constructor(context: StoreContext, head: Head, owner: string, files: Files) {
    this.#context = context;
    this.#connection = context.connection;
    this.#head = head;
    this.#owner = owner;
    this.#files = files;
  }

  addMessage({ message, derived, arrivalBytes }: Prepared): void {
    const connection = this.#connection;
    const head = this.#head;
    const { seq, sessionId, eventId, position, createdAt } = message;
    const sessionRef = sessionRefOf(connection, this.#owner, sessionId);
    const first = message.revises === null ? null : this.#messageAt(message.revises);
    const hidden = hiddenMask(message.hidden);
    const facts = { sessionId, eventId, position, createdAt, hidden, revisesSeq: message.revises ?? 0 };
    const link = head.takeMessage(facts, message.commitment);
    checkSeq(link.seq, seq);
    const { body, encoding } = encodeBody(message.body);
    const messageId = connection.run(
      INSERT_MESSAGE,
      head.conversationId,
      seq,
      position,
      sessionRef,
      eventId,
      first?.message_id ?? null,
      derived.role,
      derived.tokens,
      createdAt,
      hidden,
      hidden,
      arrivalBytes,
      encoding,
      body,
      message.salt,
      message.commitment,
      link.chain,
      message.forgottenAt,
    );
    head.noteMessage({ position, createdAt, arrivalBytes, sessionId });
    this.#addParts(messageId, message, derived);
    addRedaction(connection, messageId, message.redaction);
    if (first) this.#showRevision(first, messageId, derived.tokens);
    else {
      recordEvent(connection, sessionRef, eventId, messageId, message.eventKind);
      connection.run(INSERT_ITEM, head.conversationId, position, seq, messageId, derived.tokens, hidden);
      if (hidden === 0) head.noteShown(1, derived.tokens);
    }
    if (message.forgottenAt === null) {
      const { readTerms } = derived;
      this.documents.push({ messageId, conversationId: head.conversationId, bytes: arrivalBytes, readTerms });
    }
  }

  #addParts(messageId: number, message: MovedMessage, derived: DerivedMessage): void {
    const payloads = message.cuts.map(({ sha256, at, length, encoding }) => ({
      at,
      length,
      fileId: this.#addFile(sha256),
      encoding,
    }));
    addParts(this.#connection, messageId, derived.parts, payloads);
  }

  #addFile(sha256: string): string {
    const { file, content } = must(this.#files.get(sha256), `large file ${sha256}`);
    // Its record is in the ledger that is moved with it.
    const { fileId, record } = writeFile(this.#context, this.#head.conversationId, file, content);
    const path = LargeFiles.storagePath(this.#head.conversationId, fileId, file.extension);
    if (record !== null) this.#connection.afterRollback(() => this.#context.files.discard(path));
    return fileId;
  }

  #showRevision(first: MessageAt, messageId: number, tokens: number): void {
    const connection = this.#connection;
    connection.run(SET_NEWEST, messageId, first.message_id);
    dropVectors(connection, first.message_id);
    const place = [this.#head.conversationId, first.position, first.seq] as const;
    const item = connection.get<{ tokens: number; hidden: number }>(ITEM, ...place);
    if (!item) return;
    connection.run(SET_ITEM_TOKENS, tokens, ...place);
    if (item.hidden === 0) this.#head.noteShown(0, tokens - item.tokens);
  }

  addRecord(record: MovedLedger): void {
    const body = JSON.parse(record.body) as Record<string, unknown>;
    const stored = this.#nameFiles(record.change, body);
    checkSeq(this.#head.takeRecord(this.#connection, record.change, stored, record.at), record.seq);
    if (record.change === "hide" || record.change === "show") this.#applyHidden(record.change, body);
    else if (record.change === "forget") this.#applyForgotten(body);
    else if (record.change === "relabel") this.#addAlias(body);
    else if (record.change === "boundary") this.#addBoundary(body, record.at);
  }

  #describeFile(sha256: string): object {
    const fileId = deriveFileId(this.#head.conversationId, sha256);
    const facts = must(this.#connection.get(FILE_FACTS, fileId), `the row of ${fileId}`) as Row;
    return { fileId, facts: hashFacts(Object.values(facts) as (string | number | null)[]) };
  }

  /** The body of a record with the ids that files have here. */
  #nameFiles(change: string, body: Record<string, unknown>): object {
    if (change === "file" && typeof body["sha256"] === "string") return this.#describeFile(body["sha256"]);
    if (change !== "forget") return body;
    const files = (body["files"] as (string | { sha256: string })[]).map((file) =>
      typeof file === "string" ? file : deriveFileId(this.#head.conversationId, file.sha256),
    );
    return { ...body, files };
  }

  /** Of a forgotten event the first message is hidden; its revisions are never shown by themselves. */
  #applyForgotten(body: Record<string, unknown>): void {
    const messages = (body["seqs"] as number[]).map((seq) => this.#messageAt(seq));
    this.#changeHidden(
      messages.filter((message) => message.revises === null),
      (before) => before | HIDDEN.forgotten,
    );
  }

  #applyHidden(change: "hide" | "show", body: Record<string, unknown>): void {
    const bit = HIDDEN[body["reason"] as HiddenReason];
    const messages = (body["seqs"] as number[]).map((seq) => this.#messageAt(seq));
    this.#changeHidden(messages, (before) => (change === "hide" ? before | bit : before & ~bit));
  }

  #changeHidden(messages: readonly MessageAt[], change: (before: number) => number): void {
    for (const message of messages) {
      const before = message.hidden_now;
      const after = change(before);
      this.#connection.run(SET_HIDDEN, after, message.message_id);
      if (after !== 0) dropVectors(this.#connection, message.message_id);
      const place = [this.#head.conversationId, message.position, message.seq] as const;
      const item = this.#connection.get<{ tokens: number }>(ITEM, ...place);
      if (!item) continue;
      this.#connection.run(SET_ITEM_HIDDEN, after, ...place);
      const shown = (after === 0 ? 1 : 0) - (before === 0 ? 1 : 0);
      this.#head.noteShown(shown, shown * item.tokens);
    }
  }

  #addAlias(body: Record<string, unknown>): void {
    const { message_id: messageId } = this.#messageAt(body["seq"] as number);
    const sessionRef = sessionRefOf(this.#connection, this.#owner, body["sessionId"] as string);
    recordEvent(this.#connection, sessionRef, body["to"] as string, messageId, "alias");
  }

  #addBoundary(body: Record<string, unknown>, at: number): void {
    this.#connection.run(
      INSERT_BOUNDARY,
      this.#head.conversationId,
      sessionRefOf(this.#connection, this.#owner, body["sessionId"] as string),
      body["eventId"] as string,
      body["position"] as number,
      body["reason"] as string,
      body["retainDepth"] as number,
      body["shownBefore"] as number,
      at,
    );
  }

  #messageAt(seq: number): MessageAt {
    return must(
      this.#connection.get<MessageAt>(MESSAGE_AT, this.#head.conversationId, seq),
      `the message at seq ${seq}`,
    );
  }
}

interface MessageAt {
  message_id: number;
  position: number;
  seq: number;
  hidden_now: number;
  revises: number | null;
}

function checkSeq(given: number, wanted: number): void {
  if (given === wanted) return;
  throw new EngineError("invalid_input", `cannot store the row ${wanted}: the archive has a gap before it`);
}

function sessionRefOf(connection: Connection, owner: string, sessionId: string): number {
  const known = findSession(connection, owner, sessionId);
  return known ?? connection.run(SAVE_SESSION, owner, sessionId, null, null, null);
}

const SUMMARY_EXISTS = "SELECT conversation_id, content FROM summaries WHERE summary_id = ?";
export function moveSummaries(
  context: StoreContext,
  conversationId: number,
  summaries: readonly MovedSummary[],
): { stored: number; known: number } {
  const { connection } = context;
  return connection.write(() => {
    const head = openHeads(connection).of(conversationId);
    let stored = 0;
    for (const summary of summaries) {
      const known = connection.get<{ conversation_id: number; content: string }>(
        SUMMARY_EXISTS,
        summary.summaryId,
      );
      if (known && (known.conversation_id !== conversationId || known.content !== summary.content)) {
        throw new EngineError(
          "invalid_input",
          `cannot store ${summary.summaryId}: this archive has another summary of that id`,
        );
      }
      if (known) continue;
      const sources = summary.sources.map((source) =>
        typeof source === "string" ? source : messageIdAt(connection, conversationId, source),
      );
      writeSummary(context, { ...summary, conversationId }, sources);
      stored += 1;
    }
    head.noteSummary(false, stored);
    head.save(connection, 0);
    return { stored, known: summaries.length - stored };
  });
}

const messageIdAt = (connection: Connection, conversationId: number, seq: number): number =>
  must(connection.get<MessageAt>(MESSAGE_AT, conversationId, seq), `the message at seq ${seq}`).message_id;

const SUMMARY = "SELECT * FROM summaries WHERE summary_id = ? AND conversation_id = ?";
const IN_COVER = "SELECT 1 AS found FROM context_items WHERE conversation_id = ? AND summary_id = ?";
const COVERED_BY_SUMMARY = `
  WITH RECURSIVE below (summary_id) AS (
    SELECT ?2 UNION SELECT p.parent_summary_id FROM below b JOIN summary_parents p ON p.summary_id = b.summary_id)
  SELECT i.start_pos, i.seq, i.tokens, i.hidden FROM below b JOIN summary_messages l USING (summary_id)
  JOIN messages m USING (message_id)
  JOIN context_items i ON i.conversation_id = ?1 AND i.start_pos = m.position AND i.seq = m.seq AND i.message_id = m.message_id
  UNION ALL
  SELECT i.start_pos, i.seq, i.tokens, i.hidden FROM below b JOIN context_items i ON i.conversation_id = ?1 AND i.summary_id = b.summary_id`;
const DELETE_ITEM = "DELETE FROM context_items WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const INSERT_SUMMARY_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, summary_id, tokens, messages, depth, hidden)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`;
const LOST_PREVIOUS = `
  SELECT s.summary_id, s.previous_id FROM summaries s LEFT JOIN summaries p
    ON p.summary_id = s.previous_id AND p.conversation_id = s.conversation_id AND (p.end_pos, p.end_seq) < (s.start_pos, s.start_seq)
  WHERE s.conversation_id = ? AND s.previous_id IS NOT NULL AND p.summary_id IS NULL LIMIT 1`;
const SET_FOLDS = "UPDATE conversations SET fold_revision = ?, epoch_seq = ? WHERE conversation_id = ?";

export function moveCover(
  { connection }: StoreContext,
  conversationId: number,
  cover: readonly string[],
  folds: { foldRevision: number; epochSeq: number },
): void {
  connection.write(() => {
    const head = openHeads(connection).of(conversationId);
    const lost = connection.get<{ summary_id: string; previous_id: string }>(LOST_PREVIOUS, conversationId);
    if (lost)
      throw new EngineError(
        "invalid_input",
        `cannot store ${lost.summary_id}: its previous context, ${lost.previous_id}, does not come before it`,
      );
    for (const summaryId of cover) {
      if (connection.get(IN_COVER, conversationId, summaryId)) continue;
      putInCover(connection, head, must(connection.get(SUMMARY, summaryId, conversationId), summaryId));
    }
    head.save(connection, 0);
    connection.run(SET_FOLDS, folds.foldRevision, folds.epochSeq, conversationId);
  });
}

function putInCover(connection: Connection, head: Head, summary: Row): void {
  const { conversationId } = head;
  const covered = connection.all<{ start_pos: number; seq: number; tokens: number; hidden: number }>(
    COVERED_BY_SUMMARY,
    conversationId,
    summary.summary_id as string,
  );
  let tokensBefore = 0;
  for (const item of covered) {
    if (item.hidden === 0) tokensBefore += item.tokens;
    connection.run(DELETE_ITEM, conversationId, item.start_pos, item.seq);
  }
  connection.run(
    INSERT_SUMMARY_ITEM,
    conversationId,
    summary.start_pos as number,
    summary.start_seq as number,
    summary.end_pos as number,
    summary.summary_id as string,
    summary.tokens as number,
    summary.messages as number,
    summary.depth as number,
  );
  head.noteShown(0, (summary.tokens as number) - tokensBefore);
}
