/**
 * The facade everyone else calls: library, command line, plugin, servers. `LocalEngine` does the work in the thread it was opened in;
 * `threaded-engine.ts` puts it behind a worker with the same face, so that a host's thread never waits for the database.
 */
import { setImmediate } from "node:timers/promises";
import type { AssembledContext } from "../assemble/assemble.ts";
import { Arrivals } from "./ingest.ts";
import type {
  ArrivalEngine,
  BoundaryWish,
  ForkAnswer,
  ForkWish,
  IngestRequest,
  IngestResult,
  Relabelling,
} from "./ingest.ts";
import { Care } from "./repair.ts";
import type { CareEngine, ForgetAnswer, RewriteAnswer, RewriteRequest } from "./repair.ts";
import { Folding } from "./folding.ts";
import type { AssembleRequest, CompactAnswer, CompactRequest, ModelSituation } from "./folding.ts";
import { Recall } from "./recall.ts";
import { Explorer } from "./describe-files.ts";
import { Redaction } from "./redaction.ts";
import type { UnsealedValue, UnsealRequest, VaultEngine } from "./redaction.ts";
import type { EmbedAnswer } from "./vector-fill.ts";
import { Vectors } from "./vectors.ts";
import type { EmbedStatus, VectorEngine } from "./vectors.ts";
import { viewMessage } from "../message/normalize.ts";
import { deriveMessage } from "../ingest/prepare.ts";
import type { Complete, ModelRef } from "../model/complete.ts";
import type { Embed } from "../model/embed.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { MessageView, SessionRef } from "../model/message.ts";
import { drawRandom } from "../model/random.ts";
import type { Settings } from "../model/settings.ts";
import { buildCue } from "../retrieve/cue.ts";
import type { AskAnswer, AskRequest } from "../retrieve/ask.ts";
import type { Described, DescribeRequest } from "../retrieve/describe.ts";
import type { ExpandAnswer, ExpandRequest } from "../retrieve/expand.ts";
import type { GrantOutcome, GrantRequest } from "../retrieve/grants.ts";
import type { GrepAnswer, GrepRequest } from "../retrieve/grep.ts";
import type { Meaning } from "../retrieve/meaning.ts";
import { searchMessages } from "../retrieve/search.ts";
import type { SearchAnswer, SearchQuestion } from "../retrieve/search.ts";
import type {
  ConversationTies,
  DissolveReport,
  DoubtfulSummary,
  ForgetPlan,
  ImportedPart,
  RemovedCounts,
  TransplantReport,
} from "../store/care.ts";
import type {
  Debt,
  Guard,
  SpendGroup,
  SummaryGraph,
  SummaryNode,
  SummaryRow,
  SummaryState,
} from "../store/folding.ts";
import type {
  ArchiveStatus,
  ConversationRow,
  LargeFileRow,
  ListMessages,
  Outline,
  OutlineRequest,
  MessageBody,
  MessageCounts,
  MessageRow,
  Page,
  RelabelSession,
  SessionState,
  StorageShares,
  Store,
  VerifyReport,
} from "../store/store.ts";
import { createSummarizer } from "../summarize/summarizer.ts";

export type ProgressFn = (done: number, total: number) => void;

/** A conversation by its id, or the active one of a session key. */
export type ConversationChoice = Scope &
  ({ readonly conversationId: number } | { readonly sessionKey: string });

/** What a caller may see: everything of one owner, or everything when no owner is named (the operator's view). */
export interface Scope {
  readonly owner?: string;
}

/**
 * @example
 * const engine = await openEngine({ database: "lcm.db" });
 * const session = { key: "agent:main:demo", id: "s1", owner: "main" };
 * await engine.ingest({ session, messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }] });
 * const report = await engine.verify();
 * await engine.close();
 */
export interface Engine extends ArrivalEngine, CareEngine, VectorEngine, VaultEngine {
  listConversations(
    request: Scope & { after?: string | null; limit: number; sessionKey?: string },
  ): Promise<Page<ConversationRow>>;
  readConversation(request: Scope & { conversationId: number }): Promise<ConversationRow | null>;
  listMessages(
    request: Scope &
      Pick<ListMessages, "conversationId" | "limit"> &
      Partial<Pick<ListMessages, "after" | "order" | "direction">>,
  ): Promise<Page<MessageRow>>;
  /** All messages of a conversation in columns: where they stand, how large they are, whose they are. */
  readOutline(request: Scope & Pick<OutlineRequest, "conversationId" | "after" | "limit">): Promise<Outline>;
  /** Ids of messages by their numbers in the conversation, from 0. */
  listMessageIds(request: Scope & { conversationId: number; at: number; limit: number }): Promise<number[]>;
  /** The number of a message in its conversation; null when there is none. */
  locateMessage(
    request: Scope & { messageId: number },
  ): Promise<{ conversationId: number; number: number } | null>;
  /** A message with the bytes that were handed in. */
  readMessage(request: Scope & { messageId: number }): Promise<(MessageBody & { view: MessageView }) | null>;
  readRevisions(request: Scope & { messageId: number }): Promise<MessageRow[]>;
  /** Brings what was stored a moment ago into the full-text index; every search does this first. */
  settleIndex(): Promise<void>;
  search(request: SearchQuestion): Promise<SearchAnswer>;
  /** Search over messages, summaries and files, by words, questions or regular expressions. */
  grep(request: GrepRequest): Promise<GrepAnswer>;
  /** Opens a summary, a large file, a message or a run of messages, verbatim, in pages. */
  describe(request: DescribeRequest): Promise<Described>;
  /** From summaries down to the words they stand for, within a number of tokens. */
  expand(request: ExpandRequest): Promise<ExpandAnswer>;
  /** Cited passages for a question and, where there is a model, an answer written from them. */
  ask(request: AskRequest): Promise<AskAnswer>;
  /** Lets the session of a sub-agent read a part of what its issuer may read. */
  createGrant(request: GrantRequest): Promise<GrantOutcome>;
  revokeGrants(which: { grantId?: string; issuerKey?: string; holderKey?: string }): Promise<number>;
  /** The context for a budget. Never writes, never waits for folding, never calls a model. Null: no such conversation. */
  assemble(
    request: ConversationChoice & AssembleRequest & { prompt?: string },
  ): Promise<AssembledContext | null>;
  /** Folds now. */
  compact(request: ConversationChoice & CompactRequest): Promise<CompactAnswer>;
  /** Pays compaction that is due, prepares summaries ahead, makes stand-ins up to the root. For quiet moments. */
  maintain(
    request: ConversationChoice & ModelSituation & { budgetTokens: number; signal?: AbortSignal },
  ): Promise<{ changed: boolean }>;
  readSummary(request: Scope & { summaryId: string }): Promise<SummaryNode | null>;
  listSummaries(
    request: Scope & { conversationId: number; after?: string | null; limit: number; state?: SummaryState },
  ): Promise<Page<SummaryRow>>;
  /** All summaries of a conversation without their texts, and what was made from what. */
  readGraph(request: Scope & { conversationId: number }): Promise<SummaryGraph>;
  spend(request?: {
    since?: number;
    by?: "day" | "conversation" | "model" | "purpose" | "all";
  }): Promise<SpendGroup[]>;
  readFile(
    request: Scope & { fileId: string },
  ): Promise<(LargeFileRow & { content: Uint8Array | null }) | null>;
  /** The large files of a conversation, newest first, without their contents. */
  listFiles(request: Scope & { conversationId: number }): Promise<LargeFileRow[]>;
  status(request?: Scope & { sessionKey?: string }): Promise<StatusReport>;
  /** What conversations hold, and what of it the context leaves out and why. */
  countMessages(request: Scope & { conversationIds: readonly number[] }): Promise<MessageCounts[]>;
  /** What the bytes of the archive are used for. Reads the whole file. */
  measureStorage(): Promise<StorageShares>;
  /** Writes a consistent copy of the database, while others go on writing. See `maintain/backup.ts` for whole backups. */
  backup(request: { path: string; onProgress?: ProgressFn }): Promise<void>;
  verify(request?: { onProgress?: ProgressFn }): Promise<VerifyReport>;
  reindex(request?: { onProgress?: ProgressFn; signal?: AbortSignal }): Promise<{ messages: number }>;
  close(): Promise<void>;
}

export interface StatusReport extends ArchiveStatus {
  readonly enabled: boolean;
  /** The conversation that was asked for: the active one of a session key. */
  readonly conversation: ConversationRow | null;
  readonly folding: FoldingStatus | null;
  /** Guards that are open: why models are not called right now. */
  readonly guards: readonly Guard[];
}

export interface FoldingStatus {
  readonly summaries: { cover: number; reserve: number; prepared: number; stale: number; extractive: number };
  readonly debt: Debt | null;
  /** Counts changes of the folded prefix. */
  readonly foldRevision: number;
  /** Tokens and messages the context stands for right now. */
  readonly contextTokens: number;
  readonly contextMessages: number;
  /** Share of the prompt that providers served from their cache, as hosts reported it. */
  readonly cache: { requests: number; promptTokens: number; cachedTokens: number } | null;
}

export interface LocalEngineOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly onEvent?: EventSink;
  readonly clock?: Clock;
  /** The way to a model; without one the engine writes its summaries itself. */
  readonly complete?: Complete | null;
  /** The model the host would use; null when the host chooses by itself, absent outside a host. */
  readonly hostModel?: ModelRef | null;
  /** How long a process that folds is believed to be alive without a sign. */
  readonly leaseMs?: number;
  /** The way to a model that makes vectors; without one, search is by words. */
  readonly embed?: Embed | null;
  /** First wait after an embedding call that failed, for tests. */
  readonly embedRetryMs?: number;
}

const SYSTEM_CLOCK: Clock = { now: () => Date.now(), random: drawRandom };
const MAX_PAGE = 10_000;

export class LocalEngine implements Engine {
  #store: Store;
  #settings: Settings;
  #emit: EventSink;
  #clock: Clock;
  #redaction: Redaction;
  #arrivals: Arrivals;
  #folding: Folding;
  #vectors: Vectors;
  #recall: Recall;
  #care: Care;
  #draining = new Map<number, Promise<void>>();
  #background = new Set<Promise<unknown>>();
  #closing = new AbortController();

  constructor(options: LocalEngineOptions) {
    this.#store = options.store;
    this.#settings = options.settings;
    this.#emit = options.onEvent ?? (() => undefined);
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    const parts = { store: this.#store, settings: this.#settings, clock: this.#clock, emit: this.#emit };
    this.#redaction = new Redaction(parts);
    const summarize = createSummarizer({
      ...parts,
      complete: options.complete ?? null,
      hostModel: options.hostModel,
    });
    this.#folding = new Folding({ ...parts, summarize, leaseMs: options.leaseMs });
    this.#vectors = new Vectors({ ...parts, embed: options.embed ?? null, retryMs: options.embedRetryMs });
    this.#recall = new Recall({
      ...parts,
      complete: options.complete ?? null,
      embedQuestion: (request) => this.#vectors.embedQuestion(request),
    });
    this.#arrivals = new Arrivals({
      ...parts,
      redaction: this.#redaction,
      explorer: new Explorer({ ...parts, complete: options.complete ?? null }),
      chooseForFork: (parent, before) => this.#folding.chooseForFork(parent, before),
      noteStored: () => this.#vectors.noteStored(),
    });
    const extract = createSummarizer({ ...parts, complete: null });
    this.#care = new Care({ ...parts, summarize, extract, reindex: () => this.reindex() });
  }

  async ingest(request: IngestRequest): Promise<IngestResult> {
    const result = await this.#arrivals.ingest(request);
    if (result.skipped === null && request.budgetTokens !== undefined)
      await this.#watchThreshold(result.conversationId, request.budgetTokens, request);
    return result;
  }

  /** After a turn: at the threshold, fold now or in the background, as configured. */
  async #watchThreshold(
    conversationId: number,
    budgetTokens: number,
    situation: ModelSituation,
  ): Promise<void> {
    const conversation = await this.#store.readConversation(conversationId);
    if (!conversation) return;
    const request = { budgetTokens, ...pickSituation(situation) };
    if (this.#settings.proactiveThresholdCompactionMode === "inline") {
      await this.#folding.compact(conversation, request);
      return;
    }
    if (await this.#folding.isDue(conversation, request))
      await this.#folding.noteDebt(conversation, budgetTokens);
    this.#drainLater(conversation, request);
  }

  #drainLater(conversation: ConversationRow, request: { budgetTokens: number } & ModelSituation): void {
    const { conversationId } = conversation;
    if (this.#draining.has(conversationId) || this.#closing.signal.aborted) return;
    const work: Promise<void> = setImmediate()
      .then(() => this.#folding.maintain(conversation, { ...request, signal: this.#closing.signal }))
      .then(() => undefined)
      .catch((error: unknown) => {
        if (this.#closing.signal.aborted) return;
        const message = error instanceof Error ? error.message : String(error);
        this.#emit({
          kind: "degraded",
          part: "summariser",
          message: `folding in the background failed: ${message}`,
        });
      })
      .finally(() => {
        this.#draining.delete(conversationId);
        this.#background.delete(work);
      });
    this.#draining.set(conversationId, work);
    this.#background.add(work);
  }

  async readSession(request: { sessionId: string; owner?: string }): Promise<SessionState | null> {
    return this.#store.readSession(request.owner ?? null, request.sessionId);
  }

  async knownEvents(request: {
    sessionId: string;
    owner?: string;
    eventIds: readonly string[];
  }): Promise<string[]> {
    return this.#store.knownEvents(request.owner ?? null, request.sessionId, request.eventIds);
  }

  async fork(request: ForkWish): Promise<ForkAnswer> {
    return this.#arrivals.fork(request);
  }

  async relabel(request: Relabelling): Promise<number> {
    return this.#arrivals.relabel(request);
  }

  async findSessions({ owner, eventId }: { owner: string; eventId: string }): Promise<string[]> {
    return this.#store.findSessions(owner, eventId);
  }

  async relabelSession(request: Omit<RelabelSession, "now">): Promise<boolean> {
    return this.#arrivals.relabelSession(request);
  }

  async setBranch(request: {
    session: SessionRef;
    offBranch: readonly string[];
  }): Promise<{ changed: number }> {
    return this.#arrivals.setBranch(request);
  }

  async showPending(request: { session: SessionRef }): Promise<{ changed: number }> {
    return this.#arrivals.showPending(request);
  }

  async recordBoundary(request: BoundaryWish): ReturnType<ArrivalEngine["recordBoundary"]> {
    return this.#arrivals.recordBoundary(request);
  }

  async listConversations(
    request: Scope & { after?: string | null; limit: number; sessionKey?: string },
  ): Promise<Page<ConversationRow>> {
    return this.#store.listConversations({
      ...request,
      after: request.after ?? null,
      limit: checkLimit(request.limit),
    });
  }

  async readConversation(request: Scope & { conversationId: number }): Promise<ConversationRow | null> {
    return this.#store.readConversation(request.conversationId, request.owner);
  }

  async readOutline(
    request: Scope & Pick<OutlineRequest, "conversationId" | "after" | "limit">,
  ): Promise<Outline> {
    return this.#store.readOutline(request);
  }

  async listMessageIds(
    request: Scope & { conversationId: number; at: number; limit: number },
  ): Promise<number[]> {
    return this.#store.listMessageIds({ ...request, limit: checkLimit(request.limit) });
  }

  async locateMessage({
    messageId,
    owner,
  }: Scope & { messageId: number }): Promise<{ conversationId: number; number: number } | null> {
    return this.#store.locateMessage(messageId, owner);
  }

  async listMessages(
    request: Scope &
      Pick<ListMessages, "conversationId" | "limit"> &
      Partial<Pick<ListMessages, "after" | "order" | "direction">>,
  ): Promise<Page<MessageRow>> {
    return this.#store.listMessages({
      ...request,
      after: request.after ?? null,
      order: request.order ?? "position",
      direction: request.direction ?? "oldest",
      limit: checkLimit(request.limit),
    });
  }

  async readMessage(
    request: Scope & { messageId: number },
  ): Promise<(MessageBody & { view: MessageView }) | null> {
    const body = await this.#store.readMessage(request.messageId, request.owner);
    return body && { ...body, view: viewMessage(body.bytes) };
  }

  async readRevisions(request: Scope & { messageId: number }): Promise<MessageRow[]> {
    return this.#store.readRevisions(request.messageId, request.owner);
  }

  async settleIndex(): Promise<void> {
    await this.#store.settleIndex();
  }

  async search(request: SearchQuestion): Promise<SearchAnswer> {
    await this.settleIndex();
    return searchMessages(this.#store, request);
  }

  async grep(request: GrepRequest): Promise<GrepAnswer> {
    await this.settleIndex();
    return this.#recall.grep(request);
  }

  async describe(request: DescribeRequest): Promise<Described> {
    return this.#recall.describe(request);
  }

  async expand(request: ExpandRequest): Promise<ExpandAnswer> {
    await this.settleIndex();
    return this.#recall.expand(request);
  }

  async ask(request: AskRequest): Promise<AskAnswer> {
    await this.settleIndex();
    return this.#recall.ask(request);
  }

  async embedStatus(): Promise<EmbedStatus> {
    return this.#vectors.embedStatus();
  }

  async embedMessages(request: Parameters<VectorEngine["embedMessages"]>[0] = {}): Promise<EmbedAnswer> {
    return this.#vectors.embedMessages(request);
  }

  async embedQuestion(request: Parameters<VectorEngine["embedQuestion"]>[0]): Promise<Meaning> {
    return this.#vectors.embedQuestion(request);
  }

  async dropVectors(): Promise<number> {
    return this.#vectors.dropVectors();
  }

  async createGrant(request: GrantRequest): Promise<GrantOutcome> {
    return this.#recall.createGrant(request);
  }

  async revokeGrants(which: { grantId?: string; issuerKey?: string; holderKey?: string }): Promise<number> {
    return this.#recall.revokeGrants(which);
  }

  async assemble(
    request: ConversationChoice & AssembleRequest & { prompt?: string },
  ): Promise<AssembledContext | null> {
    const conversation = await this.#findConversation(request);
    if (!conversation) return null;
    const cue =
      request.prompt === undefined || !this.#settings.recallCue
        ? undefined
        : await buildCue(this.#store, conversation, request.prompt, this.#settings);
    return this.#folding.assemble(conversation, { ...request, cue });
  }

  async compact(request: ConversationChoice & CompactRequest): Promise<CompactAnswer> {
    const conversation = await this.#needConversation(request);
    await this.#draining.get(conversation.conversationId);
    return this.#folding.compact(conversation, request);
  }

  async maintain(
    request: ConversationChoice & ModelSituation & { budgetTokens: number; signal?: AbortSignal },
  ): Promise<{ changed: boolean }> {
    const conversation = await this.#needConversation(request);
    // Work that is under way is joined, so that no summary is made, and paid for, twice.
    await this.#draining.get(conversation.conversationId);
    return this.#folding.maintain(conversation, request);
  }

  async readSummary(request: Scope & { summaryId: string }): Promise<SummaryNode | null> {
    return this.#store.readSummary(request.summaryId, request.owner);
  }

  async listSummaries(
    request: Scope & { conversationId: number; after?: string | null; limit: number; state?: SummaryState },
  ): Promise<Page<SummaryRow>> {
    return this.#store.listSummaries({
      ...request,
      after: request.after ?? null,
      limit: checkLimit(request.limit),
    });
  }

  async readGraph(request: Scope & { conversationId: number }): Promise<SummaryGraph> {
    return this.#store.readGraph(request);
  }

  async spend(
    request: { since?: number; by?: "day" | "conversation" | "model" | "purpose" | "all" } = {},
  ): Promise<SpendGroup[]> {
    const by = request.by ?? "day";
    return this.#store.sumSpend({
      since: request.since ?? 0,
      by,
      timeZoneOffsetMs: offsetOf(this.#settings.timezone, this.#clock.now()),
    });
  }

  async #findConversation(choice: ConversationChoice): Promise<ConversationRow | null> {
    if ("conversationId" in choice) return this.#store.readConversation(choice.conversationId, choice.owner);
    return this.#readActive(choice);
  }

  async #needConversation(choice: ConversationChoice): Promise<ConversationRow> {
    const conversation = await this.#findConversation(choice);
    if (conversation) return conversation;
    const name =
      "conversationId" in choice ? `conversation ${choice.conversationId}` : `session ${choice.sessionKey}`;
    throw new EngineError("not_found", `cannot find ${name}`, {
      step: { kind: "list", what: "conversations" },
    });
  }

  async readFile(
    request: Scope & { fileId: string },
  ): Promise<(LargeFileRow & { content: Uint8Array | null }) | null> {
    const file = await this.#store.readFile(request.fileId, request.owner);
    return file && { ...file, content: await this.#store.readFileContent(request.fileId, request.owner) };
  }

  async listFiles({ conversationId, ...scope }: Scope & { conversationId: number }): Promise<LargeFileRow[]> {
    return this.#store.listFiles({ ...scope, conversationIds: [conversationId] }, null);
  }

  async status(request: Scope & { sessionKey?: string } = {}): Promise<StatusReport> {
    await this.settleIndex();
    const archive = await this.#store.status(request.owner);
    const conversation = request.sessionKey === undefined ? null : await this.#readActive(request);
    const now = this.#clock.now();
    return {
      ...archive,
      enabled: this.#settings.enabled,
      conversation,
      folding: conversation && (await this.#readFolding(conversation.conversationId)),
      guards: (await this.#store.readGuards()).filter((guard) => guard.openUntil > now),
    };
  }

  async countMessages(request: Scope & { conversationIds: readonly number[] }): Promise<MessageCounts[]> {
    return this.#store.countMessages(request.conversationIds, request.owner);
  }

  async measureStorage(): Promise<StorageShares> {
    await this.settleIndex();
    return this.#store.measureStorage();
  }

  async #readFolding(conversationId: number): Promise<FoldingStatus> {
    const cover = await this.#store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
    return {
      summaries: await this.#store.countSummaries(conversationId),
      debt: await this.#store.readDebt(conversationId),
      foldRevision: cover?.foldRevision ?? 0,
      contextTokens: cover?.counters.shownTokens ?? 0,
      contextMessages: cover?.counters.shownMessages ?? 0,
      cache: await this.#store.readCacheUsage(conversationId),
    };
  }

  async #readActive(request: Scope & { sessionKey?: string }): Promise<ConversationRow | null> {
    const { items } = await this.#store.listConversations({ ...request, after: null, limit: 1 });
    return items[0] ?? null;
  }

  async backup(request: { path: string; onProgress?: ProgressFn }): Promise<void> {
    await this.#store.backup(request.path, request.onProgress ?? (() => undefined));
  }

  async verify(request: { onProgress?: ProgressFn } = {}): Promise<VerifyReport> {
    await this.settleIndex();
    const onProgress = request.onProgress ?? (() => undefined);
    return this.#store.verify(deriveMessage, onProgress, this.#redaction.prover());
  }

  async reindex(
    request: { onProgress?: ProgressFn; signal?: AbortSignal } = {},
  ): Promise<{ messages: number }> {
    const messages = await this.#store.reindex(
      deriveMessage,
      request.onProgress ?? (() => undefined),
      request.signal,
    );
    this.#arrivals.noteReindexed();
    return { messages };
  }

  async listDebts(): Promise<Debt[]> {
    return this.#store.listDebts();
  }

  async dropSummaries(request: {
    conversationId: number;
    summaryIds?: readonly string[];
  }): Promise<number | null> {
    return this.#store.dropSummaries(request.conversationId, request.summaryIds ?? null);
  }

  async listImports(): Promise<ImportedPart[]> {
    return this.#store.listImports();
  }

  async readTies(request: { conversationIds: readonly number[] }): Promise<ConversationTies[]> {
    return this.#store.readTies(request.conversationIds);
  }

  async removeConversations(request: {
    expected: readonly ConversationTies[];
  }): Promise<RemovedCounts | null> {
    return this.#store.removeConversations(request.expected);
  }

  async closeDebt(request: { conversationId: number }): Promise<boolean> {
    return this.#store.closeDebt(request.conversationId);
  }

  async listPublished(request: {
    after: string;
    limit: number;
    conversationId?: number;
  }): Promise<DoubtfulSummary[]> {
    return this.#store.listPublished(request);
  }

  async listFilePaths(): Promise<string[]> {
    return this.#store.listFilePaths();
  }

  async findUnproven(request: {
    sessionId: string;
    owner?: string;
    events: readonly { eventId: string; bytes: Uint8Array }[];
  }): Promise<string[]> {
    return this.#store.findUnproven(request.owner ?? null, request.sessionId, request.events);
  }

  async readVersions(): Promise<{ schemaVersion: number; storedSchemaVersion: number }> {
    return this.#store.readVersions();
  }

  async rewriteSummary(request: RewriteRequest): Promise<RewriteAnswer> {
    return this.#care.rewrite(request);
  }

  async dissolveSummary(request: { summaryId: string; isDry: boolean }): Promise<DissolveReport | null> {
    return this.#care.dissolve(request);
  }

  async transplant(request: { from: number; to: number; isDry: boolean }): Promise<TransplantReport> {
    return this.#store.transplant({ ...request, now: this.#clock.now() }, deriveMessage);
  }

  async planForget(request: { messageIds: readonly number[] }): Promise<ForgetPlan> {
    return this.#care.planForget(request.messageIds);
  }

  async forget(request: { messageIds: readonly number[]; reason: string }): Promise<ForgetAnswer> {
    await Promise.allSettled(this.#draining.values());
    const answer = await this.#care.forget(request);
    // A thread that tested regular expressions may still hold the texts.
    await this.#recall.dropTexts();
    return answer;
  }

  async unseal(request: UnsealRequest): Promise<UnsealedValue[]> {
    return this.#redaction.unseal(request);
  }

  async rotateVault(request: {
    newKey: string;
  }): Promise<{ messages: number; values: number; keyId: string }> {
    return this.#redaction.rotate(request);
  }

  async isForgettingOpen(): Promise<boolean> {
    return this.#store.isForgettingOpen();
  }

  async finishForgetting(): Promise<boolean> {
    return this.#care.finishForgetting();
  }

  /** Waits for work in the background to stop at its next step; what was published stays. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#background);
    await this.#vectors.close();
    await this.#recall.close();
    await this.#store.close();
  }
}

/** How far a zone is ahead of UTC at an instant. */
function offsetOf(timeZone: string, at: number): number {
  const local = new Date(at).toLocaleString("sv-SE", { timeZone });
  return Date.parse(`${local.replace(" ", "T")}Z`) - Math.floor(at / 1000) * 1000;
}

function pickSituation({ model, contextWindow }: ModelSituation): ModelSituation {
  return { model, contextWindow };
}

function checkLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new EngineError(
      "usage",
      `cannot list ${limit} rows: the limit is a whole number from 1 to ${MAX_PAGE}`,
    );
  }
  return limit;
}
