/**
 * Copying a conversation, with its messages, parts, large files and summaries, in front of another one. Everything copied is new there:
 * own ids, own links in the chain, own files; text and proof of each message are those of the original.
 *
 * Invariant: one transaction. What was forgotten has nothing to copy; a summary of which nothing is left is not copied either.
 */
import { addRedaction, EngineError, must } from "@lossless/core/adapter";
import type { Head } from "@lossless/core/adapter";
import type { Derive, Row as TableRow, TransplantReport } from "@lossless/core/ports";
import { hash, randomBytes } from "node:crypto";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";
import { recordEvent } from "./event-ids.ts";
import { writeFile } from "./file-rows.ts";
import { toSummary } from "./graph.ts";
import { findSession, openHeads } from "./placement.ts";
import { readParts, restoreBytes, toCuts } from "./read.ts";
import { nextId } from "./next-id.ts";
import { readRedaction } from "./redactions.ts";
import { writeSummary } from "./summary-rows.ts";
import { toMovedFile } from "./transfer.ts";

const CONVERSATION = "SELECT conversation_id, owner, session_id FROM conversations WHERE conversation_id = ?";
const MESSAGES = "SELECT * FROM messages WHERE conversation_id = ? AND forgotten_at IS NULL ORDER BY seq";
const FIRSTS = `
  SELECT message_id FROM messages WHERE conversation_id = ? AND forgotten_at IS NULL AND revises IS NULL ORDER BY position, seq`;
const FIRST_POSITION = "SELECT min(position) AS position FROM messages WHERE conversation_id = ?";
const INSERT_SESSION = `INSERT INTO sessions (session_ref, owner, session_id) VALUES (${nextId("sessions")}, ?, ?)`;
const INSERT_PLACEMENT = `
  INSERT INTO placements (session_ref, start_position, conversation_id, base_position) VALUES (?, 0, ?, 0)`;
const INSERT_MESSAGE = `
  INSERT INTO messages (message_id, conversation_id, seq, position, session_ref, event_id, revises, role, tokens, created_at, hidden, hidden_now,
                        arrival_bytes, encoding, body, salt, commitment, chain)
  VALUES (${nextId("messages")}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SET_NEWEST = "UPDATE messages SET newest = ? WHERE message_id = ?";
const SET_TOKENS = "UPDATE messages SET tokens = ? WHERE message_id = ?";
/** An item stands for the newest version of its message. */
const SHOWN_TOKENS = `
  SELECT n.tokens FROM messages m JOIN messages n ON n.message_id = coalesce(m.newest, m.message_id) WHERE m.message_id = ?`;
const FILE = "SELECT * FROM large_files WHERE file_id = ?";
const SUMMARIES =
  "SELECT * FROM summaries WHERE conversation_id = ? AND state = 'cover' ORDER BY depth, start_pos, summary_id";
const LINKS = `
  SELECT ordinal, message_id, NULL AS source_id FROM summary_messages WHERE summary_id = ?1
  UNION ALL SELECT ordinal, NULL, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY 1`;
const ITEMS = "SELECT * FROM context_items WHERE conversation_id = ? ORDER BY start_pos, seq";
const INSERT_ITEM = `
  INSERT INTO context_items (conversation_id, start_pos, seq, end_pos, message_id, summary_id, tokens, messages, depth, hidden)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Something copied and where it stands now. */
interface Placed {
  readonly startPosition: number;
  readonly startSeq: number;
  readonly endPosition: number;
  readonly endSeq: number;
  readonly isShown: boolean;
}

interface PlacedMessage extends Placed {
  readonly messageId: number;
}

interface PlacedSummary extends Placed {
  readonly summaryId: string;
  readonly depth: number;
  readonly messages: number;
  readonly descendants: number;
}

export interface TransplantRequest {
  readonly from: number;
  readonly to: number;
  readonly isDry: boolean;
  readonly now: number;
}

export function transplant(
  context: StoreContext,
  request: TransplantRequest,
  derive: Derive,
): TransplantReport {
  const { connection } = context;
  const work = (): TransplantReport => {
    const job = plan(context, request);
    const report = {
      from: request.from,
      to: request.to,
      messages: job.messages.length,
      summaries: connection.all(SUMMARIES, request.from).length,
    };
    if (request.isDry) return { ...report, summaryIds: [] };
    const copy = new Copy(context, job, request, derive);
    return { ...report, summaryIds: copy.run() };
  };
  return request.isDry ? connection.read(work) : connection.write(work);
}

interface Job {
  readonly owner: string;
  readonly sessionId: string;
  /** The session that wrote last in the target; copying is not writing. */
  readonly targetSessionId: string;
  readonly messages: readonly TableRow<"messages">[];
  /** Positions in the target, by the id of the first message in the source. */
  readonly positions: ReadonlyMap<number, number>;
}

function plan(context: StoreContext, { from, to }: TransplantRequest): Job {
  const { connection } = context;
  const [source, target] = [from, to].map((id) =>
    connection.get<Pick<TableRow<"conversations">, "owner" | "session_id">>(CONVERSATION, id),
  );
  const refuse = (why: string, hint?: string): EngineError =>
    new EngineError(
      "usage",
      `cannot transplant conversation ${from} to ${to}: ${why}`,
      hint === undefined ? {} : { hint },
    );
  if (!source || !target)
    throw new EngineError("not_found", `cannot find conversation ${source ? to : from}`);
  if (from === to) throw refuse("they are the same");
  if (source.owner !== target.owner) throw refuse("they belong to different owners");
  const owner = target.owner;
  const sessionId = `transplant:${from}:${to}`;
  if (findSession(connection, owner, sessionId) !== null) throw refuse("that was done before");
  const messages = connection.all<TableRow<"messages">>(MESSAGES, from);
  const known = hashAll(context, connection.all<TableRow<"messages">>(MESSAGES, to));
  const repeated = messages.find((row) => known.has(hashMessage(context, row)));
  if (repeated)
    throw refuse(
      `msg_${repeated.message_id} is already there`,
      "forget the copies first, or choose another conversation",
    );
  return {
    owner,
    sessionId,
    targetSessionId: target.session_id,
    messages,
    positions: findPlaces(connection, from, to, refuse),
  };
}

/** Evenly before everything in the target. */
function findPlaces(
  connection: Connection,
  from: number,
  to: number,
  refuse: (why: string) => EngineError,
): Map<number, number> {
  const firsts = connection.all<{ message_id: number }>(FIRSTS, from);
  const end =
    connection.get<{ position: number | null }>(FIRST_POSITION, to)?.position ?? Number.MAX_SAFE_INTEGER;
  const step = Math.min(2 ** 10, Math.floor(end / (firsts.length + 1)));
  if (step < 1) throw refuse("there is no room before its first message");
  const start = Math.min(end, 2 ** 40) - step * firsts.length;
  return new Map(firsts.map(({ message_id: id }, index) => [id, start + index * step]));
}

const hashAll = (context: StoreContext, rows: readonly TableRow<"messages">[]): Set<string> =>
  new Set(rows.map((row) => hashMessage(context, row)));

function hashMessage({ connection, files }: StoreContext, row: TableRow<"messages">): string {
  const parts = readParts(connection, row.message_id);
  return hash(
    "sha256",
    restoreBytes(row, parts, (path) => files.read(path)),
  );
}

class Copy {
  #context: StoreContext;
  #connection: Connection;
  #job: Job;
  #request: TransplantRequest;
  #derive: Derive;
  #head: Head;
  #sessionRef: number;
  #messages = new Map<number, PlacedMessage>();
  #summaries = new Map<string, PlacedSummary>();
  /** What copies are called, known before they are made: what comes before may be made later. */
  #ids = new Map<string, string>();

  constructor(context: StoreContext, job: Job, request: TransplantRequest, derive: Derive) {
    this.#context = context;
    this.#connection = context.connection;
    this.#job = job;
    this.#request = request;
    this.#derive = derive;
    this.#head = openHeads(this.#connection).of(request.to);
    this.#sessionRef = this.#connection.run(INSERT_SESSION, job.owner, job.sessionId);
    this.#connection.run(INSERT_PLACEMENT, this.#sessionRef, request.to);
  }

  run(): string[] {
    const { from, now } = this.#request;
    for (const row of this.#job.messages) this.#copyMessage(row);
    const summaries = this.#connection.all<TableRow<"summaries">>(SUMMARIES, from);
    for (const row of summaries) this.#ids.set(row.summary_id, `sum_${randomBytes(8).toString("hex")}`);
    for (const row of summaries) this.#copySummary(row);
    for (const row of this.#connection.all<TableRow<"context_items">>(ITEMS, from)) this.#copyItem(row);
    this.#head.takeRecord(this.#connection, "transplant", { from, messages: this.#job.messages.length }, now);
    this.#head.noteSummary(true, 0);
    this.#head.save(this.#connection, now);
    return [...this.#summaries.values()].map((summary) => summary.summaryId);
  }

  #copyMessage(row: TableRow<"messages">): void {
    const sourceId = row.message_id;
    const first = row.revises === null ? null : must(this.#messages.get(row.revises), "the first version");
    const position = first?.startPosition ?? must(this.#job.positions.get(sourceId), "a place");
    // What hides a message now is all that is known of it here; a revision is hidden through its first version.
    const hidden = first === null ? row.hidden_now : row.hidden;
    const createdAt = row.created_at;
    const eventId = `msg_${first === null ? sourceId : row.revises}`;
    const facts = {
      sessionId: this.#job.sessionId,
      eventId,
      position,
      createdAt,
      hidden,
      revisesSeq: first?.startSeq ?? 0,
    };
    const commitment = row.commitment;
    const { seq, chain } = this.#head.takeMessage(facts, commitment);
    const arrivalBytes = row.arrival_bytes;
    const messageId = this.#connection.run(
      INSERT_MESSAGE,
      this.#request.to,
      seq,
      position,
      this.#sessionRef,
      eventId,
      first?.messageId ?? null,
      row.role,
      row.tokens,
      createdAt,
      hidden,
      hidden,
      arrivalBytes,
      row.encoding,
      row.body,
      row.salt,
      commitment,
      chain,
    );
    this.#head.noteMessage({ position, createdAt, arrivalBytes, sessionId: this.#job.targetSessionId });
    if (first === null) recordEvent(this.#connection, this.#sessionRef, eventId, messageId, "entry");
    else this.#connection.run(SET_NEWEST, messageId, first.messageId);
    const ends = { startPosition: position, startSeq: seq, endPosition: position, endSeq: seq };
    this.#messages.set(sourceId, { ...ends, messageId, isShown: hidden === 0 });
    addRedaction(this.#connection, messageId, readRedaction(this.#connection, sourceId));
    this.#copyParts(row, messageId);
  }

  #copyParts(row: TableRow<"messages">, messageId: number): void {
    const parts = readParts(this.#connection, row.message_id);
    for (const part of parts) {
      const fileId = part.file_id === null ? null : this.#copyFile(part.file_id);
      this.#connection.insert("message_parts", {
        message_id: messageId,
        ordinal: part.ordinal,
        type: part.type,
        at: part.at,
        length: part.length,
        tool_call_id: part.tool_call_id,
        tool_name: part.tool_name,
        file_id: fileId,
        encoding: part.encoding,
      });
    }
    const bytes = restoreBytes(row, parts, (path) => this.#context.files.read(path));
    // A file that was there before is told of in the words of its own row, here too.
    const cuts = toCuts(readParts(this.#connection, messageId));
    const { tokens, readTerms } = this.#derive(bytes, cuts);
    if (cuts.length > 0) this.#connection.run(SET_TOKENS, tokens, messageId);
    const document = { messageId, conversationId: this.#request.to, bytes: bytes.byteLength, readTerms };
    this.#context.index.add([document]);
  }

  #copyFile(sourceId: string): string {
    const { to, now } = this.#request;
    const row = must(this.#connection.get<TableRow<"large_files">>(FILE, sourceId), `file ${sourceId}`);
    const content = must(this.#context.files.read(row.storage_path), `the content of ${sourceId}`);
    const { fileId, record } = writeFile(this.#context, to, { ...toMovedFile(row), createdAt: now }, content);
    if (record !== null) this.#head.takeRecord(this.#connection, "file", record, now);
    return fileId;
  }

  #copySummary(row: TableRow<"summaries">): void {
    const { to, now } = this.#request;
    const sources = this.#connection
      .all<{ message_id: number | null; source_id: string | null }>(LINKS, row.summary_id)
      .map((link) =>
        link.source_id === null
          ? this.#messages.get(link.message_id ?? 0)
          : this.#summaries.get(link.source_id),
      )
      .filter((source) => source !== undefined);
    const [first, last] = [sources[0], sources.at(-1)];
    if (!first || !last) return;
    const below = sources.filter((source) => "summaryId" in source);
    const depth = below.reduce((deepest, source) => Math.max(deepest, source.depth + 1), 0);
    const messages = sources.reduce(
      (sum, source) => sum + ("summaryId" in source ? source.messages : source.isShown ? 1 : 0),
      0,
    );
    const descendants = below.reduce((sum, source) => sum + source.descendants + 1, 0);
    const summaryId = must(this.#ids.get(row.summary_id), "an id for the copy");
    const facts = {
      ...toSummary(row),
      summaryId,
      conversationId: to,
      kind: below.length > 0 ? ("condensed" as const) : ("leaf" as const),
      depth,
      state: "cover" as const,
      startPosition: first.startPosition,
      startSeq: first.startSeq,
      endPosition: last.endPosition,
      endSeq: last.endSeq,
      messages,
      descendantCount: descendants,
      isRoot: false,
      madeAtSeq: this.#head.seq,
      createdAt: now,
      // It takes its place here now; when it did so where it was copied from is counted in another conversation's numbers.
      publishedSeq: this.#head.seq,
      previousId: row.previous_id === null ? null : (this.#ids.get(row.previous_id) ?? null),
    };
    const links = sources.map((source) => ("summaryId" in source ? source.summaryId : source.messageId));
    writeSummary(this.#context, facts, links);
    this.#head.noteSummary(false);
    const { startPosition, startSeq } = first;
    const { endPosition, endSeq } = last;
    const isShown = messages > 0;
    this.#summaries.set(row.summary_id, {
      summaryId,
      depth,
      messages,
      descendants,
      startPosition,
      startSeq,
      endPosition,
      endSeq,
      isShown,
    });
  }

  #copyItem(row: TableRow<"context_items">): void {
    const summary = row.summary_id === null ? undefined : this.#summaries.get(row.summary_id);
    const message = row.message_id === null ? undefined : this.#messages.get(row.message_id);
    const place = summary ?? message;
    if (!place) return;
    const messages = summary?.messages ?? 1;
    const shown = message && this.#connection.get<{ tokens: number }>(SHOWN_TOKENS, message.messageId);
    const tokens = shown?.tokens ?? row.tokens;
    const hidden = row.hidden;
    this.#connection.run(
      INSERT_ITEM,
      this.#request.to,
      place.startPosition,
      place.startSeq,
      place.endPosition,
      message?.messageId ?? null,
      summary?.summaryId ?? null,
      tokens,
      messages,
      row.depth,
      hidden,
    );
    if (hidden === 0) this.#head.noteShown(messages, tokens);
  }
}
