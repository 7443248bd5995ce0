/**
 * The store port on maps and arrays: it answers the reads of plans, applies their change sets, and has no rules of its own. Tests that are not
 * about a database use it. It passes the store contract, except for files on a disk, other processes and crashes.
 */
import {
  EngineError,
  planSweepGrants,
  planSettleDebt,
  planSaveGuard,
  planRevokeGrants,
  planRenewDebt,
  planReleaseUpkeep,
  planReadDebt,
  planNoteImported,
  planCloseDebt,
  planClaimUpkeep,
  planClaimDebt,
  planAddDebt,
  planAppend,
  planBoundary,
  planChargeGrant,
  planDissolution,
  planDissolve,
  planDropSummaries,
  planFindGrant,
  planFindNew,
  planForget,
  planForgetting,
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
  planOpenMoved,
  planPublishStored,
  planReadTies,
  planRecallParts,
  planRecordUnsealing,
  planRelabel,
  planRelabelSession,
  planRemoveConversations,
  planReplaceSealed,
  planReplaceSummary,
  planRetireBeside,
  planSetHidden,
  planStoreRemade,
  planStoreSummary,
  planSwapRemade,
  planTransplant,
  planTransplantation,
  prepareMoved,
  proveArchive,
  proveConversations,
} from "@lossless/core/adapter";
import type { Asking, StorageProof } from "@lossless/core/adapter";
import type { Derive, Intake, Plan, Store } from "@lossless/core/ports";
import { MemoryArchive } from "./memory-archive.ts";
import { coverVerbs } from "./memory/cover.ts";
import { documentVerbs } from "./memory/documents.ts";
import { clueVerbs } from "./memory/find-clues.ts";
import { graphVerbs } from "./memory/graph.ts";
import { readVerbs } from "./memory/read.ts";
import { repairVerbs } from "./memory/repair.ts";
import { spendVerbs } from "./memory/spend.ts";
import { Terms } from "./memory/terms.ts";
import { transferVerbs } from "./memory/transfer.ts";
import { vectorVerbs } from "./memory/vectors.ts";

/** Maps cannot be damaged, and a search reads the texts themselves. */
const NO_STORAGE: StorageProof = {
  checkDatabase: () => undefined,
  openIndex: () => ({ expect: () => undefined, finish: () => undefined }),
  checkVectors: () => undefined,
  isTransient: () => false,
};

/** A store of maps only needs to know how to read a message. */
export function openMemoryStore(derive: Derive, archive: MemoryArchive = new MemoryArchive()): Store {
  const write = async <T>(plan: () => Plan<T>): Promise<T> => archive.write(plan);
  const read = async <T>(plan: () => Asking<T>): Promise<T> => archive.read(plan);
  const terms = new Terms(archive, derive);
  const verbs = {
    ...readVerbs(archive),
    ...coverVerbs(archive),
    ...graphVerbs(archive),
    ...spendVerbs(archive),
    ...documentVerbs(archive, terms),
    ...clueVerbs(archive, terms),
    ...vectorVerbs(archive),
    ...transferVerbs(archive),
    ...repairVerbs(archive),
  };
  const append: Store["append"] = async (batch) => {
    const isNew = new Set(archive.read(() => planFindNew(batch)));
    const events = batch.events.map((event) => ({
      event,
      prepared: isNew.has(event) ? event.prepare() : null,
    }));
    const result = archive.write(() => planAppend({ ...batch, events, derive }));
    return { ...result, indexProblem: null };
  };
  const intake: Intake = {
    ...verbs,
    append,
    proveMoved: (ids, withDerive) =>
      read(() => proveConversations(ids, { derive: withDerive, storage: NO_STORAGE })),
    moveSessions: async (...request) => void archive.write(() => planMoveSessions(...request)),
    openMoved: (...request) => write(() => planOpenMoved(...request)),
    async moveRows(conversationId, rows, files, withDerive, now) {
      const ready = rows.map((row) => prepareMoved(row, files, withDerive));
      archive.write(() => planMoveRows(conversationId, ready, now));
    },
    noteImported: async (...request) => void archive.write(() => planNoteImported(...request)),
    moveSummaries: (...request) => write(() => planMoveSummaries(...request)),
    moveCover: async (...request) => void archive.write(() => planMoveCover(...request)),
    retireBeside: async (id) => void archive.write(() => planRetireBeside(id)),
  };
  return {
    ...verbs,
    append,
    flushIndex: async () => undefined,
    reindex: async () => archive.count("messages", { forgotten_at: null }),
    relabel: (...request) => write(() => planRelabel(...request)),
    relabelSession: (request) => write(() => planRelabelSession(request)),
    setHidden: (session, reason, eventIds, now, mode) =>
      write(() => planSetHidden({ session, reason, eventIds, now, mode })),
    recordBoundary: (request) => write(() => planBoundary(request)),
    label: (request) => write(() => planLabel(request)),
    findForkPoint: (request) => read(() => planForkPoint(request)),
    fork: (request) => write(() => planFork(request)),
    storeSummary: (request) => write(() => planStoreSummary(request)),
    publishStored: (request) => write(() => planPublishStored(request)),
    storeRemade: (...request) => write(() => planStoreRemade(...request)),
    swapRemade: (request) => write(() => planSwapRemade(request)),
    replaceSummary: (...request) => write(() => planReplaceSummary(...request)),
    async dissolveSummary({ summaryId, dryRun, now }) {
      if (dryRun) return archive.read(() => planDissolution(summaryId));
      return archive.write(() => planDissolve(summaryId, now));
    },
    dropSummaries: (...request) => write(() => planDropSummaries(...request)),
    addDebt: async (debt) => void archive.write(() => planAddDebt(debt)),
    readDebt: (id) => read(() => planReadDebt(id)),
    claimDebt: (request) => write(() => planClaimDebt(request)),
    renewDebt: (request) => write(() => planRenewDebt(request)),
    settleDebt: async (request) => void archive.write(() => planSettleDebt(request)),
    closeDebt: (id) => write(() => planCloseDebt(id)),
    claimUpkeep: (request) => write(() => planClaimUpkeep(request)),
    releaseUpkeep: async (request) => void archive.write(() => planReleaseUpkeep(request)),
    saveGuard: async (guard) => void archive.write(() => planSaveGuard(guard)),
    insertGrant: (...request) => write(() => planInsertGrant(...request)),
    findGrantOf: (...request) => read(() => planFindGrant(...request)),
    revokeGrants: (...request) => write(() => planRevokeGrants(...request)),
    sweepGrants: (before) => write(() => planSweepGrants(before)),
    chargeGrant: (...request) => write(() => planChargeGrant(...request)),
    async transplant(request, withDerive) {
      if (request.dryRun) return archive.read(() => planTransplantation(request));
      return archive.write(() => planTransplant(request, withDerive));
    },
    listRecallParts: (messageIds) => read(() => planRecallParts(messageIds)),
    readFamily: (request) => read(() => planFamily(request)),
    readForkItems: (id) => read(() => planForkItems(id)),
    readCalibration: (model) => read(() => planReadCalibration(model)),
    readCacheUsage: (id) => read(() => planReadCacheUsage(id)),
    readGuards: () => read(planReadGuards),
    listDebts: () => read(planListDebts),
    listImports: () => read(planListImports),
    listBlobs: () => read(planListBlobs),
    async removeUnnamed(paths) {
      const named = new Set(await read(planListBlobs));
      return paths.filter((path) => !named.has(path) && archive.blobs.remove(path));
    },
    listPublished: (request) => read(() => planListPublished(request)),
    listSealed: (request) => read(() => planListSealed(request)),
    planForget: (...request) => read(() => planForgetting(...request)),
    async forget(request) {
      const outcome = archive.write(() => planForget(request));
      if (outcome.kind === "forgotten") for (const { blob } of outcome.plan.files) archive.blobs.remove(blob);
      return outcome;
    },
    isForgettingOpen: async () => false,
    wipeFreed: async () => true,
    readTies: (ids) => read(() => planReadTies(ids)),
    async removeConversations(expected) {
      const removal = archive.write(() => planRemoveConversations(expected));
      for (const blob of removal?.blobs ?? []) archive.blobs.remove(blob);
      return removal?.counts ?? null;
    },
    recordUnsealing: async (...request) => void archive.write(() => planRecordUnsealing(...request)),
    replaceSealed: async (...request) => void archive.write(() => planReplaceSealed(...request)),
    verify: (withDerive, onProgress, proveArrival) =>
      read(() => proveArchive({ derive: withDerive, onProgress, proveArrival, storage: NO_STORAGE })),
    async backup() {
      throw new EngineError("usage", "cannot copy an archive that is kept in memory to a file");
    },
    withSnapshot: (work) => work(openMemoryStore(derive, new MemoryArchive(archive))),
    bringIn: (work) => archive.writeThroughout(() => work(intake)),
    close: async () => undefined,
  };
}
