/**
 * Folding as the engine offers it: when to fold, who pays, until when; and the context for a budget. Joins the pure planners, the
 * executor, the summariser and the assembler; decides nothing about runs or choices itself.
 *
 * Invariants: a conversation is folded by one process at a time (the lease on its debt); debt is one row and is never dropped while
 * the threshold is crossed; assembling neither writes nor waits for folding.
 */
import { renderSummary } from "../assemble/render.ts";
import { assembleContext } from "../assemble/assemble.ts";
import type { AssembledContext } from "../assemble/assemble.ts";
import type { ChosenItem } from "../assemble/choose.ts";
import { toForkItems } from "../assemble/fork-front.ts";
import type { Provider } from "../assemble/grammars.ts";
import { foldUntilUnder } from "../compact/execute.ts";
import type { FoldReport } from "../compact/execute.ts";
import { shouldCompact } from "../compact/policy.ts";
import type { CompactionPolicy } from "../compact/policy.ts";
import type { FoldContext } from "../compact/steps.ts";
import { hasUpkeep, prepareNext, remakeNext, reserveNext } from "../compact/upkeep.ts";
import { nameModel } from "../model/complete.ts";
import { resolveThreshold } from "../model/context-threshold.ts";
import { EngineError } from "../model/errors.ts";
import type { Clock, EventSink } from "../model/events.ts";
import type { ModelIdentity } from "../model/message.ts";
import { isSubagentKey } from "../model/session-patterns.ts";
import type { Settings } from "../model/settings.ts";
import { applyFactor, estimateTextTokens, MESSAGE_OVERHEAD_TOKENS, removeFactor } from "../model/tokens.ts";
import type { RunItem } from "../store/folding.ts";
import type { ForkItem } from "../store/forks.ts";
import type { ConversationRow, Store } from "../store/store.ts";
import type { Summarize } from "../summarize/summarize.ts";

/** What a turn says about the model it is for. */
export interface ModelSituation {
  readonly model?: ModelIdentity;
  /** The model's window as the host states it. */
  readonly contextWindow?: number;
}

/** A budget and the model it is for. */
type Situation = { readonly budgetTokens: number } & ModelSituation;

export interface CompactRequest extends ModelSituation {
  readonly budgetTokens: number;
  /** Fold everything outside the tail even below the threshold, then on until the context is under it. */
  readonly force?: boolean;
  /** Fold until the context has at most this many tokens. Replaces the threshold as the target. */
  readonly targetTokens?: number;
  readonly customInstructions?: string;
  readonly signal?: AbortSignal;
  /** Passes so far, and how many the sweeps begun so far may have. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** A fold that somebody waits for, or one between turns. */
interface PaidRequest extends CompactRequest {
  readonly isBackground?: boolean;
}

export interface CompactAnswer {
  readonly conversationId: number;
  readonly compacted: boolean;
  readonly reason: string;
  /** Tokens of the stored context, before and after. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** How many tokens it was to have at most: the requested target, or just under the threshold. */
  readonly targetTokens: number;
  readonly targetReached: boolean;
  readonly passes: number;
  readonly summaryIds: readonly string[];
}

/** Work in a quiet moment, for the budget the conversation is used with. */
export interface UpkeepRequest extends ModelSituation {
  readonly budgetTokens: number;
  readonly signal?: AbortSignal;
}

export interface AssembleRequest extends ModelSituation {
  readonly budgetTokens: number;
  /** Whose grammar the messages must satisfy; every provider's when absent. */
  readonly provider?: Provider;
  /** A position: the context as if nothing from there on had been said, with today's fold. */
  readonly endBefore?: number;
}

/** How long a process that folds is believed to be alive without a sign; it gives one three times as often. */
const LEASE_MS = 120_000;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Steps of one kind in one go; what is left is done the next time. */
const MAX_UPKEEP_STEPS = 200;
/** Failed folds are tried again after 5 minutes, then 10, at most 30. */
const BACKOFF_MS = 5 * 60_000;
const MAX_BACKOFF_MS = 30 * 60_000;
/** Without `freshTailMaxTokens`, folds leave at most this share of the budget alone: else a small window folds at every turn. */
const TAIL_SHARE = 0.3;
/** A running turn longer than this share of the budget is folded while it runs, else a small window could never be folded. */
const TURN_SHARE = 0.4;
/** No provider keeps a prompt cached for longer than this without a request: a new front costs nothing then. */
const COLD_AFTER_MS = 3_600_000;
/** No summary aims at more than this share of the threshold, which is what all of them together may have: see `prefixTargetTokens`. */
const SUMMARY_SHARE = 0.5;
/** Summaries are prepared once this share of the threshold is reached. */
const PREPARE_SHARE = 0.6;

export class Folding {
  #store: Store;
  #settings: Settings;
  #summarize: Summarize;
  #clock: Clock;
  #emit: EventSink;
  #holder: string;
  #leaseMs: number;
  /** Work on a conversation happens one after the other, so that nothing is made, and paid for, twice. */
  #turns = new Map<number, Promise<unknown>>();
  /** How many wait to fold a conversation now: upkeep gives way to them after its next step. */
  #waiting = new Map<number, number>();
  /** The fold revision each conversation was last assembled at here: a stand-in made later waits, so that the front does not change. */
  #seen = new Map<number, number>();
  /** The model's factor, fixed while the front of the prompt is: it changes only with an epoch. */
  #factors = new Map<string, { foldRevision: number; factor: number }>();

  constructor(options: {
    store: Store;
    settings: Settings;
    summarize: Summarize;
    clock: Clock;
    emit: EventSink;
    leaseMs?: number | undefined;
  }) {
    this.#store = options.store;
    this.#settings = options.settings;
    this.#summarize = options.summarize;
    this.#clock = options.clock;
    this.#emit = options.emit;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#holder = `${process.pid}-${Buffer.from(options.clock.random(6)).toString("hex")}`;
  }

  /** True when the conversation is at or above its threshold. */
  async isDue(conversation: ConversationRow, request: Situation): Promise<boolean> {
    return this.#isAt(conversation, request, 1);
  }

  /** Whether this share of the way to the threshold is gone. */
  async #isAt(conversation: ConversationRow, request: Situation, share: number): Promise<boolean> {
    const { conversationId } = conversation;
    const cover = await this.#store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
    const { contextThreshold } = this.#policy(conversation, request);
    const factor = await this.#factor(conversationId, cover?.foldRevision ?? 0, request.model);
    const tokens = applyFactor(cover?.counters.shownTokens ?? 0, factor);
    return shouldCompact({ tokens, base: request.budgetTokens, threshold: share * contextThreshold });
  }

  async noteDebt(conversation: ConversationRow, budgetTokens: number): Promise<void> {
    await this.#store.addDebt({
      conversationId: conversation.conversationId,
      budgetTokens,
      now: this.#clock.now(),
    });
  }

  /** Folds now, in the caller's time. */
  async compact(conversation: ConversationRow, request: CompactRequest): Promise<CompactAnswer> {
    const { conversationId } = conversation;
    const force = request.force ?? false;
    const isWanted = force || request.targetTokens !== undefined || (await this.isDue(conversation, request));
    const targetTokens = await this.#findTarget(conversation, request);
    if (!isWanted) return this.#unchanged(conversationId, targetTokens, "below threshold");
    return this.#takeTurn(conversationId, true, async () => {
      await this.noteDebt(conversation, request.budgetTokens);
      const claim = { conversationId, holder: this.#holder, now: this.#clock.now(), leaseMs: this.#leaseMs };
      const debt = await this.#store.claimDebt({ ...claim, force: true });
      if (!debt)
        return this.#unchanged(conversationId, targetTokens, "another process is folding this conversation");
      return this.#pay(conversation, request, debt.attempts);
    });
  }

  /**
   * Work for quiet moments: pays the debt that is due, remakes what tells something old, prepares the summaries the next fold will want,
   * and makes stand-ins up to the root. Returns whether anything was done.
   */
  async maintain(conversation: ConversationRow, request: UpkeepRequest): Promise<{ changed: boolean }> {
    return this.#takeTurn(conversation.conversationId, false, async () => {
      const paid = await this.#payDebt(conversation, request);
      const changed = await this.#upkeep(conversation, request);
      return { changed: paid || changed };
    });
  }

  async #payDebt(conversation: ConversationRow, request: UpkeepRequest): Promise<boolean> {
    const { conversationId } = conversation;
    if (await this.isDue(conversation, request)) await this.noteDebt(conversation, request.budgetTokens);
    else if (!(await this.#store.readDebt(conversationId))) return false;
    const now = this.#clock.now();
    const debt = await this.#store.claimDebt({
      conversationId,
      holder: this.#holder,
      now,
      leaseMs: this.#leaseMs,
    });
    if (!debt) return false;
    const owed = { ...request, budgetTokens: debt.budgetTokens, isBackground: true };
    if (await this.isDue(conversation, owed))
      return (await this.#pay(conversation, owed, debt.attempts)).compacted;
    await this.#settle(conversationId, null, 0);
    return false;
  }

  async #upkeep(conversation: ConversationRow, request: UpkeepRequest): Promise<boolean> {
    const { conversationId } = conversation;
    const now = this.#clock.now();
    // A fold that failed is tried again later; work that can wait does not try before it.
    const debt = await this.#store.readDebt(conversationId);
    if (debt && debt.nextAttemptAt > now) return false;
    // Most quiet moments have nothing to do: to find that out, nothing is written.
    if (!(await this.#hasUpkeep(conversation, request))) return false;
    if (
      !(await this.#store.claimUpkeep({ conversationId, holder: this.#holder, now, leaseMs: this.#leaseMs }))
    )
      return false;
    try {
      return await this.#keepLease(conversationId, request.signal, async (signal) => {
        const context = await this.#context(
          conversation,
          { ...request, signal },
          this.#settings.sweepDeadlineMs,
        );
        let changed = await this.#repeat(context, remakeNext);
        if (this.#isCold(conversation))
          changed = (await this.#store.swapRemade({ conversationId, now })) > 0 || changed;
        if (await this.#isAt(conversation, request, PREPARE_SHARE))
          changed = (await this.#repeat(context, prepareNext)) || changed;
        return (await this.#repeat(context, reserveNext)) || changed;
      });
    } finally {
      await this.#store.releaseUpkeep({ conversationId, holder: this.#holder });
    }
  }

  async #hasUpkeep(conversation: ConversationRow, request: UpkeepRequest): Promise<boolean> {
    const isStale = await this.#store.hasStale(conversation.conversationId);
    if (isStale && this.#isCold(conversation)) return true;
    const context = await this.#context(conversation, request, this.#settings.sweepDeadlineMs);
    return hasUpkeep(context, await this.#isAt(conversation, request, PREPARE_SHARE));
  }

  /** Step after step until nothing is left to do, time is up, or somebody wants to fold now. */
  async #repeat(context: FoldContext, step: (context: FoldContext) => Promise<boolean>): Promise<boolean> {
    let steps = 0;
    const mayGoOn = (): boolean =>
      !context.signal.aborted && !this.#waiting.get(context.conversationId) && steps < MAX_UPKEEP_STEPS;
    try {
      while (mayGoOn() && (await step(context))) steps++;
    } catch (error) {
      if (!context.signal.aborted) throw error;
    }
    return steps > 0;
  }

  #isCold({ lastAt }: ConversationRow): boolean {
    return lastAt !== null && this.#clock.now() - lastAt > COLD_AFTER_MS;
  }

  /** Runs work on a conversation after the work that is under way here. Other processes are kept out by the lease. */
  async #takeTurn<T>(conversationId: number, isUrgent: boolean, work: () => Promise<T>): Promise<T> {
    const count = (by: number): unknown =>
      isUrgent && this.#waiting.set(conversationId, (this.#waiting.get(conversationId) ?? 0) + by);
    const before = this.#turns.get(conversationId);
    count(1);
    const turn = (async () => {
      // Whoever asked for it has been told how it ended.
      await before?.catch(() => undefined);
      count(-1);
      return work();
    })();
    this.#turns.set(conversationId, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(conversationId) === turn) this.#turns.delete(conversationId);
    }
  }

  /** Gives a sign of life while the work lasts; work whose lease another process took over ends. */
  async #keepLease<T>(
    conversationId: number,
    signal: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const lost = new AbortController();
    const renew = async (): Promise<void> => {
      try {
        const until = this.#clock.now() + this.#leaseMs;
        if (!(await this.#store.renewDebt({ conversationId, holder: this.#holder, until }))) lost.abort();
      } catch (error) {
        const cause = error instanceof Error ? error.message : String(error);
        this.#emit({
          kind: "degraded",
          part: "summariser",
          message: `cannot renew the lease of a fold: ${cause}`,
        });
      }
    };
    const timer = setInterval(() => void renew(), this.#leaseMs / 3);
    timer.unref();
    try {
      return await work(signal ? AbortSignal.any([signal, lost.signal]) : lost.signal);
    } finally {
      clearInterval(timer);
    }
  }

  async assemble(
    conversation: ConversationRow,
    request: AssembleRequest & { cue?: string | null | undefined },
  ): Promise<AssembledContext | null> {
    const { conversationId } = conversation;
    const budgetTokens = this.#cap(request.budgetTokens);
    const policy = this.#policy(conversation, { ...request, budgetTokens });
    const tokenFactor = await this.#factor(conversationId, conversation.foldRevision, request.model);
    this.#seen.set(conversationId, conversation.foldRevision);
    return assembleContext(this.#store, {
      conversationId,
      budgetTokens,
      // The share that keeps folding from happening at every turn is no limit here: what fits is shown.
      tail: { ...policy, freshTailMaxTokens: this.#settings.freshTailMaxTokens ?? undefined },
      foldTail: policy,
      timeZone: this.#settings.timezone,
      tokenFactor,
      model: request.model ?? null,
      cue: request.cue,
      prefersAsked: this.#settings.promptAwareEviction,
      stubsOldResults: this.#settings.stubLargeToolPayloads,
      canOpen: !isSubagentKey(conversation.sessionKey),
      estimate: estimateTextTokens,
      provider: request.provider,
      endBefore: request.endBefore,
    });
  }

  /** What a fork that leaves a conversation before a position shows of it. */
  async chooseForFork(conversation: ConversationRow, endBefore: number): Promise<ForkItem[]> {
    const { conversationId } = conversation;
    const budgetTokens = this.#settings.bootstrapMaxTokens;
    const context = await this.assemble(conversation, { budgetTokens, endBefore });
    const ranges = new Map<ChosenItem, { first: number | null; last: number | null }>();
    for (const item of context?.items ?? [])
      if (item.ends === undefined) ranges.set(item, await this.#store.findEnds({ conversationId, ...item }));
    return toForkItems(
      context?.items ?? [],
      endBefore,
      (item) => ranges.get(item) ?? { first: null, last: null },
    );
  }

  async #pay(conversation: ConversationRow, request: PaidRequest, attempts: number): Promise<CompactAnswer> {
    const { conversationId } = conversation;
    const isRequested = request.force === true || request.targetTokens !== undefined;
    const deadlineMs = isRequested
      ? this.#settings.compactUntilUnderDeadlineMs
      : this.#settings.sweepDeadlineMs;
    try {
      const targetTokens = await this.#findTarget(conversation, request);
      const tokensBefore = await this.#countShown(conversationId);
      const report = await this.#keepLease(conversationId, request.signal, async (signal) => {
        const context = await this.#context(conversation, { ...request, signal }, deadlineMs);
        // A fold begins an epoch in any case: what was remade comes in with it.
        await this.#store.swapRemade({ conversationId, now: this.#clock.now() });
        const goal = {
          targetTokens,
          foldsAll: request.targetTokens === undefined,
          isForced: isRequested,
          preparesFirst: request.isBackground ?? false,
        };
        return foldUntilUnder(context, goal, await this.#countShown(conversationId));
      });
      const compacted = report.passes > 0;
      // Work that was cut short stays owed; everything else is done, or cannot be done better by trying again.
      const isOpen =
        report.stopped === "deadline" || report.stopped === "aborted" || report.stopped === "stale";
      await this.#settle(
        conversationId,
        isOpen ? `stopped: ${report.stopped}` : null,
        compacted ? 0 : attempts,
      );
      const { passes, tokensAfter, summaryIds } = report;
      if (compacted) this.#emit({ kind: "compacted", conversationId, tokensBefore, tokensAfter });
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
      await this.#settle(conversationId, error instanceof Error ? error.message : String(error), attempts);
      throw error;
    }
  }

  /** How many stored tokens a fold leaves at most: the requested target or just under the threshold, as the model counts. */
  async #findTarget(conversation: ConversationRow, request: CompactRequest): Promise<number> {
    const { conversationId, foldRevision } = conversation;
    const { contextThreshold } = this.#policy(conversation, request);
    const wanted =
      request.targetTokens ?? Math.max(0, Math.ceil(contextThreshold * request.budgetTokens) - 1);
    return removeFactor(wanted, await this.#factor(conversationId, foldRevision, request.model));
  }

  async #countShown(conversationId: number): Promise<number> {
    const cover = await this.#store.readCoverTail({ conversationId, maxTokens: 0, maxMessages: 0 });
    return cover?.counters.shownTokens ?? 0;
  }

  async #context(
    conversation: ConversationRow,
    request: {
      budgetTokens: number;
      signal?: AbortSignal;
      customInstructions?: string;
      onProgress?: CompactRequest["onProgress"];
    } & ModelSituation,
    deadlineMs: number,
  ): Promise<FoldContext> {
    const { conversationId } = conversation;
    const timeout = AbortSignal.timeout(Math.min(deadlineMs, MAX_TIMER_MS));
    const policy = this.#policy(conversation, request);
    return {
      store: this.#store,
      summarize: this.#summarize,
      policy,
      conversationId,
      budgetTokens: request.budgetTokens,
      makeSummaryId: () => `sum_${Buffer.from(this.#clock.random(8)).toString("hex")}`,
      measure: (summary) => measureSummary(summary, this.#settings.timezone),
      seenRevision: () => this.#seen.get(conversationId) ?? null,
      now: () => this.#clock.now(),
      signal: request.signal ? AbortSignal.any([request.signal, timeout]) : timeout,
      onPass: (passes) => {
        const sweeps = Math.ceil(passes / policy.maxSweepIterations);
        request.onProgress?.(passes, sweeps * policy.maxSweepIterations);
      },
      customInstructions: request.customInstructions,
    };
  }

  #policy(conversation: ConversationRow, request: Situation): CompactionPolicy {
    const settings = this.#settings;
    const threshold = resolveThreshold(settings, {
      model: nameModel(request.model),
      sessionKey: conversation.sessionKey,
      contextWindow: request.contextWindow,
    });
    const maxSummaryTokens = Math.floor(SUMMARY_SHARE * threshold.contextThreshold * request.budgetTokens);
    return {
      contextThreshold: threshold.contextThreshold,
      freshTailCount: threshold.freshTailCount,
      freshTailMaxTokens: settings.freshTailMaxTokens ?? Math.floor(TAIL_SHARE * request.budgetTokens),
      turnMaxTokens: Math.min(threshold.leafChunkTokens, Math.floor(TURN_SHARE * request.budgetTokens)),
      leafMinFanout: settings.leafMinFanout,
      condensedMinFanout: settings.condensedMinFanout,
      condensedMinFanoutHard: settings.condensedMinFanoutHard,
      sweepMaxDepth: settings.sweepMaxDepth,
      leafChunkTokens: threshold.leafChunkTokens,
      leafTargetTokens: Math.min(settings.leafTargetTokens, maxSummaryTokens),
      condensedTargetTokens: Math.min(settings.condensedTargetTokens, maxSummaryTokens),
      summaryPrefixTargetTokens: settings.summaryPrefixTargetTokens ?? undefined,
      maxSweepIterations: settings.maxSweepIterations,
    };
  }

  async #factor(
    conversationId: number,
    foldRevision: number,
    model: ModelIdentity | undefined,
  ): Promise<number> {
    const name = nameModel(model);
    if (name === null) return 1;
    const key = `${conversationId}:${name}`;
    const known = this.#factors.get(key);
    if (known?.foldRevision === foldRevision) return known.factor;
    const calibration = await this.#store.readCalibration(name);
    // In steps, so that a report that changes little changes nothing.
    const factor = Math.round((calibration?.factor ?? 1) * 20) / 20;
    this.#factors.set(key, { foldRevision, factor });
    return factor;
  }

  #cap(budgetTokens: number): number {
    if (!Number.isFinite(budgetTokens) || budgetTokens < 1) {
      throw new EngineError(
        "usage",
        `cannot assemble for ${budgetTokens} tokens: the budget is a number of at least 1`,
      );
    }
    return Math.min(
      Math.floor(budgetTokens),
      this.#settings.maxAssemblyTokenBudget ?? Number.MAX_SAFE_INTEGER,
    );
  }

  async #settle(conversationId: number, failure: string | null, attempts: number): Promise<void> {
    const now = this.#clock.now();
    const backoff = attempts <= 0 ? 0 : Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** (attempts - 1));
    await this.#store.settleDebt({
      conversationId,
      holder: this.#holder,
      now,
      failure,
      retryAt: now + backoff,
    });
  }

  async #unchanged(conversationId: number, targetTokens: number, reason: string): Promise<CompactAnswer> {
    const tokens = await this.#countShown(conversationId);
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
}

/** Tokens of a summary as the assembler will write it. */
export function measureSummary(
  { content, depth, run }: { content: string; depth: number; run: readonly RunItem[] },
  timeZone: string,
): number {
  const sources = run.flatMap((item) => (item.summary === null ? [] : [item.summary]));
  const text = renderSummary(
    {
      summaryId: "sum_0000000000000000",
      kind: sources.length > 0 ? "condensed" : "leaf",
      depth,
      descendantCount: sources.reduce((sum, source) => sum + source.descendantCount + 1, 0),
      earliestAt: run[0]?.createdAt ?? 0,
      latestAt: run.at(-1)?.createdAt ?? 0,
      sourceIds: sources.map((source) => source.summaryId),
      content,
    },
    timeZone,
  );
  return estimateTextTokens(text) + MESSAGE_OVERHEAD_TOKENS;
}

function describeStop(report: FoldReport): string {
  if (report.passes === 0 && report.stopped === "nothing_to_fold") return "nothing to fold";
  return {
    no_progress: "a sweep saved nothing",
    pass_limit: "the pass limit was reached",
    target_reached: "under the target",
    nothing_to_fold: "everything outside the tail is folded",
    deadline: "the deadline was reached",
    aborted: "cancelled",
    stale: "the conversation kept changing",
  }[report.stopped];
}
