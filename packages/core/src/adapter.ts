/**
 * What a database adapter is built from, besides the ports: the rules of the archive as plans, the storage formats, errors. An adapter
 * answers the questions of plans and writes their changes; everything that two adapters would both have to know is exported here.
 */
export { planAppend, planFindNew } from "./archive/append.ts";
export type { AppendPlanResult } from "./archive/append.ts";
export { Changes } from "./archive/changes.ts";
export type { RowWriter } from "./archive/changes.ts";
export {
  countHeld,
  countPrefix,
  countShown,
  HeadTaker,
  isSpoken,
  isUsable,
  keepApart,
  listGaps,
  readTools,
  takeNewest,
  toBoundary,
  toCoverItem,
  toReserve,
} from "./archive/cover-reads.ts";
export type { CoverItemColumns, ReserveColumns, ShownCounters, SpanColumns } from "./archive/cover-reads.ts";
export {
  isLeaseFree,
  planAddDebt,
  planClaimDebt,
  planClaimUpkeep,
  planCloseDebt,
  planReadDebt,
  planReleaseUpkeep,
  planRenewDebt,
  planSettleDebt,
} from "./archive/debts.ts";
export { planDropSummaries } from "./archive/drop-summaries.ts";
export { planDissolution, planDissolve } from "./archive/dissolve.ts";
export { planForget, planForgetting } from "./archive/forget.ts";
export { planFork, planForkPoint } from "./archive/fork.ts";
export {
  planChargeGrant,
  planFindGrant,
  planInsertGrant,
  planRevokeGrants,
  planSweepGrants,
} from "./archive/grants.ts";
export { planSaveGuard } from "./archive/guards.ts";
export { EVENT_KIND } from "./archive/identity.ts";
export { planNoteImported } from "./archive/imports.ts";
export { LABEL_COLUMNS, planLabel } from "./archive/labels.ts";
export { mayBeBookkeeping } from "./message/bookkeeping.ts";
export { readOwnTime } from "./message/normalize.ts";
export {
  planForkItems,
  planListBlobs,
  planListDebts,
  planListImports,
  gatherFamily,
  planFamily,
  planListPublished,
  planListSealed,
  planReadCacheUsage,
  planReadCalibration,
  planReadGuards,
} from "./archive/look-ups.ts";
export type { FamilyRow } from "./archive/look-ups.ts";
export { PAGE_ROWS } from "./archive/pages.ts";
export {
  planMoveCover,
  planMoveSessions,
  planMoveSummaries,
  planOpenMoved,
  planRetireBeside,
} from "./archive/move-conversation.ts";
export { planMoveRows, prepareMoved } from "./archive/move-in.ts";
export {
  countReasons,
  toCandidates,
  nameFilesByContent,
  toConversation,
  toFoundSummary,
  toLargeFile,
  toListed,
  toMessage,
  toMessageOutline,
  toMovedFile,
  toMovedMessage,
  toMovedSession,
  toMovedSummary,
  toPart,
  toReference,
  toRunItem,
  toSpace,
  toSummary,
  toSummaryOutline,
  toSummaryCandidate,
  toText,
} from "./archive/nouns.ts";
export type {
  ConversationColumns,
  FoundSummaryColumns,
  MessageColumns,
  MovedColumns,
  OutlineColumns,
  CandidateColumns,
  ReferenceColumns,
  SummaryColumns,
  TextColumns,
} from "./archive/nouns.ts";
export { Conflict } from "./archive/plan.ts";
export type { Asking } from "./archive/plan.ts";
export { planPublishStored, planStoreSummary } from "./archive/publish.ts";
export { addSpend } from "./archive/spend.ts";
export { planBoundary, planRelabel, planRelabelSession, planSetHidden } from "./archive/records.ts";
export { planNextStale, planStoreRemade, planSwapRemade } from "./archive/remake.ts";
export { FARTHEST_CALL, gatherRecallParts, planRecallParts } from "./archive/recall-parts.ts";
export type { FoundPart } from "./archive/recall-parts.ts";
export { toRedaction } from "./archive/redaction.ts";
export type { RedactionRow, SealedValueRow } from "./archive/redaction.ts";
export { planReadTies, planRemoveConversations } from "./archive/remove.ts";
export { planReplaceSummary } from "./archive/replace.ts";
export { listPayloads, putTogether, toCutPayloads } from "./archive/restore.ts";
export type { CutPart, PartRecord, StoredBody } from "./archive/restore.ts";
export { hashSeal, SEAL_KINDS, SEALED } from "./archive/seals.ts";
export type { SealedRow, SealKind } from "./archive/seals.ts";
export { shareStorage, toCounts } from "./archive/shares.ts";
export type { StorageKinds } from "./archive/shares.ts";
export type { IndexProof, StorageProof } from "./archive/storage-proof.ts";
export { hashSummary } from "./archive/summary.ts";
export { planTransplant, planTransplantation } from "./archive/transplant.ts";
export { planRecordUnsealing, planReplaceSealed } from "./archive/vault.ts";
export type { Key } from "./archive/tables.ts";
export { proveArchive, proveConversations } from "./archive/verify.ts";
export type { Problems } from "./archive/verify-problems.ts";
export { fitDimensions, isMostOfAll, LIKELY_PER_HIT, STRETCH_VECTORS } from "./archive/vector-reads.ts";
export { checkVector, refuseVector } from "./archive/verify-vectors.ts";
export { findFloor, isHiddenByBoundary } from "./model/boundaries.ts";
export type { Boundary } from "./model/boundaries.ts";
export { MAX_SUMMARIES_BEFORE } from "./model/cover.ts";
export type { CoverItem } from "./model/cover.ts";
export { EngineError, must } from "./model/errors.ts";
export type { ErrorCode } from "./model/errors.ts";
export { formatMessageId } from "./model/ids.ts";
export { renderReference } from "./model/large-file.ts";
export { ATTACHMENT_PREFIX, HIDDEN, hiddenMask, hiddenReasons, POSITION_STEP } from "./model/message.ts";
export type { HiddenReason, ImportMark, IngestedMessage, SessionRef } from "./model/message.ts";
export type { NextStep } from "./model/next-step.ts";
export type { ReserveSummary } from "./model/reserve.ts";
export { MAX_INTERVENING_MESSAGES } from "./model/tool-groups.ts";
export { UNCAPPED_PURPOSE } from "./store/folding.ts";
export { given } from "./text/json-object.ts";
export { dotProduct, NearestList, vectorFromBytes, vectorToBytes } from "./model/vector.ts";
export type { Neighbour } from "./model/vector.ts";
export { VectorCodes } from "./model/vector-codes.ts";
export type { CodedRow, NewRow } from "./model/vector-codes.ts";
export { APPLICATION_ID } from "./store/application-id.ts";
export { decodeBody, encodeBody, PLAIN } from "./store/body.ts";
export type { EncodedBody } from "./store/body.ts";
export { toListing } from "./store/clue-listing.ts";
export { BlobFolder } from "./store/blob-folder.ts";
export { BodyCache } from "./store/body-cache.ts";
export { makePage, parseCursor, placePage } from "./store/page.ts";
export { spliceRanges } from "./store/splice.ts";
export {
  ANALYSIS_VERSION,
  decodeTerms,
  encodeForIndex,
  FTS_TOKENIZE,
  DoubtReader,
  Spelling,
} from "./text/index.ts";
export type { IndexTerms, ReadTerms, SpellingDoubt } from "./text/index.ts";
