/**
 * Replaces stale summaries. The replacements are made from below and wait, stored as prepared, until an epoch begins: a context shows its
 * summaries and the ids of their sources, and the front of a running context keeps its bytes. `replace.ts` defines what a replacement is.
 *
 * Invariant: a waiting replacement is itself in force, with the span and the counts of the stale summary.
 */
import type { PublishResult, SummaryReplacement } from "../store/folding.ts";
import { Changes } from "./changes.ts";
import { Head } from "./head.ts";
import { read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import { isMadeOf } from "./publish.ts";
import type { RunRow, SourceLink, SummarySpan } from "./reads.ts";
import { findItem, findReplaced, isMadeFrom, putInForce, STALE, takePlace } from "./replace.ts";
import { addSummary, describeSummary, isSameSpan, nameSources } from "./summary.ts";

type Stale = Pick<SummarySpan, "depth" | "messages" | "start_pos" | "start_seq" | "end_pos" | "end_seq">;

/** The waiting replacement of a stale summary. */
const findWaiting = (stale: Stale, ahead: readonly SummarySpan[]): SummarySpan | undefined =>
  ahead.find(
    (span) =>
      span.state === "prepared" &&
      span.stale === 0 &&
      span.messages === stale.messages &&
      isSameSpan(span, stale),
  );

/** The sources of a summary, with stale ones exchanged for their waiting replacements. */
const withWaiting = (rows: readonly RunRow[], ahead: readonly SummarySpan[]): RunRow[] =>
  rows.map((row) => {
    if (row.stale !== 1 || row.end_seq === null) return row;
    const waiting = findWaiting({ ...row, start_seq: row.seq, end_seq: row.end_seq }, ahead);
    if (!waiting) return row;
    const { summary_id, tokens, earliest_at, latest_at, stale } = waiting;
    return { ...row, summary_id, tokens, earliest_at, latest_at, stale };
  });

/** The finest stale summary without a waiting replacement whose sources are not stale, with those. */
export function* planNextStale(
  conversationId: number,
): Asking<{ readonly summaryId: string; readonly sources: readonly RunRow[] } | null> {
  const [stale, ahead] = yield* together(read.staleSummaries(conversationId), read.madeAhead(conversationId));
  const open = stale
    .filter((span) => findWaiting(span, ahead) === undefined)
    .sort((a, b) => a.depth - b.depth || a.start_pos - b.start_pos);
  for (const { summary_id: summaryId } of open) {
    const sources = withWaiting(yield* read.currentSources(summaryId), ahead);
    if (sources.every((row) => row.stale !== 1)) return { summaryId, sources };
  }
  return null;
}

/** Stores the replacement of a stale summary for the next epoch. */
export function* planStoreRemade(
  { oldId, summary, sourceKeys }: SummaryReplacement,
  now: number,
): Plan<PublishResult> {
  const changes = new Changes();
  const found = yield* findReplaced(changes, { oldId, summary });
  if (found.kind !== "found") return changes.done(found);
  const { conversationId } = found;
  const [[headRow], [old], sources, ahead] = yield* together(
    read.lockHeads([conversationId]),
    read.summaries([oldId]),
    read.currentSources(oldId),
    read.madeAhead(conversationId),
  );
  const rows = withWaiting(sources, ahead);
  if (!headRow || old?.state !== "cover" || old.stale !== 1 || !isMadeFrom(rows, sourceKeys))
    return changes.done(STALE);
  const head = new Head(headRow);
  const row = describeSummary(head, { conversationId, summary, now, state: "prepared" }, rows);
  addSummary(changes, row, nameSources(rows));
  head.noteSummary(false);
  head.save(changes, now);
  const { summaryId, tokens } = summary;
  return changes.done({ kind: "published", summaryId, tokensBefore: old.tokens, tokensAfter: tokens });
}

interface Swap {
  readonly old: SummarySpan;
  readonly next: SummarySpan;
}

/** Puts the waiting replacements for summaries of the cover in force. Returns how many of those there were. */
export function* planSwapRemade({
  conversationId,
  now,
}: {
  readonly conversationId: number;
  readonly now: number;
}): Plan<number> {
  const changes = new Changes();
  const [[headRow], stale, ahead] = yield* together(
    read.lockHeads([conversationId]),
    read.staleSummaries(conversationId),
    read.madeAhead(conversationId),
  );
  const waiting = stale.flatMap((old): Swap[] => {
    const next = findWaiting(old, ahead);
    return next ? [{ old, next }] : [];
  });
  if (!headRow || waiting.length === 0) return changes.done(0);
  const head = new Head(headRow);
  const swaps: Swap[] = [];
  for (const swap of waiting) {
    const item = yield* findItem(swap.old);
    if (!item || !(yield* isStillMadeOf(swap, ahead))) continue;
    takePlace(changes, head, swap.old.summary_id, swap.next, item);
    swaps.push(swap);
  }
  if (swaps.length === 0) return changes.done(0);
  const inForce = yield* swapBelow(changes, head, swaps);
  for (const span of ahead)
    if (!inForce.has(span.summary_id) && swaps.some(({ old }) => isOver(span, old)))
      changes.update("summaries", { summary_id: span.summary_id }, { state: "retired" });
  head.noteSummary(true, 0);
  head.save(changes, now);
  return changes.done(swaps.length);
}

function* isStillMadeOf({ old, next }: Swap, ahead: readonly SummarySpan[]): Asking<boolean> {
  const [links, rows] = yield* together(read.sources([next.summary_id]), read.currentSources(old.summary_id));
  return isMadeOf(links, withWaiting(rows, ahead));
}

/** Sources of the new summaries that are themselves replacements are put in force too. Returns everything in force from now on. */
function* swapBelow(changes: Changes, head: Head, swaps: readonly Swap[]): Asking<ReadonlySet<string>> {
  const inForce = new Set<string>();
  let level = swaps.map(({ old, next }) => ({ oldId: old.summary_id, nextId: next.summary_id }));
  while (level.length > 0) {
    for (const { nextId } of level) inForce.add(nextId);
    const links = yield* read.sources(level.flatMap(({ oldId, nextId }) => [oldId, nextId]));
    const bySummary = Map.groupBy(links, (link) => link.summary_id);
    level = level.flatMap(({ oldId, nextId }) =>
      pairSources(bySummary.get(oldId) ?? [], bySummary.get(nextId) ?? []),
    );
    for (const { oldId, nextId } of level) putInForce(changes, head, oldId, nextId);
  }
  return inForce;
}

/** The sources of two summaries, pairwise, where one has replaced the other. */
function pairSources(
  old: readonly SourceLink[],
  next: readonly SourceLink[],
): { readonly oldId: string; readonly nextId: string }[] {
  return old.flatMap(({ ordinal, source_id: oldId }) => {
    const nextId = next.find((link) => link.ordinal === ordinal)?.source_id ?? null;
    return oldId === null || nextId === null || oldId === nextId ? [] : [{ oldId, nextId }];
  });
}

/** Anything made ahead from the old text is just as stale. */
const isOver = (span: SummarySpan, old: SummarySpan): boolean =>
  span.start_pos <= old.end_pos && span.end_pos >= old.start_pos;
