/**
 * Storing events: the one way a message enters the archive. The id decides identity, the session the place; all long work (parsing,
 * counting, compressing) is done before, for the events that {@link planFindNew} returns.
 */
import { deriveFileId } from "../model/ids.ts";
import type { IngestedMessage } from "../model/message.ts";
import { NO_ORIGIN, ORIGIN_FIELDS, updateOrigin } from "../model/origin.ts";
import type { OriginUpdate } from "../model/origin.ts";
import type {
  AppendBatch,
  AppendEvent,
  AppendResult,
  CacheResult,
  Derive,
  PreparedMessage,
} from "../store/rows.ts";
import { Calibrations } from "./calibrations.ts";
import { Changes } from "./changes.ts";
import { describeItem, readCover } from "./cover.ts";
import type { LateMessage } from "./cover.ts";
import type { Head } from "./head.ts";
import { answerHeads, Heads } from "./heads.ts";
import type { HeadSource } from "./heads.ts";
import { EVENT_KIND, KnownEvents } from "./identity.ts";
import type { Changed } from "./identity.ts";
import { askNoted, noteImported } from "./imports.ts";
import type { Noted } from "./imports.ts";
import { describeAsStored } from "./known-files.ts";
import { addParts, addRedaction, describeFile, recordFile } from "./message-rows.ts";
import type { PayloadPart } from "./message-rows.ts";
import { findPlacement, Placement } from "./placement.ts";
import { Conflict, read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { CoverPoint, SessionPlacements, Version } from "./reads.ts";
import { total } from "./summary.ts";
import type { Row } from "./tables.ts";

/** An event with its prepared message; null for one that looked known. */
export interface ReadyEvent {
  readonly event: AppendEvent;
  readonly prepared: PreparedMessage | null;
}

export type AppendPlanRequest = Omit<AppendBatch, "events"> & {
  readonly events: readonly ReadyEvent[];
  readonly derive: Derive | null;
};

export type AppendPlanResult = Omit<AppendResult, "indexProblem">;

/** Those of the events that are not stored as they are. A wrong guess costs time, never correctness. */
export function* planFindNew(batch: AppendBatch): Asking<AppendEvent[]> {
  const versions = yield* read.versions(batch.session, listIds(batch.events));
  const known = new KnownEvents(versions);
  return batch.events.filter((event) => known.relate(event).kind !== "known");
}

const listIds = (events: readonly AppendEvent[]): string[] => events.map(({ eventId }) => eventId);

export function* planAppend(request: AppendPlanRequest): Plan<AppendPlanResult> {
  const { session, now } = request;
  const events = request.events.map(({ event }) => event);
  const [found, versions, messageIds, calibrations, turns] = yield* together(
    read.placements(session),
    read.versions(session, listIds(events)),
    read.ids("messages", events.length),
    read.calibrations(listModels(request.events)),
    read.turns(request.turn ? [request.turn.advancementKey] : []),
  );
  const answers = yield* askRest(request, found, versions, messageIds);
  const changes = new Changes();
  const heads = new Heads(answers, changes);
  const placement = new Placement(session, now, found, heads);
  const conversationId = placement.readCurrent().conversationId;
  if (turns.length > 0) return changes.done({ conversationId, results: [], duplicateTurn: true });
  if (request.turn) {
    const { advancementKey: advancement_key } = request.turn;
    changes.insert("turns", { advancement_key, session_ref: placement.sessionRef, committed_at: now });
  }
  const batch = new Batch(request, changes, heads, placement, answers);
  const results = request.events.map((ready) => batch.store(ready));
  yield* batch.saveCover();
  const learned = new Calibrations(calibrations);
  for (const [messageId, sample] of batch.samples) learned.note(messageId, sample);
  learned.save(changes, now);
  saveSession(changes, placement.sessionRef, request, found);
  for (const [id, reports] of batch.cacheReports)
    addCacheUsage(changes, id, answers.cacheUsage.get(id), reports, now);
  if (request.origin)
    saveOrigin(changes, conversationId, answers.origin, tellableOrigin(request.origin, results));
  heads.save(now);
  if (request.import) noteImported(changes, request.import, batch.stored, answers.noted);
  return changes.done({ conversationId, results, duplicateTurn: false });
}

const listModels = (events: readonly ReadyEvent[]): string[] => [
  ...new Set(events.flatMap(({ prepared }) => prepared?.calibration?.model ?? [])),
];

/** The archive's answers. Files of this batch are added. */
interface Answers extends HeadSource {
  readonly versions: readonly Version[];
  readonly files: Map<string, Row<"large_files">>;
  readonly cacheUsage: ReadonlyMap<number, Row<"cache_usage">>;
  /** Of the conversation the session is in. */
  readonly origin: OriginRow | undefined;
  /** What the import had stored before this batch. */
  readonly noted: readonly Noted[];
}

const ORIGIN_COLUMNS = ["conversation_id", ...ORIGIN_FIELDS] as const;
type OriginRow = Pick<Row<"conversations">, (typeof ORIGIN_COLUMNS)[number]>;

/** Asks for what is only known to be needed once the place and the versions are known. */
function* askRest(
  { session, events, origin, import: mark }: AppendPlanRequest,
  found: SessionPlacements,
  versions: readonly Version[],
  messageIds: readonly number[],
): Asking<Answers> {
  const known = new Map(versions.map((version) => [version.event_id, version.conversation_id]));
  const fileIds = new Set<string>();
  const reporting = new Set<number>();
  const used = new Set<number>();
  const isNew = found.placements.length === 0;
  for (const { event, prepared } of events) {
    const placed = findPlacement(found.placements, event.position) ?? found.head;
    const id = known.get(event.eventId) ?? placed?.conversation_id;
    if (id === undefined) continue;
    // If it is repeated in this batch, it goes where the first went.
    known.set(event.eventId, id);
    used.add(id);
    if (prepared?.cacheUsage) reporting.add(id);
    for (const { sha256 } of prepared?.payloads ?? []) fileIds.add(deriveFileId(id, sha256));
  }
  const others = [...used].filter((id) => id !== found.head?.conversation_id);
  const from = origin && found.head ? [found.head.conversation_id] : [];
  const isEnough =
    !isNew && mark === undefined && others.length + fileIds.size + reporting.size + from.length === 0;
  // Versions elsewhere were read before their conversation was locked.
  const again = others.length === 0 ? [] : listIds(events.map(({ event }) => event));
  const [rows, locked, files, usage, origins, noted, sessionIds, conversationIds] = isEnough
    ? [[], [], [], [], [], [], [], []]
    : yield* together(
        read.lockHeads(others),
        read.versions(session, again),
        read.files([...fileIds]),
        read.cacheUsage([...reporting]),
        read.rows({
          table: "conversations",
          columns: ORIGIN_COLUMNS,
          where: {},
          order: [],
          column: "conversation_id",
          keys: from,
        }),
        askNoted(mark, [...used]),
        read.ids("sessions", found.session ? 0 : 1),
        read.ids("conversations", isNew ? 1 : 0),
      );
  return {
    versions: others.length === 0 ? versions : locked,
    ...answerHeads([...rows, found.head], {
      sessions: sessionIds,
      conversations: conversationIds,
      messages: messageIds,
    }),
    files: new Map(files.map((file) => [file.file_id, file])),
    cacheUsage: new Map(usage.map((row) => [row.conversation_id, row])),
    origin: (origins as OriginRow[])[0],
    noted: noted as Noted[],
  };
}

interface Pending extends LateMessage {
  tokens: number;
  isRevised?: boolean;
}

/** The events of one append, stored one after the other. */
class Batch {
  readonly samples: [messageId: number, sample: NonNullable<PreparedMessage["calibration"]>][] = [];
  readonly cacheReports = new Map<number, CacheResult[]>();
  /** Rows of messages, by their conversation. */
  readonly stored = new Map<number, number>();
  readonly #request: AppendPlanRequest;
  readonly #placement: Placement;
  readonly #heads: Heads;
  readonly #answers: Answers;
  readonly #known: KnownEvents;
  readonly #changes: Changes;
  /** Items of this batch, by their message. */
  readonly #items = new Map<number, Row<"context_items">>();
  readonly #late = new Map<number, Pending>();
  readonly #revised = new Map<number, CoverPoint & { readonly tokens: number }>();

  constructor(
    request: AppendPlanRequest,
    changes: Changes,
    heads: Heads,
    placement: Placement,
    answers: Answers,
  ) {
    this.#request = request;
    this.#changes = changes;
    this.#heads = heads;
    this.#placement = placement;
    this.#answers = answers;
    this.#known = new KnownEvents(answers.versions);
  }

  store({ event, prepared: early }: ReadyEvent): IngestedMessage {
    const relation = this.#known.relate(event);
    const { eventId } = event;
    if (relation.kind === "known") {
      const { message_id: messageId, seq } = relation.version;
      return { messageId, eventId, seq, outcome: relation.outcome };
    }
    const first = relation.kind === "changed" ? relation.first : null;
    const { head, position } = first
      ? { head: this.#heads.of(first.conversation_id), position: first.position }
      : this.#placement.place(event.position);
    if (early === null) throw new Conflict(`${eventId} was taken for known`);
    const { files } = this.#answers;
    const prepared = describeAsStored(files, head.conversationId, event.arrival, early, this.#request.derive);
    const isLate = head.hasSummaries && position !== null && position <= head.lastPosition;
    const message = this.#insertMessage(head, position ?? head.nextPosition(), event, prepared, first);
    if (relation.kind === "changed") this.#revise(relation, message);
    else if (isLate) this.#late.set(message.messageId, message);
    else this.#addItem(head, message);
    if (prepared.cacheUsage && !first) this.#report(head.conversationId, prepared.cacheUsage);
    if (prepared.calibration) this.samples.push([message.messageId, prepared.calibration]);
    return {
      messageId: message.messageId,
      eventId,
      seq: message.seq,
      outcome: first ? "revision" : "stored",
    };
  }

  /** Late rows and revisions need to know what covers them; an ordinary batch asks nothing more. */
  *saveCover(): Asking<void> {
    const places = [...this.#late.values(), ...this.#revised.values()];
    if (places.length === 0) return;
    const cover = yield* readCover(places, this.#heads);
    for (const message of this.#late.values()) cover.addLate(message);
    for (const { tokens, ...place } of this.#revised.values()) cover.revise(place, tokens);
    yield* cover.save();
  }

  #insertMessage(
    head: Head,
    position: number,
    event: AppendEvent,
    prepared: PreparedMessage,
    first: Version | null,
  ): Pending {
    const { session } = this.#request;
    const { conversationId } = head;
    const { eventId, kind } = event;
    const { createdAt, isDated, hidden, commitment, salt, tokens, arrivalBytes } = prepared;
    const facts = {
      sessionId: session.id,
      eventId,
      position,
      createdAt,
      hidden,
      revisesSeq: first?.seq ?? 0,
    };
    const { seq, chain } = head.takeMessage(facts, commitment);
    const messageId = this.#heads.nextId("messages");
    const changes = this.#changes;
    changes.insert("messages", {
      message_id: messageId,
      conversation_id: conversationId,
      seq,
      position,
      session_ref: this.#placement.sessionRef,
      event_id: eventId,
      revises: first?.message_id ?? null,
      newest: null,
      role: prepared.role,
      tokens,
      created_at: createdAt,
      hidden,
      hidden_now: hidden,
      arrival_bytes: arrivalBytes,
      encoding: prepared.encoding,
      body: prepared.body,
      salt,
      commitment,
      chain,
      forgotten_at: null,
      dated: Number(isDated),
    });
    if (!first)
      changes.insert("event_ids", {
        session_ref: this.#placement.sessionRef,
        event_id: eventId,
        message_id: messageId,
        kind: EVENT_KIND[kind],
      });
    this.stored.set(conversationId, (this.stored.get(conversationId) ?? 0) + 1);
    head.noteMessage({ position, createdAt, isDated, arrivalBytes, sessionId: session.id });
    addParts(changes, messageId, prepared.parts, this.#addPayloads(head, prepared));
    addRedaction(changes, messageId, prepared.redaction);
    this.#known.note(toVersion(messageId, conversationId, seq, position, event, prepared));
    this.#addToIndex(messageId, conversationId, prepared);
    return { conversationId, position, seq, messageId, tokens, hidden };
  }

  /** Has the large payloads of a message written to their files; those with new content get a row and a record. */
  #addPayloads(head: Head, { payloads }: PreparedMessage): PayloadPart[] {
    const { now } = this.#request;
    return payloads.map((payload) => {
      const row = describeFile(head.conversationId, { ...payload, createdAt: now }, payload.content);
      this.#changes.files.push({ blob: row.storage_path, content: payload.content });
      if (!this.#answers.files.has(row.file_id)) {
        this.#answers.files.set(row.file_id, row);
        this.#changes.insert("large_files", row);
        head.takeRecord(this.#changes, "file", recordFile(row), now);
      }
      const { at, length, encoding } = payload;
      return { at, length, fileId: row.file_id, encoding };
    });
  }

  #addToIndex(messageId: number, conversationId: number, prepared: PreparedMessage): void {
    const { arrivalBytes: bytes, readTerms, release } = prepared;
    this.#changes.index.push({ kind: "add-message", messageId, conversationId, bytes, readTerms, release });
  }

  #addItem(head: Head, message: Pending): void {
    const item = describeItem(message);
    this.#changes.insert("context_items", item);
    this.#items.set(message.messageId, item);
    if (message.hidden === 0) head.noteShown(1, message.tokens);
  }

  /** A revision of a message from this batch changes what is not written yet. */
  #revise({ first, versions }: Changed, { messageId, tokens }: Pending): void {
    const { message_id, conversation_id: conversationId, position, seq } = first;
    this.#changes.update("messages", { message_id }, { newest: messageId });
    for (const version of versions)
      this.#changes.delete("message_vectors", { message_id: version.message_id });
    const item = this.#items.get(message_id);
    const late = this.#late.get(message_id);
    if (late) return void Object.assign(late, { tokens, isRevised: true });
    if (!item) return void this.#revised.set(message_id, { conversationId, position, seq, tokens });
    if (item.hidden === 0) this.#heads.of(conversationId).noteShown(0, tokens - item.tokens);
    item.tokens = tokens;
  }

  #report(conversationId: number, report: CacheResult): void {
    const reports = this.cacheReports.get(conversationId);
    if (reports) reports.push(report);
    else this.cacheReports.set(conversationId, [report]);
  }
}

const toVersion = (
  message_id: number,
  conversation_id: number,
  seq: number,
  position: number,
  { eventId }: AppendEvent,
  { salt, commitment, redaction }: PreparedMessage,
): Version => ({
  event_id: eventId,
  message_id,
  conversation_id,
  seq,
  position,
  salt,
  commitment,
  forgotten_at: null,
  key_id: redaction?.keyId ?? null,
  keyed: redaction?.keyed ?? null,
  sealed: redaction?.values.length ?? null,
});

function saveSession(
  changes: Changes,
  session_ref: number,
  { cursor, baseTokens, events }: AppendPlanRequest,
  { session }: SessionPlacements,
): void {
  const set: Partial<Row<"sessions">> = {};
  if (baseTokens !== undefined && baseTokens !== session?.base_tokens) set.base_tokens = baseTokens;
  if (cursor) set.cursor = cursor.value;
  const last = cursor && events.at(-1);
  if (last) set.last_event = last.event.eventId;
  if (Object.keys(set).length > 0) changes.update("sessions", { session_ref }, set);
}

/** A forgotten message that arrives again says nothing about its conversation, and a title may repeat it (`forget.ts`). */
function tellableOrigin(origin: OriginUpdate, results: readonly IngestedMessage[]): OriginUpdate {
  const forgotten = results.filter(({ outcome }) => outcome === "forgotten").length;
  if (forgotten === 0) return origin;
  return forgotten === results.length ? {} : { ...origin, title: undefined, branch: undefined };
}

/** A new conversation has no row yet, and no origin. */
function saveOrigin(
  changes: Changes,
  conversation_id: number,
  known: OriginRow | undefined,
  update: OriginUpdate,
): void {
  const changed = updateOrigin(known?.conversation_id === conversation_id ? known : NO_ORIGIN, update);
  if (Object.keys(changed).length > 0) changes.update("conversations", { conversation_id }, changed);
}

/** The rows of an answer follow each other, but not always in one batch; each further one reports the same request. */
function addCacheUsage(
  changes: Changes,
  conversation_id: number,
  known: Row<"cache_usage"> | undefined,
  all: readonly CacheResult[],
  now: number,
): void {
  const reports = all.filter(
    ({ answer }, i) => answer !== (i === 0 ? known?.last_answer : all[i - 1]?.answer),
  );
  if (reports.length === 0) return;
  const usage = {
    requests: reports.length + (known?.requests ?? 0),
    prompt_tokens: total(reports, (report) => report.promptTokens) + (known?.prompt_tokens ?? 0),
    cached_tokens: total(reports, (report) => report.cachedTokens) + (known?.cached_tokens ?? 0),
    updated_at: now,
    last_answer: all.at(-1)?.answer ?? null,
  };
  if (known) changes.update("cache_usage", { conversation_id }, usage);
  else changes.insert("cache_usage", { conversation_id, ...usage });
}
