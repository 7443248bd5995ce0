/**
 * Copies a conversation, with its messages, parts, large files and summaries, in front of another one. Every copy is new there: own ids,
 * own links in the chain, own files; text and proof of each message are those of the original.
 *
 * Invariant: forgotten messages have nothing to copy; a summary of which nothing is left is not copied either.
 */
import { hash } from "node:crypto";
import { extname } from "node:path";
import { EngineError, must } from "../model/errors.ts";
import { formatMessageId } from "../model/ids.ts";
import { POSITION_STEP } from "../model/message.ts";
import type { TransplantResult, TransplantRequest } from "../store/repair.ts";
import type { Derive } from "../store/rows.ts";
import { Changes } from "./changes.ts";
import type { IndexWork } from "./changes.ts";
import { nameTransplant } from "./copied.ts";
import { hideSummary } from "./cover.ts";
import { Head } from "./head.ts";
import { EVENT_KIND } from "./identity.ts";
import { addRedaction, describeFile, recordFile } from "./message-rows.ts";
import { Pages, readRows } from "./pages.ts";
import { describeSession } from "./placement.ts";
import { flush, flushIfLong, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { SourceLink } from "./reads.ts";
import { restoreWhole, toCutPayloads } from "./restore.ts";
import { addSummary, hashSummary, total } from "./summary.ts";
import { tables } from "./tables.ts";
import type { Row } from "./tables.ts";
import { readWhole } from "./verify-messages.ts";
import type { WholeMessage } from "./verify-messages.ts";

/** What to copy, and where. */
interface Job {
  readonly owner: string;
  readonly sessionId: string;
  /** The session that last wrote to the target; copying is not writing. */
  readonly targetSessionId: string;
  /** Positions in the target, by the id of the first message in the source. */
  readonly positions: ReadonlyMap<number, number>;
  readonly report: TransplantResult;
}

/** What would be copied. */
export function* planTransplantation(request: TransplantRequest): Asking<TransplantResult> {
  return (yield* look(request)).report;
}

function* look({ from, to }: TransplantRequest): Asking<Job> {
  const found = yield* readRows("conversations", ["conversation_id", "owner", "session_id"], {
    column: "conversation_id",
    keys: [from, to],
  });
  const [source, target] = [from, to].map((id) => found.find((row) => row.conversation_id === id));
  const refuse = (why: string, hint?: string): EngineError =>
    new EngineError(
      "usage",
      `cannot transplant conversation ${from} to ${to}: ${why}`,
      hint === undefined ? {} : { hint },
    );
  if (!source || !target)
    throw new EngineError("not_found", `cannot find conversation ${source ? to : from}`);
  if (from === to) throw refuse("they are the same");
  const { owner, session_id: targetSessionId } = target;
  if (source.owner !== owner) throw refuse("they belong to different owners");
  const sessionId = nameTransplant(from, to);
  const [done, messages, summaries] = yield* together(
    read.sessions(owner, [sessionId]),
    read.count("messages", { conversation_id: from, forgotten_at: null }),
    read.count("summaries", { conversation_id: from, state: "cover" }),
  );
  if (done.length > 0) throw refuse("it was copied there before");
  const known = new Set((yield* hashMessages(to)).keys());
  for (const [sum, id] of yield* hashMessages(from))
    if (known.has(sum))
      throw refuse(
        `${formatMessageId(id)} is already there`,
        "forget the copies first, or choose another conversation",
      );
  const positions = yield* findPositions(from, to, refuse);
  const report = { from, to, messages, summaries, summaryIds: [] };
  return { owner, sessionId, targetSessionId, positions, report };
}

/** The messages of a conversation by a hash of their arrival. */
function* hashMessages(conversationId: number): Asking<Map<string, number>> {
  const hashes = new Map<string, number>();
  for (let after = 0, page; (page = yield* read.arrivals(conversationId, after)).length > 0;) {
    for (const whole of yield* readWhole(page.filter(isKept)))
      hashes.set(hash("sha256", yield* restoreWhole(whole)), whole.message.message_id);
    after = page.at(-1)?.seq ?? after;
  }
  return hashes;
}

const isKept = ({ forgotten_at }: { readonly forgotten_at: number | null }): boolean => forgotten_at === null;

/** Evenly spaced before everything in the target. */
function* findPositions(
  from: number,
  to: number,
  refuse: (why: string) => EngineError,
): Asking<Map<number, number>> {
  const order = ["position", "seq"] as const;
  const pages = new Pages("messages", {
    columns: ["message_id", ...order],
    order,
    where: { conversation_id: from, revises: null, forgotten_at: null },
  });
  const ids: number[] = [];
  for (let page; (page = yield* pages.next()).length > 0;) for (const row of page) ids.push(row.message_id);
  const there = new Pages("messages", { columns: order, order, where: { conversation_id: to }, limit: 1 });
  const [first] = yield* there.next();
  const end = first?.position ?? (yield* findFirstPlace(to));
  const step = Math.min(2 ** 10, Math.floor(end / (ids.length + 1)));
  if (step < 1) throw refuse("there is no room before its first message");
  const start = Math.min(end, 2 ** 40) - step * ids.length;
  return new Map(ids.map((id, index) => [id, start + index * step]));
}

/** The first position that a conversation without messages can get one at: what its sessions store later must come after the copies. */
function* findFirstPlace(conversationId: number): Asking<number> {
  const columns = ["conversation_id", "start_position", "base_position"] as const;
  const by = { column: "conversation_id", keys: [conversationId] } as const;
  const places = yield* readRows("placements", columns, by);
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    ...places.map((place) => place.base_position + Math.max(place.start_position, POSITION_STEP)),
  );
}

export function* planTransplant(request: TransplantRequest, derive: Derive): Plan<TransplantResult> {
  const changes = new Changes();
  // What is copied must not change meanwhile: a message that is forgotten would remain as a copy.
  const heads = yield* read.lockHeads([request.from, request.to]);
  const job = yield* look(request);
  const [session_ref = 0] = yield* read.ids("sessions", 1);
  const { from, to, now } = request;
  changes.insert("sessions", describeSession(session_ref, job.owner, job.sessionId));
  changes.insert("placements", { session_ref, start_position: 0, conversation_id: to, base_position: 0 });
  const headRow = heads.find((row) => row.conversation_id === to);
  const head = new Head(must(headRow, `conversation ${to}`));
  const copy = new Copy(changes, head, job, request, session_ref, derive);
  yield* copy.copyMessages();
  const summaryIds = yield* copy.copySummaries();
  yield* copy.copyItems();
  head.takeRecord(changes, "transplant", { from, messages: job.report.messages }, now);
  head.noteSummary(true, 0);
  head.save(changes, now);
  return changes.done({ ...job.report, summaryIds });
}

/** A copy and its new place. */
interface Placed {
  readonly startPosition: number;
  readonly startSeq: number;
  readonly endPosition: number;
  readonly endSeq: number;
  /** How many shown messages it represents. */
  readonly messages: number;
}

interface PlacedMessage extends Placed {
  readonly messageId: number;
  /** Of the newest version. */
  tokens: number;
}

interface PlacedSummary extends Placed {
  readonly summaryId: string;
  readonly depth: number;
  readonly descendants: number;
}

const SUMMARY_COLUMNS = Object.keys(tables.summaries.columns) as (keyof Row<"summaries">)[];
const ITEM_COLUMNS = Object.keys(tables.context_items.columns) as (keyof Row<"context_items">)[];

class Copy {
  readonly #changes: Changes;
  readonly #head: Head;
  readonly #job: Job;
  readonly #request: TransplantRequest;
  readonly #sessionRef: number;
  readonly #derive: Derive;
  readonly #messages = new Map<number, PlacedMessage>();
  readonly #summaries = new Map<string, PlacedSummary>();
  /** Files of the target, by their id. */
  readonly #files = new Map<string, Row<"large_files">>();

  constructor(
    changes: Changes,
    head: Head,
    job: Job,
    request: TransplantRequest,
    sessionRef: number,
    derive: Derive,
  ) {
    this.#changes = changes;
    this.#head = head;
    this.#job = job;
    this.#request = request;
    this.#sessionRef = sessionRef;
    this.#derive = derive;
  }

  /** One page at a time, flushed before the next is read: bodies are large. */
  *copyMessages(): Asking<void> {
    let document: IndexWork | null = null;
    for (let after = 0, page; (page = yield* read.arrivals(this.#request.from, after)).length > 0;) {
      yield* flush(this.#changes);
      const kept = page.filter(isKept);
      const ids = (yield* read.ids("messages", kept.length)).values();
      for (const whole of yield* readWhole(kept)) {
        document = yield* this.#copyMessage(whole, must(ids.next().value, "a number of messages"));
        if (this.#changes.files.length > 0) yield* flush(this.#changes);
      }
      after = page.at(-1)?.seq ?? after;
    }
    // The others are read back when they are indexed.
    if (document) this.#changes.index.push(document);
  }

  *#copyMessage(whole: WholeMessage, message_id: number): Asking<IndexWork> {
    const { message, redaction } = whole;
    const { commitment, created_at: createdAt, arrival_bytes: arrivalBytes } = message;
    const first =
      message.revises === null ? null : must(this.#messages.get(message.revises), "the first version");
    const position = first?.startPosition ?? must(this.#job.positions.get(message.message_id), "a place");
    // Only its current reasons for being hidden are known here; a revision is hidden through its first version.
    const hidden = first === null ? message.hidden_now : message.hidden;
    const event_id = formatMessageId(message.revises ?? message.message_id);
    const { sessionId, targetSessionId } = this.#job;
    const revisesSeq = first?.startSeq ?? 0;
    const facts = { sessionId, eventId: event_id, position, createdAt, hidden, revisesSeq };
    const { seq, chain } = this.#head.takeMessage(facts, commitment);
    const isDated = message.dated === 1;
    this.#head.noteMessage({ position, createdAt, isDated, arrivalBytes, sessionId: targetSessionId });
    const bytes = yield* restoreWhole(whole);
    const cuts = yield* this.#copyParts(whole, message_id);
    const derived = this.#derive(bytes, cuts);
    // A file that already existed is described by its own row, here too.
    const tokens = cuts.length > 0 ? derived.tokens : message.tokens;
    this.#changes.insert("messages", {
      message_id,
      conversation_id: this.#request.to,
      seq,
      position,
      session_ref: this.#sessionRef,
      event_id,
      revises: first?.messageId ?? null,
      newest: null,
      role: message.role,
      tokens,
      created_at: createdAt,
      hidden,
      hidden_now: hidden,
      arrival_bytes: arrivalBytes,
      encoding: message.encoding,
      body: message.body,
      salt: message.salt,
      commitment,
      chain,
      forgotten_at: null,
      dated: message.dated,
    });
    addRedaction(this.#changes, message_id, redaction);
    if (first) {
      this.#changes.update("messages", { message_id: first.messageId }, { newest: message_id });
      first.tokens = tokens;
    } else {
      const name = { session_ref: this.#sessionRef, event_id, message_id, kind: EVENT_KIND.entry };
      this.#changes.insert("event_ids", name);
    }
    const ends = { startPosition: position, startSeq: seq, endPosition: position, endSeq: seq };
    const messages = hidden === 0 ? 1 : 0;
    this.#messages.set(message.message_id, { ...ends, messageId: message_id, messages, tokens });
    const { readTerms } = derived;
    return {
      kind: "add-message",
      messageId: message_id,
      conversationId: this.#request.to,
      bytes: arrivalBytes,
      readTerms,
    };
  }

  *#copyParts(
    { parts, payloads }: WholeMessage,
    message_id: number,
  ): Asking<ReturnType<typeof toCutPayloads>> {
    const files = new Map<string, Row<"large_files">>();
    for (const source of yield* read.files(payloads.flatMap(({ file_id }) => file_id ?? [])))
      files.set(source.file_id, yield* this.#copyFile(source));
    for (const part of parts) {
      const file = part.file_id === null ? null : must(files.get(part.file_id), `file ${part.file_id}`);
      this.#changes.insert("message_parts", { ...part, message_id, file_id: file?.file_id ?? null });
    }
    return toCutPayloads(payloads.map((part) => ({ ...part, file: files.get(part.file_id ?? "") ?? null })));
  }

  *#copyFile(source: Row<"large_files">): Asking<Row<"large_files">> {
    const { to, now } = this.#request;
    const content = must(yield* read.content(source.storage_path), `the content of ${source.file_id}`);
    const file = {
      sha256: source.sha256,
      fileName: source.file_name,
      mimeType: source.mime_type,
      lineCount: source.line_count,
      extension: extname(source.storage_path).slice(1),
      explorationSummary: source.exploration_summary,
      createdAt: now,
    };
    const row = describeFile(to, file, content);
    const [stored] = yield* read.files([row.file_id]);
    const known = this.#files.get(row.file_id) ?? stored;
    if (known) return known;
    this.#files.set(row.file_id, row);
    this.#changes.files.push({ blob: row.storage_path, content });
    this.#changes.insert("large_files", row);
    this.#head.takeRecord(this.#changes, "file", recordFile(row), now);
    return row;
  }

  /** The id of a copy, known before it is made: its previous context may be made later. */
  #nameCopy(summaryId: string): string {
    const { from, to, now } = this.#request;
    return `sum_${hash("sha256", JSON.stringify([from, to, now, summaryId])).slice(0, 16)}`;
  }

  *copySummaries(): Asking<string[]> {
    const where = { conversation_id: this.#request.from, state: "cover" } as const;
    const order = ["depth", "start_pos", "summary_id"] as const;
    const all = new Set<string>();
    const names = new Pages("summaries", { columns: order, order, where });
    for (let page; (page = yield* names.next()).length > 0;) for (const row of page) all.add(row.summary_id);
    const pages = new Pages("summaries", { columns: SUMMARY_COLUMNS, order, where });
    for (let page; (page = yield* pages.next()).length > 0;) {
      const links = Map.groupBy(
        yield* read.sources(page.map((row) => row.summary_id)),
        (link) => link.summary_id,
      );
      for (const row of page) this.#copySummary(row, links.get(row.summary_id) ?? [], all);
      yield* flushIfLong(this.#changes);
    }
    return [...this.#summaries.values()].map((summary) => summary.summaryId);
  }

  #copySummary(row: Row<"summaries">, links: readonly SourceLink[], all: ReadonlySet<string>): void {
    const sources = links
      .map((link) => this.#messages.get(link.message_id ?? 0) ?? this.#summaries.get(link.source_id ?? ""))
      .filter((source) => source !== undefined);
    const [first, last] = [sources[0], sources.at(-1)];
    if (!first || !last) return;
    const below = sources.filter((source) => "summaryId" in source);
    const messages = total(sources, (source) => source.messages);
    const depth = below.reduce((deepest, source) => Math.max(deepest, source.depth + 1), 0);
    const descendants = total(below, (source) => source.descendants + 1);
    const summaryId = this.#nameCopy(row.summary_id);
    const { startPosition, startSeq } = first;
    const { endPosition, endSeq } = last;
    const copy: Row<"summaries"> = {
      ...row,
      summary_id: summaryId,
      conversation_id: this.#request.to,
      kind: below.length > 0 ? "condensed" : "leaf",
      depth,
      start_pos: startPosition,
      start_seq: startSeq,
      end_pos: endPosition,
      end_seq: endSeq,
      messages,
      descendant_count: descendants,
      is_root: 0,
      made_at_seq: this.#head.seq,
      created_at: this.#request.now,
      // It is published here now; in the original it was published at a seq of another conversation.
      published_seq: this.#head.seq,
      previous_id:
        row.previous_id !== null && all.has(row.previous_id) ? this.#nameCopy(row.previous_id) : null,
    };
    const named = sources.map((source) => ("summaryId" in source ? source.summaryId : source.messageId));
    addSummary(this.#changes, { ...copy, hash: hashSummary(copy) }, named);
    this.#head.noteSummary(false);
    const ends = { startPosition, startSeq, endPosition, endSeq };
    this.#summaries.set(row.summary_id, { ...ends, summaryId, depth, messages, descendants });
  }

  *copyItems(): Asking<void> {
    const order = ["start_pos", "seq"] as const;
    const where = { conversation_id: this.#request.from };
    const pages = new Pages("context_items", { columns: ITEM_COLUMNS, order, where });
    for (let page; (page = yield* pages.next()).length > 0;) {
      for (const row of page) this.#copyItem(row);
      yield* flushIfLong(this.#changes);
    }
  }

  #copyItem(row: Row<"context_items">): void {
    const summary = this.#summaries.get(row.summary_id ?? "");
    const message = this.#messages.get(row.message_id ?? 0);
    const span = summary ?? message;
    if (!span) return;
    const messages = summary?.messages ?? 1;
    const tokens = message?.tokens ?? row.tokens;
    const hidden = row.hidden || (summary ? hideSummary(messages) : 0);
    this.#changes.insert("context_items", {
      ...row,
      conversation_id: this.#request.to,
      start_pos: span.startPosition,
      seq: span.startSeq,
      end_pos: span.endPosition,
      message_id: message?.messageId ?? null,
      summary_id: summary?.summaryId ?? null,
      tokens,
      messages,
      // A summary that lost finer sources is itself finer.
      depth: summary?.depth ?? row.depth,
      hidden,
    });
    if (hidden === 0) this.#head.noteShown(messages, tokens);
  }
}
