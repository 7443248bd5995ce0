/**
 * Idle-time work, one step at a time: summaries that a sweep will need, stand-ins up to the root, and remaking stale summaries. None of it
 * changes the context before a fold or an epoch includes it.
 */
import { nameSource } from "../store/folding.ts";
import type { PublishResult, RunItem, SummaryText } from "../store/folding.ts";
import { planPrepared } from "./plan.ts";
import { planReserve } from "./plan-reserve.ts";
import { condensedTarget, leafTarget } from "./policy.ts";
import {
  countMessages,
  countReplaced,
  readView,
  startsConversation,
  startsWith,
  summarizeInto,
  summarizeStep,
  tellsSomething,
  toKeys,
  toSummary,
} from "./steps.ts";
import type { FoldContext } from "./steps.ts";

/** Whether there is anything to remake, to prepare (if wanted) or to make a stand-in of. Read-only. */
export async function hasUpkeep(context: FoldContext, prepares: boolean): Promise<boolean> {
  const { store, policy, conversationId, budgetTokens } = context;
  if (await store.readStale(conversationId)) return true;
  const { items, facts } = await readView(context);
  return (
    (prepares && planPrepared(items, policy, facts) !== null) ||
    planReserve(items, policy, budgetTokens, facts) !== null
  );
}

/**
 * Makes the next leaf that a sweep will need, ahead of time. Stored unpublished: the context does not change. False: nothing to prepare.
 */
export async function prepareNext(context: FoldContext, when: "ahead" | "due" = "ahead"): Promise<boolean> {
  const view = await readView(context);
  const step = planPrepared(view.items, context.policy, view.facts, when);
  if (step === null) return false;
  const outcome = await summarizeStep(context, view, step, "prepared");
  return outcome.kind === "published";
}

/** Makes the next reserve summary, up to the root. False: nothing to make. */
export async function reserveNext(context: FoldContext): Promise<boolean> {
  const { store, policy, conversationId, budgetTokens } = context;
  const view = await readView(context);
  const step = planReserve(view.items, policy, budgetTokens, view.facts);
  if (step === null) return false;
  const items = view.items.filter(
    (item) => item.startPosition >= step.startPosition && item.endPosition <= step.endPosition,
  );
  const run = await store.readRun(conversationId, items);
  if (countMessages(run) !== step.messages) return false;
  const sources = await replaceByStandIns(context, run, step.sourceIds);
  const request = {
    purpose: "reserve" as const,
    depth: step.depth,
    run: sources.filter(tellsSomething),
    previous: null,
    isStart: startsWith(view, run),
    targetTokens: step.targetTokens,
    sourceTokens: countReplaced(context.measure, step, sources),
  };
  const outcome = await summarizeInto(context, request, sources, (made) =>
    store.storeSummary({
      conversationId,
      run: toKeys(run),
      sourceIds: step.sourceIds,
      summary: made,
      state: "reserve",
      isRoot: step.isRoot,
      seenRevision: context.seenRevision(),
      now: context.now(),
    }),
  );
  return outcome.kind === "published";
}

/** The run with earlier stand-ins replacing what they represent: a history too long for one call is summarised in steps. */
async function replaceByStandIns(
  { store }: FoldContext,
  run: readonly RunItem[],
  sourceIds: readonly string[],
): Promise<RunItem[]> {
  let replaced = [...run];
  for (const id of sourceIds) {
    if (run.some((item) => item.summary?.summaryId === id)) continue;
    const summary = await store.readSummary(id);
    if (!summary) continue;
    const lies = (item: RunItem): boolean =>
      item.startPosition >= summary.startPosition && item.endPosition <= summary.endPosition;
    const at = replaced.findIndex(lies);
    const { startPosition, endPosition, tokens, messages, earliestAt: createdAt } = summary;
    const standIn = {
      startPosition,
      endPosition,
      tokens,
      messages,
      createdAt,
      isDated: true,
      seq: replaced[at]?.seq ?? 0,
    };
    replaced = replaced.filter((item) => !lies(item));
    replaced.splice(at, 0, { ...standIn, hidden: 0, messageId: null, versionId: null, bytes: null, summary });
  }
  return replaced;
}

/** What stands for a run of which nothing is shown; it lies under another summary, which leaves it out. */
const NOTHING_SHOWN = {
  content: "[Nothing of this is shown: every message here is hidden.]",
  model: "extractive",
  level: "extractive",
} as const;

/** Remakes the next stale summary. False: there is none, or it changed meanwhile. */
export async function remakeNext(context: FoldContext): Promise<boolean> {
  const { store, policy, conversationId } = context;
  const stale = await store.readStale(conversationId);
  if (!stale) return false;
  const { summary, run } = stale;
  const shown = run.filter((item) => item.hidden === 0 && tellsSomething(item));
  const { depth } = summary;
  const inputTokens = shown.reduce((sum, item) => sum + item.tokens, 0);
  const sourceKeys = run.map(nameSource);
  const put = (made: SummaryText): Promise<PublishResult> =>
    store.storeRemade({ oldId: summary.summaryId, summary: made, sourceKeys }, context.now());
  const request = {
    purpose: summary.kind,
    depth,
    run: shown,
    previous: null,
    isStart: await startsConversation(store, conversationId, run),
    targetTokens: depth === 0 ? leafTarget(policy, inputTokens) : condensedTarget(policy, inputTokens),
    sourceTokens: countReplaced(context.measure, { depth, inputTokens }, run),
  };
  const outcome =
    shown.length === 0
      ? await put(toSummary(context, NOTHING_SHOWN, depth, run))
      : await summarizeInto(context, request, run, put);
  return outcome.kind === "published";
}
