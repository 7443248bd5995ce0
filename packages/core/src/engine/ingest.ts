/**
 * Stores messages: redacts and prepares them, appends them in one transaction, hides heartbeats, and checks the context threshold if a
 * budget is given.
 */
import { findHeartbeats, isHeartbeatReply } from "../ingest/heartbeats.ts";
import { prepareMessage } from "../ingest/prepare.ts";
import { PreparedBatch } from "../bulk/index.ts";
import type { PackedPrepared } from "../bulk/index.ts";
import { serializeExact } from "../message/json-text.ts";
import { viewMessage } from "../message/normalize.ts";
import { checkArrival, checkSession } from "../message/check-arrival.ts";
import { EngineError } from "../model/errors.ts";
import { makeUlid } from "../model/ids.ts";
import { hiddenMask } from "../model/message.ts";
import type { Arrival, ImportMark, IngestedMessage, MessageView, SessionRef } from "../model/message.ts";
import type { OriginUpdate } from "../model/origin.ts";
import type { AppendEvent, PreparedMessage } from "../store/store.ts";
import { whySkipped } from "./capture-policy.ts";
import type { SkipReason } from "./capture-policy.ts";
import { describeLargeFiles, describesFiles } from "./describe-files.ts";
import type { Explorations } from "./describe-files.ts";
import type { ModelSituation } from "./fold-policy.ts";
import { watchThreshold } from "./folding.ts";
import type { EngineState } from "./state.ts";
import { embedInBackground } from "./vectors.ts";

export interface IngestRequest extends ModelSituation {
  readonly session: SessionRef;
  readonly messages: readonly Arrival[];
  /** Room of the model's context. If given, the engine checks the threshold and folds in the background. */
  readonly budgetTokens?: number;
  /** Commits a host's turn: if the key is already known, nothing is stored again. */
  readonly turn?: { readonly advancementKey: string };
  /**
   * The messages already prepared by `prepareMessage` as far as no database is needed, one entry each; not used for redacted messages.
   * Transferred, together with the bytes of the messages, which must be in `prepared.arrivals`.
   */
  readonly prepared?: PackedPrepared;
  /** Read from a history: large files are described by their type, without a model. */
  readonly isHistory?: boolean;
  /** Set by imports, to record what they stored. */
  readonly import?: ImportMark | undefined;
  /** Where the conversation comes from, as far as this batch says: for agent and project the first value is kept, for the rest the last. */
  readonly origin?: OriginUpdate | undefined;
  /** How far the source has been read; stored in the same transaction. */
  readonly cursor?: { readonly value: string | null };
  /**
   * A name for batches that are sent without waiting for the previous one: batches with the same name are stored in order, and none after
   * one that failed.
   */
  readonly sequence?: string;
}

export interface IngestResult {
  /** 0 when nothing may be stored for this session. */
  readonly conversationId: number;
  readonly results: IngestedMessage[];
  readonly duplicateTurn: boolean;
  /** Why the settings kept it from being stored. */
  readonly skipped: SkipReason | null;
}

export async function ingest(engine: EngineState, request: IngestRequest): Promise<IngestResult> {
  const result = await storeInSequence(engine, request);
  if (result.skipped === null && request.budgetTokens !== undefined)
    await watchThreshold(engine, result.conversationId, { ...request, budgetTokens: request.budgetTokens });
  return result;
}

async function storeInSequence(engine: EngineState, request: IngestRequest): Promise<IngestResult> {
  const { sequence } = request;
  if (sequence === undefined) return storeBatch(engine, request);
  const { sequences } = engine.ingest;
  const before = sequences.get(sequence);
  const stored =
    before === undefined ? storeBatch(engine, request) : before.then(() => storeBatch(engine, request));
  sequences.set(sequence, stored);
  const result = await stored;
  if (sequences.get(sequence) === stored) sequences.delete(sequence);
  return result;
}

async function storeBatch(engine: EngineState, request: IngestRequest): Promise<IngestResult> {
  checkSession(request.session);
  const skipped = whySkipped(engine, request.session.key);
  if (skipped !== null) return { conversationId: 0, results: [], duplicateTurn: false, skipped };
  engine.redaction.check();
  const now = engine.clock.now();
  const bodies = request.messages.map(arrivalBytes);
  const ahead = request.prepared === undefined ? null : new PreparedBatch(request.prepared, bodies);
  const explorations = new Map<string, string>();
  const events = request.messages.map((arrival, index) => {
    const readAhead = ahead !== null && index < ahead.length ? () => ahead.read(index) : null;
    return toEvent(engine, arrival, bodies[index] as Uint8Array, now, readAhead, explorations);
  });
  if (describesFiles(engine) && ahead === null && request.isHistory !== true)
    for (const [sha256, text] of await describeNewFiles(engine, request.session, events))
      explorations.set(sha256, text);
  const answer = await engine.store.append({
    session: request.session,
    events,
    now,
    import: request.import,
    origin: request.origin && engine.redaction.applyToOrigin(request.origin),
    turn: request.turn,
    cursor: request.cursor,
    baseTokens: request.budgetTokens,
  });
  reportStored(engine, answer.conversationId, answer.results, answer.indexProblem);
  embedInBackground(engine);
  if (engine.settings.pruneHeartbeatOk)
    await hideHeartbeats(engine, request.session, events, answer.conversationId);
  ahead?.release();
  const { conversationId, results, duplicateTurn } = answer;
  return { conversationId, results, duplicateTurn, skipped: null };
}

/** Files that are already stored are not described again. */
async function describeNewFiles(
  engine: EngineState,
  { owner, id }: SessionRef,
  events: readonly AppendEvent[],
): Promise<Explorations> {
  const large = events.filter(
    ({ arrival }) => arrival.byteLength >= engine.settings.largeFileThresholdTokens,
  );
  if (large.length === 0) return new Map();
  const ids = large.map(({ eventId }) => eventId);
  const known = new Set(await engine.store.knownEvents(owner, id, ids));
  return describeLargeFiles(
    engine,
    large.filter(({ eventId }) => !known.has(eventId)),
  );
}

function toEvent(
  engine: EngineState,
  arrival: Arrival,
  body: Uint8Array,
  now: number,
  readAhead: (() => PreparedMessage) | null,
  explorations: Explorations,
): AppendEvent {
  checkArrival(arrival);
  const { redacted, ...bytes } = engine.redaction.apply(body);
  const isPrepared = readAhead !== null && redacted === undefined;
  let prepared: PreparedMessage | null = null;
  const prepare = (): PreparedMessage =>
    (prepared ??= prepareMessage(bytes.arrival, {
      hidden: hiddenMask(arrival.hidden ?? []),
      createdAt: Math.floor(arrival.createdAt ?? now),
      isUndated: arrival.isUndated,
      largeFileThresholdTokens: engine.settings.largeFileThresholdTokens,
      random: (size) => engine.clock.random(size),
      explorations,
      redacted,
    }));
  return {
    eventId: arrival.eventId ?? makeUlid(now, (size) => engine.clock.random(size)),
    kind: arrival.eventIdKind ?? "entry",
    ...bytes,
    position: arrival.position ?? null,
    isPrepared,
    prepare: isPrepared ? readAhead : prepare,
  };
}

function reportStored(
  engine: EngineState,
  conversationId: number,
  results: readonly IngestedMessage[],
  indexProblem: string | null,
): void {
  const stored = results.filter((result) => result.outcome === "stored").length;
  const revisions = results.filter((result) => result.outcome === "revision").length;
  if (stored + revisions > 0) engine.emit({ kind: "stored", conversationId, messages: stored, revisions });
  if (indexProblem !== null && !engine.ingest.isIndexDegraded) {
    engine.emit({
      kind: "degraded",
      part: "index",
      message: `messages are stored but not indexed: ${indexProblem}`,
    });
  }
  engine.ingest.isIndexDegraded = indexProblem !== null;
}

/** The index was rebuilt: earlier reports about it no longer apply. */
export function noteReindexed(engine: EngineState): void {
  if (engine.ingest.isIndexDegraded) engine.emit({ kind: "recovered", part: "index" });
  engine.ingest.isIndexDegraded = false;
}

/** Hides heartbeat turns: the prompt, everything in between, and the reply that says nothing happened. */
async function hideHeartbeats(
  engine: EngineState,
  session: SessionRef,
  events: readonly AppendEvent[],
  conversationId: number,
): Promise<void> {
  const views = events.map((event) => ({ eventId: event.eventId, view: viewMessage(event.arrival) }));
  if (!views.some(({ view }) => isHeartbeatReply(view))) return;
  const before = await readBefore(engine, conversationId, new Set(events.map((event) => event.eventId)));
  const hidden = findHeartbeats([...before, ...views]);
  if (hidden.length > 0)
    await engine.store.setHidden(session, "heartbeat", hidden, engine.clock.now(), "add");
}

/** The last few messages before a batch, because a turn may arrive in pieces. */
async function readBefore(
  engine: EngineState,
  conversationId: number,
  except: ReadonlySet<string>,
): Promise<{ eventId: string; view: MessageView }[]> {
  const recent = await engine.store.listMessages({
    conversationId,
    after: null,
    limit: except.size + 8,
    order: "arrival",
    direction: "newest",
  });
  const rows = recent.items.filter((row) => !except.has(row.eventId)).slice(0, 8);
  const found: { eventId: string; view: MessageView }[] = [];
  for (const row of rows.reverse()) {
    const body = await engine.store.readMessage(row.messageId);
    if (body) found.push({ eventId: row.eventId, view: viewMessage(body.bytes) });
  }
  return found;
}

/** The bytes of an arrival. */
export function arrivalBytes(arrival: Arrival): Uint8Array {
  if (arrival.bytes !== undefined) return arrival.bytes;
  if (arrival.message === undefined) {
    throw new EngineError("invalid_input", "cannot store an event: it has neither message nor bytes");
  }
  return Buffer.from(serializeExact(arrival.message));
}
