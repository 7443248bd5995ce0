/**
 * Storing events: the one way a message enters the archive. Identity is decided by id inside the transaction; everything that
 * needs no lock (parsing, counting, compressing) has been done before it begins.
 */
import { commit, commitRedacted } from "../../model/chain.ts";
import type { IngestedMessage, IngestOutcome } from "../../model/message.ts";
import type { AppendBatch, AppendEvent, AppendResult, PreparedMessage } from "../store.ts";
import { Calibrations } from "./calibrations.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import type { ConversationHead } from "./conversation-head.ts";
import { recordEvent } from "./event-ids.ts";
import { writeFile } from "./file-rows.ts";
import { coverLateMessage, markStale, staleStandIns } from "./fold-path.ts";
import type { IndexDocument } from "./full-text-index.ts";
import { KnownEvents } from "./known-events.ts";
import { describeAsStored } from "./known-files.ts";
import { findSession, Placement } from "./placement.ts";
import type { Place } from "./placement.ts";
import { noteStored } from "./imports.ts";
import { nextId } from "./next-id.ts";
import { insertParts } from "./parts.ts";
import type { PayloadPart } from "./parts.ts";
import { insertRedaction } from "./redactions.ts";
import { dropVectors } from "./vectors.ts";

const SELECT_VERSIONS = `
  SELECT m.message_id, m.conversation_id, m.seq, m.position, m.salt, m.commitment, m.forgotten_at, m.tokens, m.newest,
         r.key_id, r.keyed, r.sealed
  FROM messages m LEFT JOIN redactions r USING (message_id) WHERE m.message_id = ?1 OR m.revises = ?1 ORDER BY m.seq`;
const INSERT_MESSAGE = `
  INSERT INTO messages (message_id, conversation_id, seq, position, session_ref, event_id, revises, role, tokens, created_at, hidden,
                        hidden_now, arrival_bytes, encoding, body, salt, commitment, chain)
  VALUES (${nextId("messages")}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SET_NEWEST = "UPDATE messages SET newest = ? WHERE message_id = ?";
const INSERT_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, tokens, messages, depth, hidden)
  VALUES (?1, ?2, ?3, ?2, ?4, ?5, 1, -1, ?6)`;
const SELECT_ITEM = `
  SELECT tokens, hidden FROM context_items
  WHERE conversation_id = ? AND start_pos = ? AND seq = ? AND message_id IS NOT NULL`;
const SET_ITEM_TOKENS =
  "UPDATE context_items SET tokens = ? WHERE conversation_id = ? AND start_pos = ? AND seq = ?";
const INSERT_TURN =
  "INSERT INTO turns (advancement_key, session_ref, committed_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
const SET_CURSOR =
  "UPDATE sessions SET cursor = ?, last_event = coalesce(?, last_event) WHERE session_ref = ?";
const SET_BASE = "UPDATE sessions SET base_tokens = ?1 WHERE session_ref = ?2 AND base_tokens IS NOT ?1";

interface VersionRow {
  message_id: number;
  conversation_id: number;
  seq: number;
  position: number;
  salt: Uint8Array;
  commitment: Uint8Array;
  forgotten_at: number | null;
  tokens: number;
  newest: number | null;
  key_id: string | null;
  keyed: Uint8Array | null;
  sealed: number | null;
}

/** How an arriving event relates to what is stored. */
type Relation =
  | { kind: "new" }
  | { kind: "known"; version: VersionRow; outcome: "known" | "forgotten" }
  | { kind: "changed"; first: VersionRow };

export function append(context: StoreContext, batch: AppendBatch): AppendResult {
  prepareAhead(context, batch);
  const { connection } = context;
  return connection.write(() => {
    const placement = new Placement(connection, batch.session, batch.now);
    if (batch.turn) {
      const { advancementKey } = batch.turn;
      if (connection.change(INSERT_TURN, advancementKey, placement.sessionRef, batch.now) === 0) {
        const conversationId = placement.readCurrent().conversationId;
        return { conversationId, results: [], duplicateTurn: true, indexProblem: null };
      }
    }
    const documents: IndexDocument[] = [];
    const known = new KnownEvents(connection, placement.sessionRef, listIds(batch.events));
    const calibrations = new Calibrations(connection);
    const results = batch.events.map((event) =>
      storeEvent(context, batch, placement, event, known, calibrations, documents),
    );
    calibrations.save(batch.now);
    if (batch.baseTokens !== undefined) connection.run(SET_BASE, batch.baseTokens, placement.sessionRef);
    if (batch.cursor) {
      const lastEventId = batch.events.at(-1)?.eventId ?? null;
      connection.run(SET_CURSOR, batch.cursor.value, lastEventId, placement.sessionRef);
    }
    const conversationId = placement.readCurrent().conversationId;
    placement.save();
    if (batch.import) noteStored(connection, batch.import, results);
    context.index.add(documents);
    return { conversationId, results, duplicateTurn: false, indexProblem: context.index.notedProblem() };
  });
}

/** A turn is nearly always new: to look first would cost more than to do its work in vain now and then. */
const FEW_EVENTS = 16;

/** Does the work of the events that look new, before any lock is held. A wrong guess costs time, never correctness. */
function prepareAhead(context: StoreContext, batch: AppendBatch): void {
  const { connection } = context;
  const events = batch.events.filter((event) => !event.isPrepared);
  if (events.length <= FEW_EVENTS) {
    for (const event of events) event.prepare();
    return;
  }
  connection.read(() => {
    const sessionRef = findSession(connection, batch.session.owner, batch.session.id);
    const known = sessionRef === null ? null : new KnownEvents(connection, sessionRef, listIds(events));
    for (const event of events) {
      const relation = known === null ? "new" : relate(connection, known, event).kind;
      if (relation !== "known") event.prepare();
    }
  });
}

const listIds = (events: readonly AppendEvent[]): string[] => events.map(({ eventId }) => eventId);

function relate(connection: Connection, known: KnownEvents, event: AppendEvent): Relation {
  const firstId = known.find(event.eventId);
  if (firstId === undefined) return { kind: "new" };
  const versions = connection.all<VersionRow>(SELECT_VERSIONS, firstId);
  const first = versions[0];
  if (!first) return { kind: "new" };
  if (first.forgotten_at !== null) return { kind: "known", version: first, outcome: "forgotten" };
  const equal = versions.find((version) => isSameArrival(version, event));
  return equal ? { kind: "known", version: equal, outcome: "known" } : { kind: "changed", first };
}

/** Under the key it was stored with, a redacted message is compared with what arrived; else with what is stored of it. */
function isSameArrival(version: VersionRow, event: AppendEvent): boolean {
  const { salt, commitment, keyed } = version;
  if (keyed === null) {
    const forms = event.original === undefined ? [event.arrival] : [event.arrival, event.original];
    return forms.some((bytes) => commit(salt, bytes).equals(commitment));
  }
  if (event.keyed?.keyId === version.key_id) return Buffer.compare(event.keyed.commit(salt), keyed) === 0;
  return commitRedacted(commit(salt, event.arrival), keyed, version.sealed ?? 0).equals(commitment);
}

function storeEvent(
  context: StoreContext,
  batch: AppendBatch,
  placement: Placement,
  event: AppendEvent,
  known: KnownEvents,
  calibrations: Calibrations,
  documents: IndexDocument[],
): IngestedMessage {
  const { connection } = context;
  const relation = relate(connection, known, event);
  if (relation.kind === "known") {
    const { message_id, seq } = relation.version;
    return { messageId: message_id, eventId: event.eventId, seq, outcome: relation.outcome };
  }
  const first = relation.kind === "changed" ? relation.first : null;
  const place = first
    ? { head: placement.head(first.conversation_id), position: first.position }
    : placement.place(event.position);
  const { head } = place;
  const prepared = describeAsStored(context, head.conversationId, event.arrival, event.prepare());
  const stored = insertMessage(context, batch, placement.sessionRef, place, event, prepared, first);
  if (first) showRevision(connection, head, first, stored.messageId, prepared.tokens);
  else {
    recordEvent(connection, placement.sessionRef, event.eventId, stored.messageId, event.kind);
    known.note(event.eventId, stored.messageId);
    const isFolded = head.hasSummaries && coverLateMessage(connection, head, stored, prepared.hidden);
    if (!isFolded) addItem(connection, head, stored, prepared);
  }
  documents.push({
    messageId: stored.messageId,
    conversationId: head.conversationId,
    bytes: prepared.arrivalBytes,
    readTerms: prepared.readTerms,
    release: prepared.release,
  });
  if (prepared.cacheUsage && !first) head.noteCacheUsage(prepared.cacheUsage);
  if (prepared.calibration) calibrations.note(stored.messageId, prepared.calibration);
  const outcome: IngestOutcome = first ? "revision" : "stored";
  return { messageId: stored.messageId, eventId: event.eventId, seq: stored.seq, outcome };
}

interface StoredMessage {
  messageId: number;
  seq: number;
  position: number;
}

function insertMessage(
  context: StoreContext,
  batch: AppendBatch,
  sessionRef: number,
  { head, position: wanted }: Place,
  event: AppendEvent,
  prepared: PreparedMessage,
  first: VersionRow | null,
): StoredMessage {
  const { connection } = context;
  const position = wanted ?? head.nextPosition();
  const facts = {
    sessionId: batch.session.id,
    eventId: event.eventId,
    position,
    createdAt: prepared.createdAt,
    hidden: prepared.hidden,
    revisesSeq: first?.seq ?? 0,
  };
  const { seq, chain } = head.takeMessage(facts, prepared.commitment);
  const messageId = connection.run(
    INSERT_MESSAGE,
    head.conversationId,
    seq,
    position,
    sessionRef,
    event.eventId,
    first?.message_id ?? null,
    prepared.role,
    prepared.tokens,
    prepared.createdAt,
    prepared.hidden,
    prepared.hidden,
    prepared.arrivalBytes,
    prepared.encoding,
    prepared.body,
    prepared.salt,
    prepared.commitment,
    chain,
  );
  head.noteMessage({
    position,
    createdAt: prepared.createdAt,
    arrivalBytes: prepared.arrivalBytes,
    sessionId: batch.session.id,
  });
  insertParts(connection, messageId, prepared.parts, storePayloads(context, head, prepared, batch.now));
  insertRedaction(connection, messageId, prepared.redaction);
  return { messageId, seq, position };
}

/** Writes the large payloads of a message to their files; those whose content is new get a row and a record. */
function storePayloads(
  context: StoreContext,
  head: ConversationHead,
  { payloads }: PreparedMessage,
  now: number,
): PayloadPart[] {
  return payloads.map((payload) => {
    const file = { ...payload, createdAt: now };
    const { fileId, record } = writeFile(context, head.conversationId, file, payload.content);
    if (record !== null) head.takeRecord(context.connection, "file", record, now);
    const { at, length, encoding } = payload;
    return { at, length, fileId, encoding };
  });
}

function addItem(
  connection: Connection,
  head: ConversationHead,
  stored: StoredMessage,
  { hidden, tokens }: PreparedMessage,
): void {
  connection.run(
    INSERT_ITEM,
    head.conversationId,
    stored.position,
    stored.seq,
    stored.messageId,
    tokens,
    hidden,
  );
  if (hidden === 0) head.noteShown(1, tokens);
}

/** The cover keeps the item of the first version; from now on it stands for the newest one. */
function showRevision(
  connection: Connection,
  head: ConversationHead,
  first: VersionRow,
  revisionId: number,
  tokens: number,
): void {
  connection.run(SET_NEWEST, revisionId, first.message_id);
  dropVectors(connection, first.message_id);
  const place = [first.conversation_id, first.position, first.seq] as const;
  const item = connection.get<{ tokens: number; hidden: number }>(SELECT_ITEM, ...place);
  if (!item) return markStale(connection, first);
  staleStandIns(connection, first);
  connection.run(SET_ITEM_TOKENS, tokens, ...place);
  if (item.hidden === 0) head.noteShown(0, tokens - item.tokens);
}
