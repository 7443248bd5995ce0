/**
 * Stores whole conversations from another archive. Rows go through the same head as arriving rows, so that seq, chain and counters are made
 * and proven here; only times, places, salts and commitments are copied.
 */
import { EngineError, must } from "../model/errors.ts";
import { deriveFileId } from "../model/ids.ts";
import { HIDDEN, hiddenMask } from "../model/message.ts";
import type { HiddenReason } from "../model/message.ts";
import { encodeBody } from "../store/body.ts";
import type { EncodedBody } from "../store/body.ts";
import type { Derive, DerivedMessage } from "../store/rows.ts";
import { spliceRanges } from "../store/splice.ts";
import type { MovedCut, MovedFile, MovedLedger, MovedMessage, MovedRow } from "../store/transfer.ts";
import { Changes } from "./changes.ts";
import type { IndexWork } from "./changes.ts";
import { describeItem, readCover } from "./cover.ts";
import type { CoverChanges } from "./cover.ts";
import type { Head } from "./head.ts";
import { answerHeads, Heads } from "./heads.ts";
import { EVENT_KIND } from "./identity.ts";
import { addParts, addRedaction, describeFile, recordFile } from "./message-rows.ts";
import type { PayloadPart } from "./message-rows.ts";
import { commitStored } from "./redaction.ts";
import { describeSession } from "./placement.ts";
import { flush, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { MessageAt, CoverPoint } from "./reads.ts";
import type { Row } from "./tables.ts";

type Files = ReadonlyMap<string, { readonly file: MovedFile; readonly content: Uint8Array }>;

/** Content that is cut out of a message. */
interface Payload {
  readonly cut: MovedCut;
  readonly file: MovedFile;
  readonly content: Uint8Array;
}

/** A message with all work done that needs no lock. */
interface ReadyMessage {
  readonly kind: "message";
  readonly message: MovedMessage;
  readonly derived: DerivedMessage;
  readonly arrivalBytes: number;
  readonly stored: EncodedBody;
  readonly payloads: readonly Payload[];
}

/** The contents of ledger records; each kind has some of it. */
interface RecordBody {
  readonly sessionId?: string;
  readonly eventId?: string;
  readonly seq?: number;
  readonly seqs?: readonly number[];
  readonly reason?: string;
  readonly to?: string;
  readonly sha256?: string;
  readonly files?: readonly (string | { readonly sha256: string })[];
  readonly position?: number;
  readonly retainDepth?: number;
  readonly shownBefore?: number;
}

interface ReadyRecord {
  readonly kind: "ledger";
  readonly record: MovedLedger;
  readonly body: RecordBody;
  /** The file of a record, if it came with it: the message that brought it may be forgotten. */
  readonly content: { readonly file: MovedFile; readonly content: Uint8Array } | null;
}

export type ReadyRow = ReadyMessage | ReadyRecord;

const NOTHING = new Uint8Array();

export function prepareMoved(row: MovedRow, files: Files, derive: Derive): ReadyRow {
  if (row.kind === "ledger") {
    const body = JSON.parse(row.body) as RecordBody;
    const content = row.change === "file" ? (files.get(body.sha256 ?? "") ?? null) : null;
    return { kind: "ledger", record: row, body, content };
  }
  const message = row;
  const stored = encodeBody(message.body);
  if (message.forgottenAt !== null) {
    const { role, tokens } = message;
    const derived = {
      role,
      isDated: false,
      tokens,
      parts: [],
      readTerms: () => ({ words: NOTHING, idents: NOTHING }),
    };
    return { kind: "message", message, derived, arrivalBytes: 0, stored, payloads: [] };
  }
  const payloads = message.cuts.map((cut) => ({
    cut,
    ...must(files.get(cut.sha256), `large file ${cut.sha256}`),
  }));
  const bytes = spliceRanges(
    message.body,
    payloads.map(({ cut, content }) => ({ ...cut, content })),
  );
  if (!commitStored(message.salt, bytes, message.redaction).equals(message.commitment))
    throw new EngineError(
      "invalid_input",
      `cannot store message ${message.eventId}: it is not what its commitment says`,
      { hint: "the archive was changed or damaged; make it again" },
    );
  const cuts = payloads.map(({ cut, file }) => ({ at: cut.at, length: cut.length, ...file }));
  const derived = derive(bytes, cuts);
  return { kind: "message", message, derived, arrivalBytes: bytes.byteLength, stored, payloads };
}

export function* planMoveRows(conversationId: number, rows: readonly ReadyRow[], now: number): Plan<null> {
  const changes = new Changes();
  const [headRow] = yield* read.lockHeads([conversationId]);
  const { owner } = must(headRow, `conversation ${conversationId}`);
  const heads = new Heads(answerHeads([headRow ?? null]), changes);
  const head = heads.of(conversationId);
  // If something is folded, each row may change what covers the next: it is flushed before that is read.
  const size = head.hasSummaries ? 1 : rows.length;
  let document: IndexWork | null = null;
  for (let at = 0; at < rows.length; at += size) {
    if (at > 0) yield* flush(changes);
    const some = rows.slice(at, at + size);
    const answers = yield* askFor(conversationId, owner, some);
    const arriving = head.hasSummaries
      ? some.flatMap((row) => (row.kind === "message" ? row.message : []))
      : [];
    const points = [...answers.messages.values(), ...arriving];
    const cover = yield* readCover(
      points.map(({ position, seq }) => ({ conversationId, position, seq })),
      heads,
    );
    const batch = new MovedBatch(changes, head, owner, answers, cover);
    for (const row of some) batch.add(row);
    yield* cover.save();
    document = batch.lastDocument ?? document;
  }
  // The others are read back when they are indexed: until a long import is committed they would all be kept in memory.
  if (document) changes.index.push(document);
  heads.save(now);
  return changes.done(null);
}

/** The archive's answers about everything that some rows refer to. Rows of the batch are added. */
interface Answers {
  readonly sessions: Map<string, number>;
  readonly files: Map<string, Row<"large_files">>;
  /** By their seq. */
  readonly messages: Map<number, MessageAt>;
  readonly messageIds: Iterator<number>;
  readonly sessionIds: Iterator<number>;
}

function* askFor(conversationId: number, owner: string, rows: readonly ReadyRow[]): Asking<Answers> {
  const names = new Set<string>();
  const seqs = new Set<number>();
  const fileIds = new Set<string>();
  for (const row of rows) {
    const { sessionId } = row.kind === "message" ? row.message : row.body;
    if (sessionId !== undefined) names.add(sessionId);
    for (const seq of listSeqs(row)) seqs.add(seq);
    for (const sha256 of listContents(row)) fileIds.add(deriveFileId(conversationId, sha256));
  }
  const [sessions, files, messages, messageIds, sessionIds] = yield* together(
    read.sessions(owner, [...names]),
    read.files([...fileIds]),
    read.messagesAt(conversationId, [...seqs]),
    read.ids("messages", rows.length),
    read.ids("sessions", names.size),
  );
  return {
    sessions: new Map(sessions.map((row) => [row.session_id, row.session_ref])),
    files: new Map(files.map((row) => [row.file_id, row])),
    messages: new Map(messages.map((row) => [row.seq, { ...row }])),
    messageIds: messageIds.values(),
    sessionIds: sessionIds.values(),
  };
}

/** Messages that a row refers to. */
function listSeqs(row: ReadyRow): readonly number[] {
  if (row.kind === "message") return row.message.revises === null ? [] : [row.message.revises];
  if (row.record.change === "relabel") return [must(row.body.seq, "the message of a name")];
  return row.record.change === "hide" || row.record.change === "show" || row.record.change === "forget"
    ? must(row.body.seqs, "the messages of a record")
    : [];
}

const listContents = (row: ReadyRow): readonly string[] =>
  row.kind === "message"
    ? row.payloads.map(({ cut }) => cut.sha256)
    : row.record.change === "file" && row.body.sha256 !== undefined
      ? [row.body.sha256]
      : [];

/** Rows inserted by the same plan, which may still change. */
interface Draft {
  readonly message: Row<"messages">;
  readonly item: Row<"context_items"> | null;
}

/** Some rows of a conversation, stored one after the other. */
class MovedBatch {
  readonly #changes: Changes;
  readonly #head: Head;
  readonly #owner: string;
  readonly #answers: Answers;
  readonly #cover: CoverChanges;
  readonly #drafts = new Map<number, Draft>();
  lastDocument: IndexWork | null = null;

  constructor(changes: Changes, head: Head, owner: string, answers: Answers, cover: CoverChanges) {
    this.#changes = changes;
    this.#head = head;
    this.#owner = owner;
    this.#answers = answers;
    this.#cover = cover;
  }

  add(row: ReadyRow): void {
    if (row.kind === "message") this.#addMessage(row);
    else this.#addRecord(row);
  }

  #addMessage({ message, derived, arrivalBytes, stored, payloads }: ReadyMessage): void {
    const { seq, sessionId, eventId, position, createdAt, isDated = true, commitment } = message;
    const { conversationId } = this.#head;
    const first = message.revises === null ? null : this.#messageAt(message.revises);
    const hidden = hiddenMask(message.hidden);
    const facts = { sessionId, eventId, position, createdAt, hidden, revisesSeq: message.revises ?? 0 };
    const link = this.#head.takeMessage(facts, commitment);
    checkSeq(link.seq, seq);
    const row: Row<"messages"> = {
      message_id: must(this.#answers.messageIds.next().value as number | undefined, "a number of messages"),
      conversation_id: conversationId,
      seq,
      position,
      session_ref: this.#sessionRefOf(sessionId),
      event_id: eventId,
      revises: first?.message_id ?? null,
      newest: null,
      role: derived.role,
      tokens: derived.tokens,
      created_at: createdAt,
      hidden,
      hidden_now: hidden,
      arrival_bytes: arrivalBytes,
      encoding: stored.encoding,
      body: stored.body,
      salt: message.salt,
      commitment,
      chain: link.chain,
      forgotten_at: message.forgottenAt,
      dated: Number(isDated),
    };
    this.#changes.insert("messages", row);
    const isLate = this.#head.hasSummaries && position <= this.#head.lastPosition;
    this.#head.noteMessage({ position, createdAt, isDated, arrivalBytes, sessionId });
    const parts = payloads.map((payload) => this.#addPayload(payload));
    addParts(this.#changes, row.message_id, derived.parts, parts);
    addRedaction(this.#changes, row.message_id, message.redaction);
    this.#drafts.set(seq, { message: row, item: first ? null : this.#addItem(row, isLate) });
    this.#answers.messages.set(seq, { ...row });
    const document = {
      messageId: row.message_id,
      conversationId,
      bytes: arrivalBytes,
      readTerms: derived.readTerms,
    };
    if (message.forgottenAt === null) this.lastDocument = { kind: "add-message", ...document };
    if (first) this.#revise(first, row);
    else this.#addName(row.session_ref, eventId, row.message_id, message.eventKind);
  }

  /** The item of a message that is itself in the cover; inside a folded span there is none. */
  #addItem(
    { message_id: messageId, position, seq, tokens, hidden }: Row<"messages">,
    isLate: boolean,
  ): Row<"context_items"> | null {
    const { conversationId } = this.#head;
    const message = { conversationId, position, seq, messageId, tokens, hidden };
    if (isLate) {
      this.#cover.addLate(message);
      return null;
    }
    const item = describeItem(message);
    this.#changes.insert("context_items", item);
    if (hidden === 0) this.#head.noteShown(1, tokens);
    return item;
  }

  #addPayload({ cut, file, content }: Payload): PayloadPart {
    const { file_id: fileId } = this.#addFile(file, content);
    return { at: cut.at, length: cut.length, fileId, encoding: cut.encoding };
  }

  /** Its record is in the ledger that is moved with it. */
  #addFile(file: MovedFile, content: Uint8Array): Row<"large_files"> {
    const row = describeFile(this.#head.conversationId, file, content);
    const known = this.#answers.files.get(row.file_id);
    this.#changes.files.push({ blob: row.storage_path, content, isNew: !known });
    if (known) return known;
    this.#changes.insert("large_files", row);
    this.#answers.files.set(row.file_id, row);
    return row;
  }

  #revise(first: MessageAt, { message_id: newest, tokens }: Row<"messages">): void {
    const draft = this.#drafts.get(first.seq);
    this.#dropVector(first);
    this.#changes.update("messages", { message_id: first.message_id }, { newest });
    if (!draft) this.#cover.revise(this.#pointOf(first), tokens);
    else if (draft.item) {
      if (draft.item.hidden === 0) this.#head.noteShown(0, tokens - draft.item.tokens);
      draft.item.tokens = tokens;
    }
    first.newest = newest;
  }

  #dropVector({ message_id, newest }: MessageAt): void {
    this.#changes.delete("message_vectors", { message_id: newest ?? message_id });
  }

  #pointOf({ position, seq }: MessageAt): CoverPoint {
    return { conversationId: this.#head.conversationId, position, seq };
  }

  #addRecord({ record, body, content }: ReadyRecord): void {
    const { change, at } = record;
    if (content) this.#addFile(content.file, content.content);
    checkSeq(this.#head.takeRecord(this.#changes, change, this.#nameFiles(change, body), at), record.seq);
    if (change === "relabel") this.#addAlias(body);
    else if (change === "boundary") this.#addBoundary(body, at);
    else if (change === "forget") this.#hide(body, (before) => before | HIDDEN.forgotten);
    else if (change === "hide" || change === "show") {
      const bit = HIDDEN[body.reason as HiddenReason];
      this.#hide(body, (before) => (change === "hide" ? before | bit : before & ~bit));
    }
  }

  /** The body of a record with the local ids of files. */
  #nameFiles(change: string, body: RecordBody): object {
    const nameFile = (sha256: string): string => deriveFileId(this.#head.conversationId, sha256);
    if (change === "file" && body.sha256 !== undefined) {
      const fileId = nameFile(body.sha256);
      const row = this.#answers.files.get(fileId);
      // For one that a later record forgets, nothing may have come.
      return row ? recordFile(row) : { fileId, facts: null };
    }
    if (change !== "forget") return body;
    const files = must(body.files, "the files of a record").map((file) =>
      typeof file === "string" ? file : nameFile(file.sha256),
    );
    return { ...body, files };
  }

  /** The first message of an event is hidden; its revisions are never shown by themselves. */
  #hide({ seqs }: RecordBody, change: (before: number) => number): void {
    for (const seq of seqs ?? []) {
      const message = this.#messageAt(seq);
      if (message.revises === null) this.#changeHidden(message, change(message.hidden_now));
    }
  }

  #changeHidden(message: MessageAt, after: number): void {
    const before = message.hidden_now;
    const draft = this.#drafts.get(message.seq);
    message.hidden_now = after;
    if (after !== 0) this.#dropVector(message);
    if (!draft) {
      this.#changes.update("messages", { message_id: message.message_id }, { hidden_now: after });
      this.#cover.setHidden(this.#pointOf(message), before, after);
      return;
    }
    draft.message.hidden_now = after;
    if (draft.item) {
      const shown = (after === 0 ? 1 : 0) - (before === 0 ? 1 : 0);
      this.#head.noteShown(shown, shown * draft.item.tokens);
      draft.item.hidden = after;
    }
  }

  #addAlias({ sessionId, seq, to }: RecordBody): void {
    const { message_id } = this.#messageAt(must(seq, "the message of a name"));
    this.#addName(this.#sessionRefOf(sessionId), must(to, "a name"), message_id, "alias");
  }

  #addName(session_ref: number, event_id: string, message_id: number, kind: keyof typeof EVENT_KIND): void {
    this.#changes.insert("event_ids", { session_ref, event_id, message_id, kind: EVENT_KIND[kind] });
  }

  #addBoundary(body: RecordBody, at: number): void {
    this.#changes.insert("boundaries", {
      conversation_id: this.#head.conversationId,
      session_ref: this.#sessionRefOf(body.sessionId),
      event_id: must(body.eventId, "the id of a boundary"),
      position: must(body.position, "the place of a boundary"),
      reason: must(body.reason, "the reason of a boundary"),
      retain_depth: must(body.retainDepth, "the depth of a boundary"),
      shown_before: must(body.shownBefore, "the count of a boundary"),
      at,
      undone_at: null,
    });
  }

  #messageAt(seq: number): MessageAt {
    return must(this.#answers.messages.get(seq), `the message at seq ${seq}`);
  }

  #sessionRefOf(name: string | undefined): number {
    const sessionId = must(name, "the session of a row");
    const { sessions, sessionIds } = this.#answers;
    const known = sessions.get(sessionId);
    if (known !== undefined) return known;
    const ref = must(sessionIds.next().value as number | undefined, "a number of sessions");
    this.#changes.insert("sessions", describeSession(ref, this.#owner, sessionId));
    sessions.set(sessionId, ref);
    return ref;
  }
}

function checkSeq(given: number, wanted: number): void {
  if (given === wanted) return;
  throw new EngineError("invalid_input", `cannot store the row ${wanted}: the archive has a gap before it`);
}
