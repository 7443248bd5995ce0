/**
 * Folding as the engine offers it: when to fold, who does it, until when. Connects the pure planners, the executor and the summariser;
 * decides nothing about runs itself.
 *
 * Invariants: one process at a time folds a conversation (the lease on its debt); debt is one row, never dropped while the threshold is
 * exceeded.
 */
import { setImmediate } from "node:timers/promises";
import { measureSummary } from "../assemble/measure-summary.ts";
import { foldUntilUnder } from "../compact/execute.ts";
import type { FoldResult } from "../compact/execute.ts";
import { shouldCompact } from "../compact/policy.ts";
import type { FoldContext } from "../compact/steps.ts";
import { hasUpkeep, prepareNext, remakeNext, reserveNext } from "../compact/upkeep.ts";
import { makeSummaryId } from "../model/ids.ts";
import { applyFactor, removeFactor } from "../text/tokens.ts";
import type { Debt } from "../store/folding.ts";
import type { ConversationRow } from "../store/store.ts";
import { needConversation } from "./conversations.ts";
import type { ConversationChoice } from "./conversations.ts";
import { makePolicy, readFactor } from "./fold-policy.ts";
import type { ModelSituation, Situation } from "./fold-policy.ts";
import type { EngineState } from "./state.ts";
import { waitForEnd } from "./wait.ts";

export interface CompactRequest extends ModelSituation {
  readonly budgetTokens: number;
  /** Fold everything outside the tail even below the threshold, then continue until the context is under it. */
  readonly force?: boolean;
  /** Fold until the context has at most this many tokens. Replaces the threshold as the target. */
  readonly targetTokens?: number;
  readonly customInstructions?: string;
  readonly signal?: AbortSignal;
  /** Passes so far, and the maximum for all sweeps started so far. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A fold that the caller waits for, or one between turns. */
interface PaidRequest extends CompactRequest {
  readonly isBackground?: boolean;
}

export interface CompactResult {
  readonly conversationId: number;
  readonly compacted: boolean;
  readonly reason: string;
  /** Tokens of the stored context, before and after. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** The limit it was folded to: the requested target, or just under the threshold. */
  readonly targetTokens: number;
  readonly targetReached: boolean;
  readonly passes: number;
  readonly summaryIds: readonly string[];
}

/** Upkeep while the host is idle, for the budget the conversation is used with. */
export interface MaintainRequest extends ModelSituation {
  readonly budgetTokens: number;
  readonly signal?: AbortSignal;
}

/** Any debt that is due, in any conversation. */
export type PayNextRequest = Pick<CompactRequest, "signal" | "onProgress">;

export interface MaintainResult {
  readonly changed: boolean;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
/** Maximum steps of one kind per call; the rest is done next time. */
const MAX_UPKEEP_STEPS = 200;
/** Failed folds are retried after 5 minutes, then 10, at most 30. */
const BACKOFF_MS = 5 * 60_000;
const MAX_BACKOFF_MS = 30 * 60_000;
/** No provider caches a prompt for longer than this without a request: after that, a new front costs nothing. */
const COLD_AFTER_MS = 3_600_000;
/** Summaries are prepared once this share of the threshold is reached. */
const PREPARE_SHARE = 0.6;

const CANCELLED = "cancelled";
const BELOW_THRESHOLD = "below threshold";

export async function compact(
  engine: EngineState,
  request: ConversationChoice & CompactRequest,
): Promise<CompactResult> {
  const conversation = await needConversation(engine, request);
  await waitForEnd(engine.folding.background.get(conversation.conversationId), request.signal);
  return compactConversation(engine, conversation, request);
}

export async function maintain(
  engine: EngineState,
  request: ConversationChoice & MaintainRequest,
): Promise<MaintainResult> {
  const conversation = await needConversation(engine, request);
  // Join the work in progress, so that no summary is made, and paid for, twice.
  await waitForEnd(engine.folding.background.get(conversation.conversationId), request.signal);
  return maintainConversation(engine, conversation, request);
}

/** After a turn: if the threshold is reached, fold now, in the background, or leave it to workers, as configured. */
export async function watchThreshold(
  engine: EngineState,
  conversationId: number,
  { budgetTokens, model, contextWindow }: Situation,
): Promise<void> {
  const conversation = await engine.store.readConversation(conversationId);
  if (!conversation) return;
  const request = { budgetTokens, model, contextWindow };
  if (engine.settings.proactiveThresholdCompactionMode === "inline") {
    await compactConversation(engine, conversation, request);
    return;
  }
  if (await isDue(engine, conversation, request)) await noteDebt(engine, conversation, budgetTokens);
  if (engine.settings.proactiveThresholdCompactionMode !== "workers")
    foldInBackground(engine, conversation, request);
}

function foldInBackground(engine: EngineState, conversation: ConversationRow, request: Situation): void {
  const { conversationId } = conversation;
  const { background } = engine.folding;
  const { signal } = engine.closing;
  if (background.has(conversationId) || signal.aborted) return;
  const work: Promise<void> = setImmediate()
    .then(() => maintainConversation(engine, conversation, { ...request, signal }))
    .then(() => undefined)
    .catch((error: unknown) => {
      if (signal.aborted) return;
      const cause = error instanceof Error ? error.message : String(error);
      const message = `folding in the background failed: ${cause}`;
      engine.emit({ kind: "degraded", part: "summariser", message });
    })
    .finally(() => background.delete(conversationId));
  background.set(conversationId, work);
}

/** True when the conversation is at or above its threshold. */
async function isDue(
  engine: EngineState,
  conversation: ConversationRow,
  request: Situation,
): Promise<boolean> {
  return isAt(engine, conversation, request, 1);
}

/** Whether the context has reached this share of the threshold. */
async function isAt(
  engine: EngineState,
  conversation: ConversationRow,
  request: Situation,
  share: number,
): Promise<boolean> {
  const { conversationId } = conversation;
  const cover = await engine.store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
  const { contextThreshold } = makePolicy(engine, conversation, request);
  const factor = await readFactor(engine, conversationId, cover?.foldRevision ?? 0, request.model);
  const tokens = applyFactor(cover?.counters.shownTokens ?? 0, factor);
  return shouldCompact({ tokens, base: request.budgetTokens, threshold: share * contextThreshold });
}

async function noteDebt(
  engine: EngineState,
  conversation: ConversationRow,
  budgetTokens: number,
): Promise<void> {
  await engine.store.addDebt({
    conversationId: conversation.conversationId,
    budgetTokens,
    now: engine.clock.now(),
  });
}

/** Folds now; the caller waits. */
async function compactConversation(
  engine: EngineState,
  conversation: ConversationRow,
  request: CompactRequest,
): Promise<CompactResult> {
  const { conversationId } = conversation;
  const force = request.force ?? false;
  const isWanted =
    force || request.targetTokens !== undefined || (await isDue(engine, conversation, request));
  const targetTokens = await findTarget(engine, conversation, request);
  if (!isWanted) return unchanged(engine, conversationId, targetTokens, BELOW_THRESHOLD);
  const work = async (): Promise<CompactResult> => {
    await noteDebt(engine, conversation, request.budgetTokens);
    const { holder, leaseMs } = engine.folding;
    const claim = { conversationId, holder, now: engine.clock.now(), leaseMs };
    const debt = await engine.store.claimDebt({ ...claim, force: true });
    if (!debt)
      return unchanged(engine, conversationId, targetTokens, "another process is folding this conversation");
    return payDebt(engine, conversation, request, debt.attempts);
  };
  return takeTurn(engine, {
    conversationId,
    isUrgent: true,
    signal: request.signal,
    work,
    cancelled: () => unchanged(engine, conversationId, targetTokens, CANCELLED),
  });
}

/**
 * Upkeep for idle times: pays the debt that is due, remakes stale summaries, prepares the summaries that the next fold will need, and makes
 * stand-ins up to the root. Returns whether anything was done.
 */
async function maintainConversation(
  engine: EngineState,
  conversation: ConversationRow,
  request: MaintainRequest,
): Promise<MaintainResult> {
  return takeTurn(engine, {
    conversationId: conversation.conversationId,
    isUrgent: false,
    signal: request.signal,
    work: async () => {
      const paid = await payDebtIfDue(engine, conversation, request);
      const changed = await upkeep(engine, conversation, request);
      return { changed: paid || changed };
    },
    cancelled: async () => ({ changed: false }),
  });
}

async function payDebtIfDue(
  engine: EngineState,
  conversation: ConversationRow,
  request: MaintainRequest,
): Promise<boolean> {
  const { conversationId } = conversation;
  if (await isDue(engine, conversation, request)) await noteDebt(engine, conversation, request.budgetTokens);
  else if (!(await engine.store.readDebt(conversationId))) return false;
  const now = engine.clock.now();
  const debt = await engine.store.claimDebt({
    conversationId,
    holder: engine.folding.holder,
    now,
    leaseMs: engine.folding.leaseMs,
  });
  return debt !== null && (await payClaimed(engine, conversation, request, debt)).compacted;
}

/** Pays a debt whose lease is held, unless the conversation has shrunk meanwhile. */
async function payClaimed(
  engine: EngineState,
  conversation: ConversationRow,
  request: Omit<CompactRequest, "budgetTokens">,
  { budgetTokens, attempts }: Debt,
): Promise<CompactResult> {
  const { conversationId } = conversation;
  const owed = { ...request, budgetTokens, isBackground: true };
  if (await isDue(engine, conversation, owed)) return payDebt(engine, conversation, owed, attempts);
  await settleDebt(engine, conversationId, null, 0);
  const targetTokens = await findTarget(engine, conversation, owed);
  return unchanged(engine, conversationId, targetTokens, BELOW_THRESHOLD);
}

/**
 * Pays the oldest debt of the archive that is due and that nobody is working on. Any number of workers, on any machine, do this. The debt
 * is claimed before the turn in this process begins, so the lease is checked again then.
 */
export async function payNextDebt(
  engine: EngineState,
  request: PayNextRequest = {},
): Promise<CompactResult | null> {
  const { store, clock, folding } = engine;
  const { holder, leaseMs } = folding;
  const debt = await store.claimDebt({ conversationId: null, holder, now: clock.now(), leaseMs });
  if (debt === null) return null;
  const { conversationId } = debt;
  const conversation = await needConversation(engine, { conversationId });
  const giveBack = async (reason: string): Promise<CompactResult> => {
    await settleDebt(engine, conversationId, reason, 0);
    return unchanged(engine, conversationId, 0, reason);
  };
  return takeTurn(engine, {
    conversationId,
    isUrgent: false,
    signal: request.signal,
    work: async () =>
      (await store.renewDebt({ conversationId, holder, until: clock.now() + leaseMs }))
        ? payClaimed(engine, conversation, request, debt)
        : unchanged(engine, conversationId, 0, "it was folded meanwhile"),
    cancelled: () => giveBack(CANCELLED),
  });
}

async function upkeep(
  engine: EngineState,
  conversation: ConversationRow,
  request: MaintainRequest,
): Promise<boolean> {
  const { conversationId } = conversation;
  const now = engine.clock.now();
  // A failed fold is retried later; work that can wait does not try earlier.
  const debt = await engine.store.readDebt(conversationId);
  if (debt && debt.nextAttemptAt > now) return false;
  // Usually there is nothing to do; finding that out writes nothing.
  if (!(await isUpkeepDue(engine, conversation, request))) return false;
  if (
    !(await engine.store.claimUpkeep({
      conversationId,
      holder: engine.folding.holder,
      now,
      leaseMs: engine.folding.leaseMs,
    }))
  )
    return false;
  try {
    return await keepLease(engine, conversationId, request.signal, async (signal) => {
      const context = makeContext(
        engine,
        conversation,
        { ...request, signal },
        engine.settings.sweepDeadlineMs,
      );
      let changed = await repeat(engine, context, remakeNext);
      if (isCold(engine, conversation))
        changed = (await engine.store.swapRemade({ conversationId, now })) > 0 || changed;
      if (await isAt(engine, conversation, request, PREPARE_SHARE))
        changed = (await repeat(engine, context, prepareNext)) || changed;
      return (await repeat(engine, context, reserveNext)) || changed;
    });
  } finally {
    await engine.store.releaseUpkeep({ conversationId, holder: engine.folding.holder });
  }
}

async function isUpkeepDue(
  engine: EngineState,
  conversation: ConversationRow,
  request: MaintainRequest,
): Promise<boolean> {
  const isStale = await engine.store.hasStale(conversation.conversationId);
  if (isStale && isCold(engine, conversation)) return true;
  const context = makeContext(engine, conversation, request, engine.settings.sweepDeadlineMs);
  return hasUpkeep(context, await isAt(engine, conversation, request, PREPARE_SHARE));
}

/** Repeats a step until nothing is left to do, time is up, or a caller wants to fold now. */
async function repeat(
  engine: EngineState,
  context: FoldContext,
  step: (context: FoldContext) => Promise<boolean>,
): Promise<boolean> {
  let steps = 0;
  const mayGoOn = (): boolean =>
    !context.signal.aborted &&
    !engine.folding.waiting.get(context.conversationId) &&
    steps < MAX_UPKEEP_STEPS;
  try {
    while (mayGoOn() && (await step(context))) steps++;
  } catch (error) {
    if (!context.signal.aborted) throw error;
  }
  return steps > 0;
}

function isCold(engine: EngineState, { lastAt }: ConversationRow): boolean {
  return lastAt !== null && engine.clock.now() - lastAt > COLD_AFTER_MS;
}

interface Turn<T> {
  readonly conversationId: number;
  /** Upkeep yields to it after its next step. */
  readonly isUrgent: boolean;
  readonly signal: AbortSignal | undefined;
  readonly work: () => Promise<T>;
  /** The result if the caller cancels before its turn begins. */
  readonly cancelled: () => Promise<T>;
}

/** Runs work on a conversation after the work in progress in this process. The lease keeps other processes out. */
function takeTurn<T>({ folding }: EngineState, turn: Turn<T>): Promise<T> {
  const { conversationId, isUrgent, signal } = turn;
  const { turns, waiting } = folding;
  const count = (by: number): unknown =>
    isUrgent && waiting.set(conversationId, (waiting.get(conversationId) ?? 0) + by);
  const before = turns.get(conversationId);
  count(1);
  const result = (async () => {
    await waitForEnd(before, signal);
    count(-1);
    return signal?.aborted ? turn.cancelled() : turn.work();
  })();
  // A cancelled turn ends before the one it waited for, so the next turn waits for both.
  const ended = Promise.allSettled([before, result]);
  turns.set(conversationId, ended);
  void ended.then(() => turns.get(conversationId) === ended && turns.delete(conversationId));
  return result;
}

/** Renews the lease while the work lasts; work whose lease another process took over ends. */
async function keepLease<T>(
  engine: EngineState,
  conversationId: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController();
  const renew = async (): Promise<void> => {
    try {
      const until = engine.clock.now() + engine.folding.leaseMs;
      if (!(await engine.store.renewDebt({ conversationId, holder: engine.folding.holder, until })))
        lost.abort();
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      engine.emit({
        kind: "degraded",
        part: "summariser",
        message: `cannot renew the lease of a fold: ${cause}`,
      });
    }
  };
  const timer = setInterval(() => void renew(), engine.folding.leaseMs / 3);
  timer.unref();
  try {
    return await work(signal ? AbortSignal.any([signal, lost.signal]) : lost.signal);
  } finally {
    clearInterval(timer);
  }
}

async function payDebt(
  engine: EngineState,
  conversation: ConversationRow,
  request: PaidRequest,
  attempts: number,
): Promise<CompactResult> {
  const { conversationId } = conversation;
  const isRequested = request.force === true || request.targetTokens !== undefined;
  const deadlineMs = isRequested
    ? engine.settings.compactUntilUnderDeadlineMs
    : engine.settings.sweepDeadlineMs;
  try {
    const targetTokens = await findTarget(engine, conversation, request);
    const tokensBefore = await countShown(engine, conversationId);
    const report = await keepLease(engine, conversationId, request.signal, async (signal) => {
      const context = makeContext(engine, conversation, { ...request, signal }, deadlineMs);
      // A fold begins an epoch in any case, so swap in remade summaries with it.
      await engine.store.swapRemade({ conversationId, now: engine.clock.now() });
      const goal = {
        targetTokens,
        foldsAll: request.targetTokens === undefined,
        isForced: isRequested,
        preparesFirst: request.isBackground ?? false,
      };
      return foldUntilUnder(context, goal, await countShown(engine, conversationId));
    });
    const compacted = report.passes > 0;
    // Interrupted work stays due; everything else is done, or would not improve by a retry.
    const isOpen =
      report.stopped === "deadline" || report.stopped === "aborted" || report.stopped === "stale";
    // An aborted fold has not failed: another process may continue at once.
    const hasFailed = !compacted && report.stopped !== "aborted";
    await settleDebt(
      engine,
      conversationId,
      isOpen ? `stopped: ${report.stopped}` : null,
      hasFailed ? attempts : 0,
    );
    const { passes, tokensAfter, summaryIds } = report;
    if (compacted) engine.emit({ kind: "compacted", conversationId, tokensBefore, tokensAfter });
    return {
      conversationId,
      compacted,
      reason: describeStop(report),
      tokensBefore,
      tokensAfter,
      targetTokens,
      targetReached: tokensAfter <= targetTokens,
      passes,
      summaryIds,
    };
  } catch (error) {
    await settleDebt(
      engine,
      conversationId,
      error instanceof Error ? error.message : String(error),
      attempts,
    );
    throw error;
  }
}

/** How many stored tokens a fold leaves at most: the requested target or just under the threshold, in the model's count. */
async function findTarget(
  engine: EngineState,
  conversation: ConversationRow,
  request: CompactRequest,
): Promise<number> {
  const { conversationId, foldRevision } = conversation;
  const { contextThreshold } = makePolicy(engine, conversation, request);
  const wanted = request.targetTokens ?? Math.max(0, Math.ceil(contextThreshold * request.budgetTokens) - 1);
  return removeFactor(wanted, await readFactor(engine, conversationId, foldRevision, request.model));
}

async function countShown(engine: EngineState, conversationId: number): Promise<number> {
  const cover = await engine.store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
  return cover?.counters.shownTokens ?? 0;
}

function makeContext(
  engine: EngineState,
  conversation: ConversationRow,
  request: {
    budgetTokens: number;
    targetTokens?: number;
    signal?: AbortSignal;
    customInstructions?: string;
    onProgress?: CompactRequest["onProgress"];
  } & ModelSituation,
  deadlineMs: number,
): FoldContext {
  const { conversationId } = conversation;
  const timeout = AbortSignal.timeout(Math.min(deadlineMs, MAX_TIMER_MS));
  const policy = makePolicy(engine, conversation, request);
  return {
    store: engine.store,
    summarize: engine.summarize,
    policy,
    conversationId,
    budgetTokens: request.budgetTokens,
    makeSummaryId: () => makeSummaryId((size) => engine.clock.random(size)),
    measure: (summary) => measureSummary(summary, engine.settings.timezone),
    seenRevision: () => engine.folding.seenRevisions.get(conversationId) ?? null,
    now: () => engine.clock.now(),
    signal: request.signal ? AbortSignal.any([request.signal, timeout]) : timeout,
    onPass: (passes) => {
      const sweeps = Math.ceil(passes / policy.maxSweepIterations);
      request.onProgress?.(passes, sweeps * policy.maxSweepIterations);
    },
    customInstructions: request.customInstructions,
  };
}

async function settleDebt(
  engine: EngineState,
  conversationId: number,
  failure: string | null,
  attempts: number,
): Promise<void> {
  const now = engine.clock.now();
  const backoff = attempts <= 0 ? 0 : Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (attempts - 1));
  await engine.store.settleDebt({
    conversationId,
    holder: engine.folding.holder,
    now,
    failure,
    retryAt: now + backoff,
  });
}

async function unchanged(
  engine: EngineState,
  conversationId: number,
  targetTokens: number,
  reason: string,
): Promise<CompactResult> {
  const tokens = await countShown(engine, conversationId);
  return {
    conversationId,
    compacted: false,
    reason,
    tokensBefore: tokens,
    tokensAfter: tokens,
    targetTokens,
    targetReached: tokens <= targetTokens,
    passes: 0,
    summaryIds: [],
  };
}

function describeStop(report: FoldResult): string {
  if (report.passes === 0 && report.stopped === "nothing_to_fold") return "nothing to fold";
  return {
    no_progress: "a sweep saved nothing",
    pass_limit: "the pass limit was reached",
    target_reached: "under the target",
    nothing_to_fold: "everything outside the tail is folded",
    deadline: "the deadline was reached",
    aborted: CANCELLED,
    stale: "the conversation kept changing",
  }[report.stopped];
}
