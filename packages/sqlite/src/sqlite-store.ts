/**
 * The SQLite adapter of the store port. Work is synchronous inside, one transaction per method; it is meant to run on a worker
 * thread, or in a command-line process, never on a host's main thread.
 */
import {
  BlobFolder,
  BodyCache,
  planAddDebt,
  planBoundary,
  planChargeGrant,
  planClaimDebt,
  planClaimUpkeep,
  planCloseDebt,
  planDissolution,
  planDissolve,
  planDropSummaries,
  planFindGrant,
  planFork,
  planForkPoint,
  planInsertGrant,
  planLabel,
  planForkItems,
  planListBlobs,
  planListDebts,
  planListImports,
  planFamily,
  planListPublished,
  planListSealed,
  planReadCacheUsage,
  planReadCalibration,
  planReadGuards,
  planMoveCover,
  planMoveRows,
  planMoveSessions,
  planMoveSummaries,
  planNoteImported,
  planOpenMoved,
  planPublishStored,
  planReadDebt,
  planReadTies,
  planRecordUnsealing,
  planRelabel,
  planRelabelSession,
  planReleaseUpkeep,
  planRenewDebt,
  planReplaceSummary,
  planRetireBeside,
  planRevokeGrants,
  planSaveGuard,
  planSetHidden,
  planSettleDebt,
  planStoreRemade,
  planStoreSummary,
  planSwapRemade,
  planSweepGrants,
  planTransplant,
  planTransplantation,
  prepareMoved,
} from "@lossless/core/adapter";
import type { Asking, CoverItem, HiddenReason, SessionRef } from "@lossless/core/adapter";
import type {
  AppendBatch,
  AppendResult,
  ArchiveStatus,
  Blobs,
  BoundaryResult,
  BoundaryRequest,
  ClueRequest,
  CluesFound,
  ConversationFilter,
  ConversationRow,
  ConversationTies,
  CoverHead,
  CoverTail,
  DatedId,
  Family,
  Debt,
  Derive,
  DissolveResult,
  CandidateDocument,
  DoubtfulSummary,
  EventSink,
  ForgetResult,
  ForgetPlan,
  ForgetRequest,
  FoundSummary,
  Grant,
  Guard,
  DoubtsFound,
  IdRange,
  ImportedPart,
  Intake,
  LabelRequest,
  Labels,
  LargeFileRow,
  ListConversations,
  ListedConversation,
  ListMessages,
  MessageBody,
  MessageCounts,
  MessageRow,
  MessageText,
  MoveChoice,
  MovedRow,
  MovedSummary,
  Opening,
  Outline,
  OutlineRequest,
  Page,
  Plan,
  ProveArrival,
  PublishResult,
  RecallParts,
  RecallScope,
  RedactedMessage,
  RelabelSession,
  RemovedCounts,
  RunItem,
  ScannedText,
  SealedValue,
  SessionState,
  ShownMessage,
  ShownSummary,
  Snapshot,
  SpendGroup,
  SpendRecord,
  StorageShares,
  Store,
  StoreSummary,
  StoreVectors,
  StoreVectorsResult,
  SummaryGraph,
  SummaryNode,
  SummaryReplacement,
  SummaryRow,
  TransplantResult,
  TransplantRequest,
  VectorCounts,
  VectorSpace,
  VerifyResult,
} from "@lossless/core/ports";
import { append } from "./append.ts";
import * as spend from "./spend.ts";
import * as repair from "./repair.ts";
import { Connection } from "./connection.ts";
import { translate } from "./errors.ts";
import type { StoreContext } from "./store-context.ts";
import { findEnds, readCoverHead, readCoverTail, readSourceItems } from "./cover.ts";
import * as fold from "./fold.ts";
import { findClues, findDoubts, testClues } from "./find-clues.ts";
import * as forgetting from "./forget.ts";
import { FullTextIndex } from "./full-text-index.ts";
import * as graph from "./graph.ts";
import { IntakeCopies } from "./intake-copies.ts";
import {
  copyIn,
  findCopies,
  IntakeBlobs,
  nameIntake,
  removeIntake,
  sweepIntakes,
  TRIES_BESIDE,
} from "./intake.ts";
import { migrate } from "./migrate.ts";
import * as documents from "./documents.ts";
import * as measure from "./measure.ts";
import * as read from "./read.ts";
import { listRecallParts } from "./recall-parts.ts";
import * as redactions from "./redactions.ts";
import { IndexQueue } from "./index-queue.ts";
import { ReservedIds } from "./next-id.ts";
import { readPlan, writePlan } from "./plans.ts";
import { reindex } from "./reindex.ts";
import * as remake from "./remake.ts";
import { removeConversations } from "./remove-conversations.ts";
import { keepSeals } from "./seals.ts";
import * as transfer from "./transfer.ts";
import { removeUnnamed } from "./unnamed-blobs.ts";
import * as vectors from "./vectors.ts";
import { verify, verifyConversations } from "./verify.ts";

export interface SqliteStoreOptions {
  readonly path: string;
  readonly filesDir: string;
  /** Stores large payloads instead of the folder. */
  readonly blobs?: Blobs;
  readonly create?: boolean;
  readonly readOnly?: boolean;
  readonly busyLimitMs?: number;
  /** Receives an event when another process holds the lock for long, and the progress of the upgrade of an older archive. */
  readonly onEvent?: EventSink;
  /** Reads a stored message for the index: one that another process stored and did not get to index. */
  readonly derive?: Derive;
  /** Receives how often each plan asked, for tests. */
  readonly onPlan?: (asks: number) => void;
}

const DEFAULT_BUSY_LIMIT_MS = 60_000;

export class SqliteStore implements Store {
  readonly #options: SqliteStoreOptions;
  #context: StoreContext;
  #queue: IndexQueue;

  constructor(options: SqliteStoreOptions) {
    this.#options = options;
    const connection = new Connection({
      path: options.path,
      create: options.create ?? false,
      readOnly: options.readOnly ?? false,
      busyLimitMs: options.busyLimitMs ?? DEFAULT_BUSY_LIMIT_MS,
      onBusy: () =>
        options.onEvent?.({
          kind: "waiting",
          message: `another program is using the database ${options.path}; waiting for it to finish`,
        }),
    });
    try {
      migrate(connection, (done, total) =>
        options.onEvent?.({ kind: "progress", operation: "upgrade", done, total }),
      );
      const index = new FullTextIndex(connection);
      if (!connection.readOnly) {
        sweepIntakes(connection, Date.now());
        keepSeals(connection);
        index.ensure();
      }
      this.#context = {
        connection,
        files: options.blobs ?? new BlobFolder(options.filesDir),
        index,
        bodies: new BodyCache(),
        codes: new Map(),
        derive: options.derive ?? null,
        onPlan: options.onPlan,
      };
      this.#queue = new IndexQueue(this.#context, options.derive ?? null);
    } catch (error) {
      connection.close();
      throw translate(error, "open", options.path);
    }
  }

  async append(batch: AppendBatch): Promise<AppendResult> {
    const result = await this.#do("write", () => append(this.#context, batch));
    this.#queue.settleSoon();
    return result;
  }

  async flushIndex(): Promise<void> {
    return this.#do("index", () => this.#queue.settle());
  }

  async readSession(owner: string | null, sessionId: string): Promise<SessionState | null> {
    return this.#do("read", () => read.readSession(this.#context, owner, sessionId));
  }

  async knownEvents(owner: string | null, sessionId: string, eventIds: readonly string[]): Promise<string[]> {
    return this.#do("read", () => read.knownEvents(this.#context, owner, sessionId, eventIds));
  }

  async relabel(
    session: SessionRef,
    labels: readonly { from: string; to: string }[],
    now: number,
  ): Promise<number> {
    return this.#write(() => planRelabel(session, labels, now));
  }

  async findSessions(owner: string, eventId: string): Promise<string[]> {
    return this.#do("read", () => read.findSessions(this.#context, owner, eventId));
  }

  async relabelSession(request: RelabelSession): Promise<boolean> {
    return this.#write(() => planRelabelSession(request));
  }

  async setHidden(
    session: SessionRef,
    reason: HiddenReason,
    eventIds: readonly string[],
    now: number,
    mode: "exactly" | "add",
  ): Promise<number> {
    return this.#write(() => planSetHidden({ session, reason, eventIds, now, mode }));
  }

  async recordBoundary(request: BoundaryRequest): Promise<BoundaryResult> {
    return this.#write(() => planBoundary(request));
  }

  async label(request: LabelRequest): Promise<Labels | null> {
    return this.#write(() => planLabel(request));
  }

  async listOpenings(conversationIds: readonly number[], limit: number): Promise<Opening[]> {
    return this.#do("read", () => read.listOpenings(this.#context, conversationIds, limit));
  }

  async listConversations(request: ListConversations): Promise<Page<ConversationRow>> {
    return this.#do("read", () => read.listConversations(this.#context, request));
  }

  async readConversation(conversationId: number, owner?: string): Promise<ConversationRow | null> {
    return this.#do("read", () => read.readConversation(this.#context, conversationId, owner));
  }

  async listMessages(request: ListMessages): Promise<Page<MessageRow>> {
    return this.#do("read", () => read.listMessages(this.#context, request));
  }

  async readOutline(request: OutlineRequest): Promise<Outline> {
    return this.#do("read", () => read.readOutline(this.#context, request));
  }

  async listMessageIds(request: Parameters<Store["listMessageIds"]>[0]): Promise<number[]> {
    return this.#do("read", () => read.listMessageIds(this.#context, request));
  }

  async locateMessage(messageId: number, owner?: string): ReturnType<Store["locateMessage"]> {
    return this.#do("read", () => read.locateMessage(this.#context, messageId, owner));
  }

  async readMessage(messageId: number, owner?: string): Promise<MessageBody | null> {
    return this.#do("read", () => read.readMessage(this.#context, messageId, owner));
  }

  async readShown(messageIds: readonly number[]): Promise<ShownMessage[]> {
    return this.#do("read", () => read.readShown(this.#context, messageIds));
  }

  async readRevisions(messageId: number, owner?: string): Promise<MessageRow[]> {
    return this.#do("read", () => read.readRevisions(this.#context, messageId, owner));
  }

  async readFile(fileId: string, owner?: string): Promise<LargeFileRow | null> {
    return this.#do("read", () => read.readFile(this.#context, fileId, owner));
  }

  async readFileContent(fileId: string, owner?: string): Promise<Uint8Array | null> {
    return this.#do("read", () => read.readFileContent(this.#context, fileId, owner));
  }

  async status(owner?: string): Promise<ArchiveStatus> {
    return this.#do("read", () => read.readStatus(this.#context, owner));
  }

  async countMessages(conversationIds: readonly number[], owner?: string): Promise<MessageCounts[]> {
    return this.#do("read", () => measure.countMessages(this.#context, conversationIds, owner));
  }

  async measureStorage(): Promise<StorageShares> {
    return this.#do("read", () => measure.measureStorage(this.#context));
  }

  async readCalibration(model: string): Promise<{ factor: number; samples: number } | null> {
    return this.#read(() => planReadCalibration(model));
  }

  async readCoverTail(request: Parameters<Store["readCoverTail"]>[0]): Promise<CoverTail | null> {
    return this.#do("read", () => readCoverTail(this.#context, request));
  }

  async readCoverHead(request: { conversationId: number; maxMessageTokens: number }): Promise<CoverHead> {
    return this.#do("read", () => readCoverHead(this.#context, request));
  }

  async findForkPoint(request: Parameters<Store["findForkPoint"]>[0]): ReturnType<Store["findForkPoint"]> {
    return this.#read(() => planForkPoint(request));
  }

  async fork(request: Parameters<Store["fork"]>[0]): ReturnType<Store["fork"]> {
    return this.#write(() => planFork(request));
  }

  async readForkItems(conversationId: number): ReturnType<Store["readForkItems"]> {
    return this.#read(() => planForkItems(conversationId));
  }

  async findEnds(request: Parameters<Store["findEnds"]>[0]): ReturnType<Store["findEnds"]> {
    return this.#do("read", () => findEnds(this.#context, request));
  }

  async readRun(
    conversationId: number,
    keys: readonly { startPosition: number; seq: number }[],
    withTexts?: boolean,
  ): Promise<RunItem[]> {
    return this.#do("read", () => fold.readRun(this.#context, conversationId, keys, withTexts));
  }

  async storeSummary(request: StoreSummary): Promise<PublishResult> {
    // Folded messages are only found by search, so they must be in the index by then.
    this.#queue.settle();
    return this.#write(() => planStoreSummary(request));
  }

  async publishStored(request: Parameters<Store["publishStored"]>[0]): Promise<PublishResult[]> {
    // Folded messages are only found by search, so they must be in the index by then.
    this.#queue.settle();
    return this.#write(() => planPublishStored(request));
  }

  async hasStale(conversationId: number): Promise<boolean> {
    return this.#do("read", () => remake.hasStale(this.#context, conversationId));
  }

  async readStale(conversationId: number): ReturnType<Store["readStale"]> {
    return this.#do("read", () => remake.readStale(this.#context, conversationId));
  }

  async storeRemade(replacement: SummaryReplacement, now: number): Promise<PublishResult> {
    return this.#write(() => planStoreRemade(replacement, now));
  }

  async swapRemade(request: Parameters<Store["swapRemade"]>[0]): Promise<number> {
    return this.#write(() => planSwapRemade(request));
  }

  async readSummary(summaryId: string, owner?: string): Promise<SummaryNode | null> {
    return this.#do("read", () => graph.readSummary(this.#context, summaryId, owner));
  }

  async readSourceItems(summaryIds: readonly string[]): Promise<Map<string, CoverItem[]>> {
    return this.#do("read", () => readSourceItems(this.#context, summaryIds));
  }

  async readShownSummaries(summaryIds: readonly string[]): Promise<ShownSummary[]> {
    return this.#do("read", () => graph.readShownSummaries(this.#context, summaryIds));
  }

  async listSummaries(request: Parameters<Store["listSummaries"]>[0]): Promise<Page<SummaryRow>> {
    return this.#do("read", () => graph.listSummaries(this.#context, request));
  }

  async readGraph(request: Parameters<Store["readGraph"]>[0]): Promise<SummaryGraph> {
    return this.#do("read", () => graph.readGraph(this.#context, request));
  }

  async countSummaries(conversationId: number): ReturnType<Store["countSummaries"]> {
    return this.#do("read", () => graph.countSummaries(this.#context, conversationId));
  }

  async addDebt(debt: { conversationId: number; budgetTokens: number; now: number }): Promise<void> {
    await this.#write(() => planAddDebt(debt));
  }

  async readDebt(conversationId: number): Promise<Debt | null> {
    return this.#read(() => planReadDebt(conversationId));
  }

  async claimDebt(request: Parameters<Store["claimDebt"]>[0]): Promise<Debt | null> {
    return this.#write(() => planClaimDebt(request));
  }

  async renewDebt(request: Parameters<Store["renewDebt"]>[0]): Promise<boolean> {
    return this.#write(() => planRenewDebt(request));
  }

  async claimUpkeep(request: Parameters<Store["claimUpkeep"]>[0]): Promise<boolean> {
    return this.#write(() => planClaimUpkeep(request));
  }

  async releaseUpkeep(request: Parameters<Store["releaseUpkeep"]>[0]): Promise<void> {
    await this.#write(() => planReleaseUpkeep(request));
  }

  async settleDebt(request: Parameters<Store["settleDebt"]>[0]): Promise<void> {
    await this.#write(() => planSettleDebt(request));
  }

  async recordSpend(record: SpendRecord): Promise<void> {
    return this.#do("write", () => spend.recordSpend(this.#context, record));
  }

  async sumSpend(request: Parameters<Store["sumSpend"]>[0]): Promise<SpendGroup[]> {
    return this.#do("read", () => spend.sumSpend(this.#context, request));
  }

  async countSpendCalls(since: number): Promise<number> {
    return this.#do("read", () => spend.countSpendCalls(this.#context, since));
  }

  async readGuards(): Promise<Guard[]> {
    return this.#read(planReadGuards);
  }

  async saveGuard(guard: Guard): Promise<void> {
    await this.#write(() => planSaveGuard(guard));
  }

  async readCacheUsage(conversationId: number): ReturnType<Store["readCacheUsage"]> {
    return this.#read(() => planReadCacheUsage(conversationId));
  }

  async findClues(request: ClueRequest): Promise<CluesFound> {
    return this.#do("search", () => findClues(this.#context, request));
  }

  async testClues(request: Parameters<Store["testClues"]>[0]): Promise<number[][]> {
    return this.#do("search", () => testClues(this.#context, request));
  }

  async findWritten(request: Parameters<Store["findWritten"]>[0]): ReturnType<Store["findWritten"]> {
    return this.#do("search", () => documents.findWritten(this.#context, request));
  }

  async readCandidates(request: Parameters<Store["readCandidates"]>[0]): Promise<CandidateDocument[]> {
    return this.#do("search", () => documents.readCandidates(this.#context, request));
  }

  async readTimes(request: Parameters<Store["readTimes"]>[0]): ReturnType<Store["readTimes"]> {
    return this.#do("search", () => documents.readTimes(this.#context, request));
  }

  async listRecallParts(messageIds: readonly number[]): Promise<RecallParts[]> {
    return this.#do("search", () => listRecallParts(this.#context, messageIds));
  }

  async readTexts(messageIds: readonly number[], scope: RecallScope): Promise<MessageText[]> {
    return this.#do("read", () => documents.readTexts(this.#context, messageIds, scope));
  }

  async listNewest(request: Parameters<Store["listNewest"]>[0]): Promise<DatedId[]> {
    return this.#do("search", () => documents.listNewest(this.#context, request));
  }

  async findDoubts(...request: Parameters<Store["findDoubts"]>): Promise<DoubtsFound> {
    return this.#do("search", () => findDoubts(this.#context, ...request));
  }

  async readTextsWithin(ranges: readonly IdRange[], scope: RecallScope): Promise<ScannedText[]> {
    return this.#do("read", () => documents.readTextsWithin(this.#context, ranges, scope));
  }

  async listFiles(scope: RecallScope, fileIds: readonly string[] | null): Promise<LargeFileRow[]> {
    return this.#do("read", () => documents.listFiles(this.#context, scope, fileIds));
  }

  async readFoundSummaries(refs: readonly number[], scope: RecallScope): Promise<FoundSummary[]> {
    return this.#do("read", () => documents.readFoundSummaries(this.#context, refs, scope));
  }

  async listRange(firstId: number, lastId: number): Promise<number[]> {
    return this.#do("read", () => documents.listRange(this.#context, firstId, lastId));
  }

  async listSummariesOf(messageId: number): Promise<string[]> {
    return this.#do("read", () => documents.listSummariesOf(this.#context, messageId));
  }

  async readFileMessages(fileId: string): Promise<number[]> {
    return this.#do("read", () => documents.readFileMessages(this.#context, fileId));
  }

  async listScope(request: ConversationFilter): Promise<number[]> {
    return this.#do("read", () => documents.listScope(this.#context, request));
  }

  async readFamily(request: Parameters<Store["readFamily"]>[0]): Promise<Family> {
    return this.#read(() => planFamily(request));
  }

  async insertGrant(grant: Grant, now: number): Promise<boolean> {
    return this.#write(() => planInsertGrant(grant, now));
  }

  async findGrantOf(holderKey: string, now: number): Promise<Grant | null> {
    return this.#read(() => planFindGrant(holderKey, now));
  }

  async chargeGrant(grantId: string, tokens: number, now: number): Promise<number | null> {
    return this.#write(() => planChargeGrant(grantId, tokens, now));
  }

  async revokeGrants(which: Parameters<Store["revokeGrants"]>[0], now: number): Promise<number> {
    return this.#write(() => planRevokeGrants(which, now));
  }

  async sweepGrants(before: number): Promise<number> {
    return this.#write(() => planSweepGrants(before));
  }

  async backup(path: string, onProgress: (done: number, total: number) => void): Promise<void> {
    // The copy is made outside this thread: nothing may be left for the index to write meanwhile.
    this.#queue.settle();
    return repair.backup(this.#context, path, onProgress);
  }

  async listDebts(): Promise<Debt[]> {
    return this.#read(planListDebts);
  }

  async closeDebt(conversationId: number): Promise<boolean> {
    return this.#write(() => planCloseDebt(conversationId));
  }

  async dropSummaries(...request: Parameters<Store["dropSummaries"]>): Promise<number | null> {
    return this.#write(() => planDropSummaries(...request));
  }

  async findUnproven(...request: Parameters<Store["findUnproven"]>): Promise<string[]> {
    return this.#do("read", () => repair.findUnproven(this.#context, ...request));
  }

  async readVersions(): ReturnType<Store["readVersions"]> {
    return this.#do("read", () => repair.readVersions(this.#context));
  }

  async readSources(summaryId: string): Promise<RunItem[]> {
    return this.#do("read", () => fold.readSources(this.#context, summaryId));
  }

  async replaceSummary(replacement: SummaryReplacement, now: number): Promise<PublishResult> {
    return this.#write(() => planReplaceSummary(replacement, now));
  }

  async dissolveSummary({
    summaryId,
    dryRun,
    now,
  }: Parameters<Store["dissolveSummary"]>[0]): Promise<DissolveResult | null> {
    if (!dryRun) return this.#write(() => planDissolve(summaryId, now));
    return this.#read(() => planDissolution(summaryId));
  }

  async transplant(request: TransplantRequest, derive: Derive): Promise<TransplantResult> {
    if (request.dryRun) return this.#read(() => planTransplantation(request));
    const report = await this.#write(() => planTransplant(request, derive));
    this.#queue.settleSoon();
    return report;
  }

  async planForget(messageIds: readonly number[], alsoSummaryIds: readonly string[]): Promise<ForgetPlan> {
    return this.#do("read", () => forgetting.readForgetPlan(this.#context, messageIds, alsoSummaryIds));
  }

  async forget(request: ForgetRequest): Promise<ForgetResult> {
    return this.#do("write", () => forgetting.forget(this.#context, request));
  }

  async isForgettingOpen(): Promise<boolean> {
    return this.#do("read", () => forgetting.isForgettingOpen(this.#context));
  }

  async wipeFreed(): Promise<boolean> {
    return this.#do("write", () => forgetting.wipeFreed(this.#context));
  }

  async listImports(): Promise<ImportedPart[]> {
    return this.#read(planListImports);
  }

  async readTies(conversationIds: readonly number[]): Promise<ConversationTies[]> {
    return this.#read(() => planReadTies(conversationIds));
  }

  async removeConversations(expected: readonly ConversationTies[]): Promise<RemovedCounts | null> {
    this.#queue.settle();
    return this.#do("write", () => removeConversations(this.#context, expected));
  }

  async listPublished(request: Parameters<Store["listPublished"]>[0]): Promise<DoubtfulSummary[]> {
    return this.#read(() => planListPublished(request));
  }

  async listBlobs(): Promise<string[]> {
    return this.#read(planListBlobs);
  }

  async removeUnnamed(paths: readonly string[]): Promise<string[]> {
    const { connection, files } = this.#context;
    return this.#do("write", () => connection.write(() => removeUnnamed(connection, files, paths)));
  }

  /** Uses a separate connection: what this one writes meanwhile is not visible. */
  async withSnapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
    const snapshot = new SqliteStore({ ...this.#options, create: false, readOnly: true });
    try {
      return await snapshot.#context.connection.readThroughout(() => work(snapshot));
    } finally {
      await snapshot.close();
    }
  }

  async bringIn<T>(
    work: (into: Intake) => Promise<T>,
    { isRepeatable = false }: { isRepeatable?: boolean } = {},
  ): Promise<T> {
    const isBeside = isRepeatable && this.#context.connection.hasLog;
    for (let tries = 0; isBeside && tries < TRIES_BESIDE; tries++) {
      const brought = await this.#bringInBeside(work);
      if (brought !== null) return brought.result;
    }
    const result = await this.#context.connection.writeThroughout(() => work(this.#makeIntake()));
    this.#queue.settleSoon();
    return result;
  }

  /** Null, with nothing kept, if another process meanwhile changed what it changes. */
  async #bringInBeside<T>(work: (into: Intake) => Promise<T>): Promise<{ readonly result: T } | null> {
    const context = this.#context;
    const path = nameIntake(context.connection.path);
    const blobs = new IntakeBlobs(context.files);
    const staging = new SqliteStore({ ...this.#options, path, blobs, create: true });
    const reserved = new ReservedIds(context.connection, staging.#context.connection);
    let isKept = false;
    try {
      const result = await staging.#stage(context, reserved, work);
      isKept = await this.#do("write", () => copyIn(context, path, blobs));
      if (!isKept) return null;
      this.#queue.lookAgain();
      return { result };
    } finally {
      removeIntake(path);
      reserved.giveBack();
      if (!isKept) blobs.takeBack(context.connection);
    }
  }

  /** Runs `work` on this store, which is closed afterwards. */
  async #stage<T>(
    archive: StoreContext,
    reserved: ReservedIds,
    work: (into: Intake) => Promise<T>,
  ): Promise<T> {
    try {
      const copies = this.#beginIntake(archive, reserved);
      return await this.bringIn(async (into) => {
        const result = await work(findCopies(into, copies));
        copies.finish();
        return result;
      });
    } finally {
      await this.close();
    }
  }

  /** Nobody searches an intake, and a crash leaves nothing of it to repair. */
  #beginIntake(archive: StoreContext, reserved: ReservedIds): IntakeCopies {
    const { connection, index } = this.#context;
    connection.exec("PRAGMA synchronous = OFF");
    connection.write(() => index.markProblem("it belongs to rows that are on their way"));
    this.#context = { ...this.#context, reserved };
    return new IntakeCopies(connection, archive.connection);
  }

  #makeIntake(): Intake {
    const context = this.#context;
    return {
      append: (batch) => this.append(batch),
      readSession: (owner, sessionId) => this.readSession(owner, sessionId),
      listMessages: (request) => this.listMessages(request),
      listMoved: (choice) => this.listMoved(choice),
      readMovedRows: (...request) => this.readMovedRows(...request),
      readMovedFile: (conversationId, sha256) => this.readMovedFile(conversationId, sha256),
      proveMoved: (conversationIds, derive) =>
        this.#do("verify", () => verifyConversations(context, conversationIds, derive)),
      moveSessions: async (...request) => void (await this.#write(() => planMoveSessions(...request))),
      openMoved: (...request) => this.#write(() => planOpenMoved(...request)),
      moveRows: (conversationId, rows, files, derive, now) =>
        this.#do("write", () => {
          const ready = rows.map((row) => prepareMoved(row, files, derive));
          writePlan(context, () => planMoveRows(conversationId, ready, now));
        }),
      noteImported: async (...request) => void (await this.#write(() => planNoteImported(...request))),
      moveSummaries: (...request) => this.#write(() => planMoveSummaries(...request)),
      moveCover: async (...request) => void (await this.#write(() => planMoveCover(...request))),
      retireBeside: async (id) => void (await this.#write(() => planRetireBeside(id))),
    };
  }

  async listMoved(choice: MoveChoice): Promise<ListedConversation[]> {
    return this.#do("read", () => transfer.listMoved(this.#context, choice));
  }

  async readMovedSessions(conversationIds: readonly number[]): ReturnType<Store["readMovedSessions"]> {
    return this.#do("read", () => transfer.readMovedSessions(this.#context, conversationIds));
  }

  async readMovedRows(conversationId: number, afterSeq: number, limit: number): Promise<MovedRow[]> {
    return this.#do("read", () => transfer.readMovedRows(this.#context, conversationId, afterSeq, limit));
  }

  async readMovedFile(conversationId: number, sha256: string): ReturnType<Store["readMovedFile"]> {
    return this.#do("read", () => transfer.readMovedFile(this.#context, conversationId, sha256));
  }

  async readMovedSummaries(conversationId: number, offset: number, limit: number): Promise<MovedSummary[]> {
    return this.#do("read", () => transfer.readMovedSummaries(this.#context, conversationId, offset, limit));
  }

  async readMovedCover(conversationId: number): Promise<string[]> {
    return this.#do("read", () => transfer.readMovedCover(this.#context, conversationId));
  }

  async listVectorSpaces(): Promise<VectorSpace[]> {
    return this.#do("read", () => vectors.listVectorSpaces(this.#context));
  }

  async countVectors(): Promise<VectorCounts> {
    return this.#do("read", () => vectors.countVectors(this.#context));
  }

  async claimVectorSpace(request: Parameters<Store["claimVectorSpace"]>[0]): Promise<VectorSpace | null> {
    return this.#do("write", () => vectors.claimVectorSpace(this.#context, request));
  }

  async listPendingVectors(
    request: Parameters<Store["listPendingVectors"]>[0],
  ): ReturnType<Store["listPendingVectors"]> {
    return this.#do("read", () => vectors.listPendingVectors(this.#context, request));
  }

  async listUnembedded(request: Parameters<Store["listUnembedded"]>[0]): Promise<number[]> {
    return this.#do("read", () => vectors.listUnembedded(this.#context, request));
  }

  async storeVectors(request: StoreVectors): Promise<StoreVectorsResult> {
    return this.#do("write", () => vectors.storeVectors(this.#context, request));
  }

  async releaseVectorSpace(request: Parameters<Store["releaseVectorSpace"]>[0]): Promise<void> {
    return this.#do("write", () => vectors.releaseVectorSpace(this.#context, request));
  }

  async dropVectorSpace(spaceId: number, limit: number): Promise<boolean> {
    return this.#do("write", () => vectors.dropVectorSpace(this.#context, spaceId, limit));
  }

  async scanVectors(request: Parameters<Store["scanVectors"]>[0]): ReturnType<Store["scanVectors"]> {
    return this.#do("search", () => vectors.scanVectors(this.#context, request));
  }

  async readRedacted(messageId: number, owner?: string): Promise<RedactedMessage | null> {
    return this.#do("read", () => redactions.readRedacted(this.#context, messageId, owner));
  }

  async listSealed(request: { after: number; limit: number }): Promise<number[]> {
    return this.#read(() => planListSealed(request));
  }

  async recordUnsealing(messageId: number, ordinals: readonly number[], now: number): Promise<void> {
    await this.#write(() => planRecordUnsealing(messageId, ordinals, now));
  }

  async replaceSealed(messageId: number, values: readonly SealedValue[]): Promise<void> {
    return this.#do("write", () => redactions.replaceSealed(this.#context, messageId, values));
  }

  async verify(
    derive: Derive,
    onProgress: (done: number, total: number) => void,
    proveArrival?: ProveArrival,
  ): Promise<VerifyResult> {
    return this.#do("verify", () => verify(this.#context, derive, onProgress, proveArrival));
  }

  async reindex(
    derive: Derive,
    onProgress: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<number> {
    return reindex(this.#context, derive, onProgress, signal);
  }

  async close(): Promise<void> {
    this.#queue.close();
    this.#context.connection.close();
  }

  async #write<T>(plan: () => Plan<T>): Promise<T> {
    return this.#do("write", () => writePlan(this.#context, plan));
  }

  async #read<T>(plan: () => Asking<T>): Promise<T> {
    return this.#do("read", () => readPlan(this.#context, plan));
  }

  async #do<T>(verb: string, work: () => T): Promise<T> {
    const { connection } = this.#context;
    return connection.retry(work, verb);
  }
}
