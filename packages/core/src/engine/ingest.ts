/**
 * What comes in: messages, and what a host says of its sessions afterwards: copies, labels, branches, boundaries. Everything here is refused
 * for sessions the settings leave out. Joins preparing and redaction with the store; folding is the engine's.
 */
import type { ModelSituation } from "./folding.ts";
import type { Explorations, Explorer } from "./describe-files.ts";
import type { Redaction } from "./redaction.ts";
import { findHeartbeats, isHeartbeatReply } from "../ingest/heartbeats.ts";
import { prepareMessage } from "../ingest/prepare.ts";
import { PreparedBatch } from "../bulk/index.ts";
import type { PackedPrepared } from "../bulk/index.ts";
import { serializeExact } from "../message/json-text.ts";
import { viewMessage } from "../message/normalize.ts";
import { checkArrival, checkSession } from "../model/check-arrival.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import { makeUlid } from "../model/ids.ts";
import { hiddenMask } from "../model/message.ts";
import type { Arrival, ImportMark, IngestedMessage, MessageView, SessionRef } from "../model/message.ts";
import { compileSessionPatterns } from "../model/session-patterns.ts";
import type { Settings } from "../model/settings.ts";
import type { ForkItem } from "../store/forks.ts";
import type {
  AppendEvent,
  BoundaryRequest,
  ConversationRow,
  PreparedMessage,
  RelabelSession,
  SessionState,
  Store,
} from "../store/store.ts";

export interface IngestRequest extends ModelSituation {
  readonly session: SessionRef;
  readonly messages: readonly Arrival[];
  /** Room of the model's context: given, the engine watches the threshold and folds in the background. */
  readonly budgetTokens?: number;
  /** Commits a host's turn: a key seen before means that nothing is stored again. */
  readonly turn?: { readonly advancementKey: string };
  /** The messages with what needs no database done already, by `prepareMessage`, one for each; not used for what is redacted. Handed over, and with it the bytes of the messages, which must lie in `prepared.arrivals`. */
  readonly prepared?: PackedPrepared;
  /** Read from a history: large files are described by their type, without a model. */
  readonly isHistory?: boolean;
  /** Set by imports, so that what they brought in is known. */
  readonly import?: ImportMark | undefined;
  /** How far the source was read; stored in the same transaction. */
  readonly cursor?: { readonly value: string | null };
  /**
   * A name for batches that are handed over without waiting for the one before: those of one name are stored in the order in which they
   * came, and none after one that failed.
   */
  readonly sequence?: string;
}

export interface IngestResult {
  /** 0 when nothing may be stored for this session. */
  readonly conversationId: number;
  readonly results: IngestedMessage[];
  readonly duplicateTurn: boolean;
  /** Why nothing was stored, when that is what the settings ask for. */
  readonly skipped: "disabled" | "ignored" | "stateless" | null;
}

export interface ForkWish {
  readonly session: SessionRef;
  readonly parentSessionId: string;
  readonly eventIds: readonly string[];
}

export interface ForkAnswer {
  readonly kind: "forked" | "known" | "unrelated";
  readonly copied: number;
}

export interface Relabelling {
  readonly session: SessionRef;
  readonly labels: readonly { from: string; to: string }[];
}

export type BoundaryWish = Omit<BoundaryRequest, "position" | "retainDepth" | "at"> & {
  position?: number;
  at?: number;
};

/** What the engine offers to those who hand things in. */
export interface ArrivalEngine {
  /** Stores events, all or none. Known events add nothing; changed ones add a revision. */
  ingest(request: IngestRequest): Promise<IngestResult>;
  readSession(request: { sessionId: string; owner?: string }): Promise<SessionState | null>;
  knownEvents(request: { sessionId: string; owner?: string; eventIds: readonly string[] }): Promise<string[]>;
  /**
   * Begins a session that a host made as a copy of another one. Events that both have stay stored once; what the fork shows of its parent is
   * chosen now, for `bootstrapMaxTokens`. `unrelated`: the archive does not hold the first of the events under the parent.
   */
  fork(request: ForkWish): Promise<ForkAnswer>;
  /** Gives events stored under provisional ids the host's own ids. */
  relabel(request: Relabelling): Promise<number>;
  /** The sessions of an owner that have stored this event. */
  findSessions(request: { owner: string; eventId: string }): Promise<string[]>;
  /** Makes what a stand-in has stored known to the session that it turns out to be; false if that session is stored already. */
  relabelSession(request: Omit<RelabelSession, "now">): Promise<boolean>;
  /** Says which events lie off the active branch; all others of the session are shown. */
  setBranch(request: { session: SessionRef; offBranch: readonly string[] }): Promise<{ changed: number }>;
  /** Shows the events of a session that were stored as `pending`: the history they belong to is there now. */
  showPending(request: { session: SessionRef }): Promise<{ changed: number }>;
  recordBoundary(request: BoundaryWish): Promise<{ kind: "recorded" | "known"; conversationId: number }>;
}

export interface ArrivalParts {
  readonly store: Store;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly emit: EventSink;
  readonly redaction: Redaction;
  readonly explorer: Explorer;
  /** What a copy shows of its parent, up to a position. */
  readonly chooseForFork: (parent: ConversationRow, before: number) => Promise<ForkItem[]>;
  /** Told after each batch. */
  readonly noteStored: () => void;
}

export class Arrivals implements Omit<ArrivalEngine, "readSession" | "knownEvents" | "findSessions"> {
  #parts: ArrivalParts;
  #store: Store;
  #settings: Settings;
  #clock: Clock;
  #isIgnored: (key: string) => boolean;
  #isStateless: (key: string) => boolean;
  #isIndexDegraded = false;
  /** The last batch of each sequence that is under way or has failed. */
  readonly #sequences = new Map<string, Promise<IngestResult>>();

  constructor(parts: ArrivalParts) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#settings = parts.settings;
    this.#clock = parts.clock;
    this.#isIgnored = compileSessionPatterns(parts.settings.ignoreSessionPatterns).matches;
    this.#isStateless = compileSessionPatterns(parts.settings.statelessSessionPatterns).matches;
  }

  async ingest(request: IngestRequest): Promise<IngestResult> {
    const { sequence } = request;
    if (sequence === undefined) return this.#takeIn(request);
    const before = this.#sequences.get(sequence);
    const stored = before === undefined ? this.#takeIn(request) : before.then(() => this.#takeIn(request));
    this.#sequences.set(sequence, stored);
    const result = await stored;
    if (this.#sequences.get(sequence) === stored) this.#sequences.delete(sequence);
    return result;
  }

  async #takeIn(request: IngestRequest): Promise<IngestResult> {
    checkSession(request.session);
    const skipped = this.#whySkipped(request.session.key);
    if (skipped !== null) return { conversationId: 0, results: [], duplicateTurn: false, skipped };
    this.#parts.redaction.check();
    const now = this.#clock.now();
    const bodies = request.messages.map(arrivalBytes);
    const ahead = request.prepared === undefined ? null : new PreparedBatch(request.prepared, bodies);
    const explorations = new Map<string, string>();
    const events = request.messages.map((arrival, index) => {
      const readAhead = ahead !== null && index < ahead.length ? () => ahead.read(index) : null;
      return this.#toEvent(arrival, bodies[index] as Uint8Array, now, readAhead, explorations);
    });
    if (this.#parts.explorer.isOn && ahead === null && request.isHistory !== true)
      for (const [sha256, text] of await this.#explore(request.session, events))
        explorations.set(sha256, text);
    const answer = await this.#store.append({
      session: request.session,
      events,
      now,
      import: request.import,
      turn: request.turn,
      cursor: request.cursor,
      baseTokens: request.budgetTokens,
    });
    this.#report(answer.conversationId, answer.results, answer.indexProblem);
    this.#parts.noteStored();
    if (this.#settings.pruneHeartbeatOk)
      await this.#hideHeartbeats(request.session, events, answer.conversationId);
    ahead?.release();
    const { conversationId, results, duplicateTurn } = answer;
    return { conversationId, results, duplicateTurn, skipped: null };
  }

  /** What is stored already is not described again. */
  async #explore({ owner, id }: SessionRef, events: readonly AppendEvent[]): Promise<Explorations> {
    const large = events.filter(
      ({ arrival }) => arrival.byteLength >= this.#settings.largeFileThresholdTokens,
    );
    if (large.length === 0) return new Map();
    const ids = large.map(({ eventId }) => eventId);
    const known = new Set(await this.#store.knownEvents(owner, id, ids));
    return this.#parts.explorer.explore(large.filter(({ eventId }) => !known.has(eventId)));
  }

  async fork(request: ForkWish): Promise<ForkAnswer> {
    checkSession(request.session);
    const { session, parentSessionId, eventIds } = request;
    if (this.#whySkipped(session.key) !== null) return { kind: "unrelated", copied: 0 };
    const { owner } = session;
    const point = await this.#store.findForkPoint({ owner, parentSessionId, eventIds });
    const parent = point && (await this.#store.readConversation(point.conversationId, owner));
    if (!point || !parent) return { kind: "unrelated", copied: 0 };
    const items = await this.#parts.chooseForFork(parent, point.position + 1);
    const copied = eventIds.slice(0, point.copied);
    const now = this.#clock.now();
    const { kind } = await this.#store.fork({
      session,
      parentSessionId,
      eventIds: copied,
      point,
      items,
      now,
    });
    return { kind, copied: copied.length };
  }

  async relabel(request: Relabelling): Promise<number> {
    if (this.#whySkipped(request.session.key) !== null) return 0;
    return this.#store.relabel(request.session, request.labels, this.#clock.now());
  }

  async relabelSession(request: Omit<RelabelSession, "now">): Promise<boolean> {
    checkSession(request.session);
    if (this.#whySkipped(request.session.key) !== null) return false;
    return this.#store.relabelSession({ ...request, now: this.#clock.now() });
  }

  async setBranch(request: {
    session: SessionRef;
    offBranch: readonly string[];
  }): Promise<{ changed: number }> {
    if (this.#whySkipped(request.session.key) !== null) return { changed: 0 };
    const { session, offBranch } = request;
    return {
      changed: await this.#store.setHidden(session, "branch", offBranch, this.#clock.now(), "exactly"),
    };
  }

  async showPending({ session }: { session: SessionRef }): Promise<{ changed: number }> {
    if (this.#whySkipped(session.key) !== null) return { changed: 0 };
    const now = this.#clock.now();
    return { changed: await this.#store.setHidden(session, "pending", [], now, "exactly") };
  }

  async recordBoundary(
    request: BoundaryWish,
  ): Promise<{ kind: "recorded" | "known"; conversationId: number }> {
    checkSession(request.session);
    if (this.#whySkipped(request.session.key) !== null) return { kind: "known", conversationId: 0 };
    return this.#store.recordBoundary({
      ...request,
      position: request.position ?? null,
      retainDepth: this.#settings.newSessionRetainDepth,
      at: request.at ?? this.#clock.now(),
    });
  }

  #whySkipped(key: string): IngestResult["skipped"] {
    if (!this.#settings.enabled) return "disabled";
    if (this.#isIgnored(key)) return "ignored";
    return this.#settings.skipStatelessSessions && this.#isStateless(key) ? "stateless" : null;
  }

  #toEvent(
    arrival: Arrival,
    body: Uint8Array,
    now: number,
    readAhead: (() => PreparedMessage) | null,
    explorations: Explorations,
  ): AppendEvent {
    checkArrival(arrival);
    const { redacted, ...bytes } = this.#parts.redaction.apply(body);
    const isPrepared = readAhead !== null && redacted === undefined;
    let prepared: PreparedMessage | null = null;
    const prepare = (): PreparedMessage =>
      (prepared ??= prepareMessage(bytes.arrival, {
        hidden: hiddenMask(arrival.hidden ?? []),
        createdAt: Math.floor(arrival.createdAt ?? now),
        largeFileThresholdTokens: this.#settings.largeFileThresholdTokens,
        random: (size) => this.#clock.random(size),
        explorations,
        redacted,
      }));
    return {
      eventId: arrival.eventId ?? makeUlid(now, (size) => this.#clock.random(size)),
      kind: arrival.eventIdKind ?? "entry",
      ...bytes,
      position: arrival.position ?? null,
      isPrepared,
      prepare: isPrepared ? readAhead : prepare,
    };
  }

  #report(conversationId: number, results: readonly IngestedMessage[], indexProblem: string | null): void {
    const stored = results.filter((result) => result.outcome === "stored").length;
    const revisions = results.filter((result) => result.outcome === "revision").length;
    if (stored + revisions > 0)
      this.#parts.emit({ kind: "stored", conversationId, messages: stored, revisions });
    if (indexProblem !== null && !this.#isIndexDegraded) {
      this.#parts.emit({
        kind: "degraded",
        part: "index",
        message: `messages are stored but not indexed: ${indexProblem}`,
      });
    }
    this.#isIndexDegraded = indexProblem !== null;
  }

  /** The index was made anew: whatever was told of it before is over. */
  noteReindexed(): void {
    if (this.#isIndexDegraded) this.#parts.emit({ kind: "recovered", part: "index" });
    this.#isIndexDegraded = false;
  }

  /** Hides heartbeat turns: the prompt, whatever came between, and the reply that says nothing happened. */
  async #hideHeartbeats(
    session: SessionRef,
    events: readonly AppendEvent[],
    conversationId: number,
  ): Promise<void> {
    const views = events.map((event) => ({ eventId: event.eventId, view: viewMessage(event.arrival) }));
    if (!views.some(({ view }) => isHeartbeatReply(view))) return;
    const before = await this.#readBefore(conversationId, new Set(events.map((event) => event.eventId)));
    const hidden = findHeartbeats([...before, ...views]);
    if (hidden.length > 0)
      await this.#store.setHidden(session, "heartbeat", hidden, this.#clock.now(), "add");
  }

  /** The last few messages before a batch, because a turn may arrive in pieces. */
  async #readBefore(
    conversationId: number,
    except: ReadonlySet<string>,
  ): Promise<{ eventId: string; view: MessageView }[]> {
    const recent = await this.#store.listMessages({
      conversationId,
      after: null,
      limit: except.size + 8,
      order: "arrival",
      direction: "newest",
    });
    const rows = recent.items.filter((row) => !except.has(row.eventId)).slice(0, 8);
    const found: { eventId: string; view: MessageView }[] = [];
    for (const row of rows.reverse()) {
      const body = await this.#store.readMessage(row.messageId);
      if (body) found.push({ eventId: row.eventId, view: viewMessage(body.bytes) });
    }
    return found;
  }
}

/** The bytes an arrival stands for. */
export function arrivalBytes(arrival: Arrival): Uint8Array {
  if (arrival.bytes !== undefined) return arrival.bytes;
  if (arrival.message === undefined) {
    throw new EngineError("invalid_input", "cannot store an event: it has neither message nor bytes");
  }
  return Buffer.from(serializeExact(arrival.message));
}
