/**
 * The verbs of the store port on PostgreSQL, as one table: each is a function of its context. A store, a snapshot and an intake are the same
 * functions with another context.
 */
import {
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
  planReplaceSealed,
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
import type { Asking } from "@lossless/core/adapter";
import type { Intake, Plan, Store } from "@lossless/core/ports";
import { append } from "./append.ts";
import { findClues, findDoubts, testClues } from "./find-clues.ts";
import { forget, isForgettingOpen, readForgetPlan, wipeFreed } from "./forget.ts";
import { findEnds, readCoverHead, readCoverTail, readSourceItems } from "./cover.ts";
import * as documents from "./documents.ts";
import * as fold from "./fold.ts";
import * as graph from "./graph.ts";
import { countMessages, measureStorage } from "./measure.ts";
import { readPlan, writeAlone, writePlan } from "./plans.ts";
import { reindex } from "./reindex.ts";
import { removeConversations } from "./remove-conversations.ts";
import { removeUnnamed } from "./unnamed-blobs.ts";
import * as read from "./read.ts";
import { listRecallParts } from "./recall-parts.ts";
import { readRedacted } from "./redactions.ts";
import * as repair from "./repair.ts";
import * as spend from "./spend.ts";
import * as transfer from "./transfer.ts";
import * as vectors from "./vectors.ts";
import type { StoreContext } from "./store-context.ts";
import { verify, verifyConversations } from "./verify.ts";

type Verb<Port, K extends keyof Port> = Port[K] extends (...request: infer R) => infer A
  ? (context: StoreContext, ...request: R) => A
  : never;
type Verbs<Port> = { readonly [K in keyof Port]?: Verb<Port, K> };

type Planned<R extends readonly unknown[], A> = (context: StoreContext, ...request: R) => Promise<A>;

/** A verb that is a plan. */
const writes =
  <R extends readonly unknown[], A>(plan: (...request: R) => Plan<A>): Planned<R, A> =>
  (context, ...request) =>
    writePlan(context, () => plan(...request));

/** A verb without a result. */
const does =
  <R extends readonly unknown[]>(plan: (...request: R) => Plan<unknown>): Planned<R, void> =>
  async (context, ...request) =>
    void (await writePlan(context, () => plan(...request)));

const writesAlone =
  <R extends readonly unknown[], A>(plan: (...request: R) => Plan<A>): Planned<R, A> =>
  (context, ...request) =>
    writeAlone(context, () => plan(...request));

const reads =
  <R extends readonly unknown[], A>(plan: (...request: R) => Asking<A>): Planned<R, A> =>
  (context, ...request) =>
    readPlan(context, () => plan(...request));

export const VERBS = {
  append,
  relabel: writes(planRelabel),
  relabelSession: writes(planRelabelSession),
  setHidden: (context, session, reason, eventIds, now, mode) =>
    writePlan(context, () => planSetHidden({ session, reason, eventIds, now, mode })),
  recordBoundary: writes(planBoundary),
  label: writes(planLabel),

  findForkPoint: reads(planForkPoint),
  fork: writes(planFork),

  storeSummary: writes(planStoreSummary),
  publishStored: writes(planPublishStored),
  storeRemade: writes(planStoreRemade),
  swapRemade: writes(planSwapRemade),
  replaceSummary: writes(planReplaceSummary),
  dissolveSummary: (context, { summaryId, dryRun, now }) =>
    dryRun
      ? readPlan(context, () => planDissolution(summaryId))
      : writePlan(context, () => planDissolve(summaryId, now)),
  dropSummaries: writes(planDropSummaries),
  transplant: (context, request, derive) =>
    request.dryRun
      ? readPlan(context, () => planTransplantation(request))
      : writePlan(context, () => planTransplant(request, derive)),
  readTies: reads(planReadTies),
  removeConversations,
  removeUnnamed,
  planForget: readForgetPlan,
  forget,
  isForgettingOpen,
  wipeFreed,

  addDebt: does(planAddDebt),
  readDebt: reads(planReadDebt),
  claimDebt: writes(planClaimDebt),
  renewDebt: writes(planRenewDebt),
  settleDebt: does(planSettleDebt),
  closeDebt: writes(planCloseDebt),
  claimUpkeep: writes(planClaimUpkeep),
  releaseUpkeep: does(planReleaseUpkeep),
  saveGuard: async (context, guard) => void (await writeAlone(context, () => planSaveGuard(guard))),

  insertGrant: writesAlone(planInsertGrant),
  findGrantOf: reads(planFindGrant),
  chargeGrant: writesAlone(planChargeGrant),
  revokeGrants: writesAlone(planRevokeGrants),
  sweepGrants: writesAlone(planSweepGrants),

  findClues,
  testClues,
  findDoubts,
  reindex,

  listVectorSpaces: vectors.listVectorSpaces,
  countVectors: vectors.countVectors,
  claimVectorSpace: vectors.claimVectorSpace,
  listPendingVectors: vectors.listPendingVectors,
  listUnembedded: vectors.listUnembedded,
  storeVectors: vectors.storeVectors,
  releaseVectorSpace: vectors.releaseVectorSpace,
  dropVectorSpace: vectors.dropVectorSpace,
  scanVectors: vectors.scanVectors,

  recordUnsealing: does(planRecordUnsealing),
  replaceSealed: does(planReplaceSealed),
  listImports: reads(planListImports),

  verify,
  readSession: read.readSession,
  knownEvents: read.knownEvents,
  findSessions: read.findSessions,
  listConversations: read.listConversations,
  listOpenings: read.listOpenings,
  readConversation: read.readConversation,
  listMessages: read.listMessages,
  readOutline: read.readOutline,
  listMessageIds: read.listMessageIds,
  locateMessage: read.locateMessage,
  readMessage: read.readMessage,
  readShown: read.readShown,
  readRevisions: read.readRevisions,
  readFile: read.readFile,
  readFileContent: read.readFileContent,
  countMessages,
  measureStorage,

  readCoverTail,
  readCoverHead,
  readSourceItems,
  findEnds,
  readForkItems: reads(planForkItems),
  readRun: fold.readRun,
  readSources: fold.readSources,
  hasStale: fold.hasStale,
  readStale: fold.readStale,
  readSummary: graph.readSummary,
  readShownSummaries: graph.readShownSummaries,
  listSummaries: graph.listSummaries,
  readGraph: graph.readGraph,
  countSummaries: graph.countSummaries,

  recordSpend: spend.recordSpend,
  sumSpend: spend.sumSpend,
  countSpendCalls: spend.countSpendCalls,
  readGuards: reads(planReadGuards),
  readCacheUsage: reads(planReadCacheUsage),
  readCalibration: reads(planReadCalibration),

  findWritten: documents.findWritten,
  readCandidates: documents.readCandidates,
  readTimes: documents.readTimes,
  listRecallParts,
  readTexts: documents.readTexts,
  listNewest: documents.listNewest,
  readTextsWithin: documents.readTextsWithin,
  listFiles: documents.listFiles,
  readFoundSummaries: documents.readFoundSummaries,
  listRange: documents.listRange,
  listSummariesOf: documents.listSummariesOf,
  readFileMessages: documents.readFileMessages,
  listScope: documents.listScope,
  readFamily: documents.readFamily,

  backup: repair.backup,
  listDebts: reads(planListDebts),
  readVersions: repair.readVersions,
  findUnproven: repair.findUnproven,
  listPublished: reads(planListPublished),
  listBlobs: reads(planListBlobs),
  listMoved: transfer.listMoved,
  readMovedSessions: transfer.readMovedSessions,
  readMovedRows: transfer.readMovedRows,
  readMovedFile: transfer.readMovedFile,
  readMovedSummaries: transfer.readMovedSummaries,
  readMovedCover: transfer.readMovedCover,
  readRedacted,
  listSealed: reads(planListSealed),
} satisfies Verbs<Store>;

/** The verbs of an intake, besides those of the store. */
export const INTAKE_VERBS = {
  proveMoved: verifyConversations,
  moveSessions: does(planMoveSessions),
  openMoved: writes(planOpenMoved),
  moveRows: async (context, conversationId, rows, files, derive, now) => {
    const ready = rows.map((row) => prepareMoved(row, files, derive));
    await writePlan(context, () => planMoveRows(conversationId, ready, now));
  },
  noteImported: does(planNoteImported),
  moveSummaries: writes(planMoveSummaries),
  moveCover: does(planMoveCover),
  retireBeside: does(planRetireBeside),
} satisfies Verbs<Intake>;

export type Bound<V> = {
  readonly [K in keyof V]: V[K] extends (context: StoreContext, ...request: infer R) => infer A
    ? (...request: R) => A
    : never;
};

/** Binds the verbs to a context. */
export function bindVerbs<V extends object>(verbs: V, context: StoreContext): Bound<V> {
  const bound = Object.entries(verbs).map(([name, verb]: [string, Planned<unknown[], unknown>]) => [
    name,
    async (...request: unknown[]) => verb(context, ...request),
  ]);
  return Object.fromEntries(bound) as Bound<V>;
}
