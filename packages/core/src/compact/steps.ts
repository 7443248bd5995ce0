/**
 * The single steps of folding: reading as much of a cover as a plan needs, having a run summarised with no lock held, storing the result.
 * `execute.ts` makes sweeps of them, `upkeep.ts` idle-time work.
 *
 * Invariant: nothing is paid for a run other than the planned one, and what is stored names the run as it was read.
 */
import { setImmediate } from "node:timers/promises";
import { isDivided } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import { EngineError, must } from "../model/errors.ts";
import { findFreshTail } from "../model/tail.ts";
import { isUserMessage, MAX_INTERVENING_MESSAGES } from "../model/tool-groups.ts";
import type {
  CoverTail,
  FoldRun,
  PublishResult,
  RunItem,
  SpendRecord,
  StoredFold,
  SummaryRow,
  SummaryText,
} from "../store/folding.ts";
import { keepTrying } from "../store/keep-trying.ts";
import type { Store } from "../store/store.ts";
import type { FoldStep } from "./plan.ts";
import type { CompactionPolicy } from "./policy.ts";
import type { PlanFacts, PlanWindow } from "./runs.ts";

/** One summary of one run; see `summarize/summarize.ts`. Passed in, because folding knows no models. */
export type SummarizeRun = (request: {
  conversationId: number;
  purpose: "leaf" | "condensed" | "reserve";
  depth: number;
  run: readonly RunItem[];
  /** The sources of a summary in the run. */
  readSources: (summaryId: string) => Promise<readonly RunItem[]>;
  previous: string | null;
  isStart: boolean;
  targetTokens: number;
  /** The text must be smaller than this. */
  sourceTokens: number;
  customInstructions?: string;
  /** Called with what a model wrote and what that cost, the moment it is there. */
  keep: (text: RunText, spent: SpendRecord) => Promise<unknown>;
  signal: AbortSignal;
}) => Promise<RunText>;

type RunText = Pick<SummaryText, "content" | "model" | "level">;

export interface FoldContext {
  readonly store: Store;
  readonly summarize: SummarizeRun;
  readonly policy: CompactionPolicy;
  readonly conversationId: number;
  readonly budgetTokens: number;
  readonly makeSummaryId: () => string;
  /** Tokens of a summary as it is sent, with everything written around its text. */
  readonly measure: (summary: { content: string; depth: number; run: readonly RunItem[] }) => number;
  /** The fold revision at which a context was last made, as far as known. */
  readonly seenRevision: () => number | null;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly customInstructions?: string;
  readonly onPass?: (passes: number) => void;
}

export interface CoverView {
  readonly items: readonly CoverItem[];
  readonly facts: PlanFacts;
  readonly shownTokens: number;
}

/** Beyond the tail's own limits, so that the tool group at its edge is read whole. */
const TAIL_LOOK_BACK_MESSAGES = 2 * MAX_INTERVENING_MESSAGES;

/** Reads what a plan needs: the oldest part of the cover, and the start of the tail from the newest part. */
export async function readView({ store, policy, conversationId }: FoldContext): Promise<CoverView> {
  // Every step passes here. Without a model nothing else yields to the event loop, and a cancellation or a deadline would not be noticed.
  await setImmediate();
  const head = await store.readCoverHead({ conversationId, maxMessageTokens: 3 * policy.leafChunkTokens });
  const tail = await store.readCoverTail({
    conversationId,
    // The tail includes a whole turn up to this many tokens; reading that far gives its length.
    maxTokens: head.isWhole ? 0 : (policy.turnMaxTokens ?? Number.MAX_SAFE_INTEGER),
    maxMessages: head.isWhole ? 0 : policy.freshTailCount + TAIL_LOOK_BACK_MESSAGES,
  });
  if (!tail)
    throw new EngineError(
      "not_found",
      `cannot fold conversation ${conversationId}: there is no such conversation`,
    );
  const { boundaries } = tail;
  const reserve = tail.reserve.filter(({ isStale }) => isStale !== true);
  const { shownTokens } = tail.counters;
  if (head.isWhole) return { items: head.items, facts: { boundaries, reserve }, shownTokens };
  const window = { ...findTailWindow(tail, policy), shownTokens, prefixTokens: head.prefixTokens };
  return { items: head.items, facts: { boundaries, reserve, window }, shownTokens };
}

function findTailWindow(
  tail: CoverTail,
  policy: CompactionPolicy,
): Pick<PlanWindow, "tailStartPosition" | "pinned"> {
  const newest = tail.items.toReversed();
  const fresh = findFreshTail(newest, policy);
  const hasUser = fresh.pinned !== null || newest.slice(fresh.startIndex).some(isUserMessage);
  const pinned = fresh.pinned
    ? newest.slice(fresh.pinned.startIndex, fresh.pinned.endIndex)
    : hasUser
      ? []
      : [tail.newestUser];
  const [first, last] = [pinned[0], pinned.at(-1)];
  return {
    tailStartPosition: newest[fresh.startIndex]?.startPosition ?? Number.MAX_SAFE_INTEGER,
    pinned: first && last ? { startPosition: first.startPosition, endPosition: last.endPosition } : null,
  };
}

/** Nothing is paid for a run other than the planned one: it could never be published. */
export const countMessages = (run: readonly RunItem[]): number =>
  run.reduce((sum, item) => sum + (item.hidden === 0 ? item.messages : 0), 0);

/** A summary of which nothing is shown any more contributes nothing to the one above it. */
export const tellsSomething = (item: RunItem): boolean => item.summary === null || item.summary.messages > 0;

export async function foldSteps(
  context: FoldContext,
  view: CoverView,
  steps: readonly FoldStep[],
): Promise<PublishResult[]> {
  const { store, conversationId } = context;
  const [first] = steps;
  if (first?.publishId === null) return [await summarizeStep(context, view, first, "cover")];
  const folds: StoredFold[] = [];
  for (const { publishId, startIndex, endIndex } of steps) {
    const run = await store.readRun(conversationId, view.items.slice(startIndex, endIndex), false);
    folds.push({ summaryId: must(publishId, "stored summary of a step"), run: toKeys(run) });
  }
  return store.publishStored({ conversationId, folds, now: context.now() });
}

export async function summarizeStep(
  context: FoldContext,
  view: CoverView,
  step: FoldStep,
  state: "cover" | "prepared",
): Promise<PublishResult> {
  const { store, conversationId } = context;
  const run = await store.readRun(conversationId, view.items.slice(step.startIndex, step.endIndex));
  if (countMessages(run) !== step.messages) return { kind: "stale" };
  const previous = await readPrevious(context, view, step);
  const request = {
    purpose: step.kind,
    depth: step.depth,
    run: run.filter(tellsSomething),
    previous: previous?.content ?? null,
    isStart: startsWith(view, run),
    targetTokens: step.targetTokens,
    sourceTokens: countReplaced(context.measure, step, run),
    customInstructions: context.customInstructions,
  };
  return summarizeInto(context, request, run, (summary) => {
    // From depth 2 on prompts leave it out; what is written without a model always rests on it.
    const wasGiven = step.depth < 2 || summary.level === "extractive";
    const previousId = wasGiven ? (previous?.summaryId ?? null) : null;
    return store.storeSummary({
      conversationId,
      run: toKeys(run),
      summary: { ...summary, previousId },
      state,
      seenRevision: context.seenRevision(),
      now: context.now(),
    });
  });
}

type RunRequest = Omit<Parameters<SummarizeRun>[0], "conversationId" | "readSources" | "keep" | "signal">;

/**
 * Has a run summarised and stored; `sources` is what the summary stands for. What a model wrote is paid for: it is stored before anything else is done,
 * in one transaction with its cost, so that nobody who goes on after a crash asks for it again.
 */
export async function summarizeInto(
  context: FoldContext,
  request: RunRequest,
  sources: readonly RunItem[],
  store: (summary: SummaryText) => Promise<PublishResult>,
): Promise<PublishResult> {
  const { conversationId, signal } = context;
  const kept: PublishResult[] = [];
  const text = await context.summarize({
    ...request,
    conversationId,
    readSources: (id) => context.store.readSources(id),
    keep: async (written, spent) => {
      const summary = { ...toSummary(context, written, request.depth, sources), spent };
      kept.push(await keepTrying(() => store(summary), signal));
    },
    signal,
  });
  return kept[0] ?? store(toSummary(context, text, request.depth, sources));
}

/** Tokens that a text replaces. A condensed one has a frame that names its sources, and must save that, too. */
export function countReplaced(
  measure: FoldContext["measure"],
  { depth, inputTokens }: { readonly depth: number; readonly inputTokens: number },
  run: readonly RunItem[],
): number {
  return depth === 0 ? inputTokens : Math.max(1, inputTokens - measure({ content: "", depth, run }));
}

export function toSummary(
  context: FoldContext,
  text: RunText,
  depth: number,
  run: readonly RunItem[],
): SummaryText {
  const { content, model, level } = text;
  return {
    summaryId: context.makeSummaryId(),
    content,
    model,
    level,
    tokens: context.measure({ content, depth, run }),
  };
}

/** Whether nothing that is shown comes before a run, or only what a boundary divides from it. */
export function startsWith(
  { items, facts: { boundaries = [] } }: CoverView,
  run: readonly RunItem[],
): boolean {
  const startPosition = run[0]?.startPosition ?? 0;
  const before = items.findLast((item) => item.hidden === 0 && item.endPosition < startPosition);
  return before === undefined || isDivided(before, { startPosition }, boundaries);
}

/** The same from the archive, for a summary that is made again. What a boundary hides counts as shown. */
export async function startsConversation(
  store: Pick<Store, "findEnds">,
  conversationId: number,
  run: readonly RunItem[],
): Promise<boolean> {
  const stretches = [{ startPosition: 0, endPosition: (run[0]?.startPosition ?? 0) - 1 }];
  return (await store.findEnds({ conversationId, stretches })).first === null;
}

/** The summary directly before the run, published or prepared: what a reader of the new one has just read. */
async function readPrevious(
  { store }: FoldContext,
  view: CoverView,
  step: FoldStep,
): Promise<SummaryRow | null> {
  const before = view.items.slice(0, step.startIndex).findLast((item) => item.hidden === 0);
  if (before === undefined) return null;
  const prepared = view.facts.reserve?.find(
    ({ depth, endPosition }) => depth === 0 && endPosition === before.endPosition,
  );
  const summaryId = before.summaryId ?? prepared?.summaryId;
  return summaryId === undefined ? null : store.readSummary(summaryId);
}

export function toKeys(run: readonly RunItem[]): FoldRun {
  return run.map(({ startPosition, seq, hidden, versionId, summary }) => ({
    startPosition,
    seq,
    hidden,
    versionId,
    summaryId: summary?.summaryId ?? null,
  }));
}
