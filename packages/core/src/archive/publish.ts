/**
 * Publishing: stores a summary of a run, replaces the run by it, and retires what was made ahead for it. Only the run is compared, as it
 * was read and as it is: turns stored elsewhere never make a fold stale.
 */
import { must } from "../model/errors.ts";
import type { FoldRun, PublishResult, StoredFold, StoreSummary } from "../store/folding.ts";
import { Changes } from "./changes.ts";
import { isErased } from "./forget.ts";
import { Head } from "./head.ts";
import { read, together } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import type { RunRow, SourceLink, SummarySpan } from "./reads.ts";
import { addSpend, askSpendId } from "./spend.ts";
import { addSummary, describeSummary, nameSources, total } from "./summary.ts";

const STALE: PublishResult = { kind: "stale" };

export function* planStoreSummary(request: StoreSummary): Plan<PublishResult> {
  const { conversationId, run, summary, state, sourceIds = [] } = request;
  const changes = new Changes();
  const previousIds = summary.previousId ? [summary.previousId] : [];
  const [[headRow], rows, standIns, previous, spendId] = yield* together(
    read.lockHeads([conversationId]),
    askRun(conversationId, run),
    read.summaries([...sourceIds, summary.summaryId]),
    read.contents(previousIds),
    askSpendId(summary.spent),
  );
  let outcome: PublishResult = {
    kind: "published",
    summaryId: summary.summaryId,
    tokensBefore: 0,
    tokensAfter: 0,
  };
  // The result of an earlier run of this plan was lost in transit.
  if (standIns.some(({ summary_id }) => summary_id === summary.summaryId)) return changes.done(outcome);
  addSpend(changes, spendId, summary.spent);
  const sources = isSameRun(rows, run) ? replaceByStandIns(rows, sourceIds, standIns) : null;
  // Its writer may repeat the previous context, which was forgotten meanwhile, or removed.
  const isGone = previous.filter(({ content }) => !isErased(content)).length < previousIds.length;
  if (!headRow || !sources || isGone) return changes.done(STALE);
  const head = new Head(headRow);
  const isStale = state === "cover" && isMadeFromStale(sources);
  const row = describeSummary(head, { ...request, isStale }, sources);
  addSummary(changes, row, nameSources(sources));
  if (state === "cover") {
    const ahead = yield* readAhead(conversationId, isStale ? [row] : []);
    outcome = putInPlace(changes, head, rows, row, ahead);
  }
  head.noteSummary(state === "cover");
  head.save(changes, request.now);
  return changes.done(outcome);
}

export function* planPublishStored(request: {
  conversationId: number;
  folds: readonly StoredFold[];
  now: number;
}): Plan<PublishResult[]> {
  const { conversationId, folds } = request;
  const changes = new Changes();
  const ids = [...new Set(folds.map(({ summaryId }) => summaryId))];
  const [[headRow], stored, links, ...runs] = yield* together(
    read.lockHeads([conversationId]),
    read.summaries(ids),
    read.sources(ids),
    ...folds.map(({ run }) => askRun(conversationId, run)),
  );
  // Removed meanwhile.
  if (!headRow) return changes.done(folds.map(() => STALE));
  const head = new Head(headRow);
  const ahead = yield* readAhead(conversationId, []);
  const replaced = new Set<string>();
  const outcomes = folds.map(({ summaryId, run }, index) => {
    const rows = runs[index] ?? [];
    const points = rows.map(({ start_pos, seq }) => `${start_pos} ${seq}`);
    if (points.some((point) => replaced.has(point))) return STALE;
    const span = stored.find(({ summary_id }) => summary_id === summaryId);
    const sources = links.filter(({ summary_id }) => summary_id === summaryId);
    if (!span || !isUsable(span) || !isSameRun(rows, run) || !isMadeOf(sources, rows)) return STALE;
    for (const point of points) replaced.add(point);
    const stale = isMadeFromStale(rows) ? 1 : 0;
    changes.update(
      "summaries",
      { summary_id: summaryId },
      { state: "cover", published_seq: head.seq, stale },
    );
    if (stale === 1) ahead.stale.push(span);
    return putInPlace(changes, head, rows, span, ahead);
  });
  if (outcomes.some(({ kind }) => kind === "published")) head.noteSummary(true, 0);
  head.save(changes, request.now);
  return changes.done(outcomes);
}

function askRun(conversationId: number, run: FoldRun) {
  const first = must(run[0], "the first item of a run");
  return read.run(conversationId, first, run.at(-1) ?? first);
}

function isSameRun(rows: readonly RunRow[], run: FoldRun): boolean {
  return (
    rows.length === run.length &&
    rows.every((row, i) => {
      const key = run[i];
      return (
        row.start_pos === key?.startPosition &&
        row.seq === key.seq &&
        row.hidden === key.hidden &&
        row.version_id === key.versionId &&
        row.summary_id === key.summaryId
      );
    })
  );
}

/** A summary of something stale is itself stale once it is published, until that is remade. Stand-ins are then discarded. */
const isMadeFromStale = (rows: readonly RunRow[]): boolean => rows.some((row) => row.stale === 1);

const isUsable = ({ stale, state }: SummarySpan): boolean =>
  stale === 0 && (state === "prepared" || state === "reserve");

/** A stored summary may only replace exactly what it was made from. */
export const isMadeOf = (sources: readonly SourceLink[], rows: readonly RunRow[]): boolean =>
  sources.length === rows.length &&
  sources.every(
    (source, i) => source.message_id === rows[i]?.message_id && source.source_id === rows[i]?.summary_id,
  );

/** Replaces rows by the stand-ins made from them. Null if one is gone, stale, or no longer represents exactly those rows. */
function replaceByStandIns(
  rows: readonly RunRow[],
  sourceIds: readonly string[],
  standIns: readonly SummarySpan[],
): RunRow[] | null {
  let replaced = [...rows];
  for (const id of sourceIds) {
    if (rows.some((row) => row.summary_id === id)) continue;
    const standIn = standIns.find(({ summary_id }) => summary_id === id);
    if (!standIn || standIn.state !== "reserve" || standIn.stale === 1) return null;
    const lies = (row: RunRow): boolean =>
      row.start_pos >= standIn.start_pos && row.end_pos <= standIn.end_pos;
    const inside = replaced.filter((row) => lies(row) && row.hidden === 0);
    if (total(inside, (row) => row.messages) !== standIn.messages) return null;
    const at = replaced.findIndex(lies);
    replaced = replaced.filter((row) => !lies(row));
    replaced.splice(at, 0, {
      ...standIn,
      dated: 1,
      seq: standIn.start_seq,
      message_id: null,
      hidden: 0,
      version_id: null,
    });
  }
  return replaced;
}

/** What was made ahead in a conversation, and the stale summaries that some of it may be waiting to replace. */
interface Ahead {
  spans: readonly SummarySpan[];
  readonly stale: SummarySpan[];
}

function* readAhead(conversationId: number, alsoStale: readonly SummarySpan[]): Asking<Ahead> {
  const [spans, stale] = yield* together(read.madeAhead(conversationId), read.staleSummaries(conversationId));
  return { spans, stale: [...stale, ...alsoStale] };
}

function putInPlace(
  changes: Changes,
  head: Head,
  rows: readonly RunRow[],
  summary: SummarySpan,
  ahead: Ahead,
): PublishResult {
  const { conversationId } = head;
  const { summary_id, tokens, start_pos, start_seq, end_pos, messages, depth } = summary;
  const tokensBefore = total(
    rows.filter((row) => row.hidden === 0),
    (row) => row.tokens,
  );
  for (const row of rows) {
    changes.delete("context_items", {
      conversation_id: conversationId,
      start_pos: row.start_pos,
      seq: row.seq,
    });
  }
  changes.insert("context_items", {
    conversation_id: conversationId,
    start_pos,
    seq: start_seq,
    end_pos,
    message_id: null,
    summary_id,
    tokens,
    messages,
    depth,
    hidden: 0,
  });
  const others = ahead.spans.filter((span) => span.summary_id !== summary_id);
  const retired = new Set(
    others.filter((span) => isOverlapped(span, summary, ahead) || isSurpassed(span, others)),
  );
  for (const span of retired)
    changes.update("summaries", { summary_id: span.summary_id }, { state: "retired" });
  ahead.spans = others.filter((span) => !retired.has(span));
  head.noteShown(0, tokens - tokensBefore);
  return { kind: "published", summaryId: summary_id, tokensBefore, tokensAfter: tokens };
}

/** What was made ahead inside a published span is no longer useful, unless it waits to replace something below. */
const isOverlapped = (span: SummarySpan, published: SummarySpan, { stale }: Ahead): boolean =>
  span.is_root === 0 &&
  span.start_pos >= published.start_pos &&
  span.end_pos <= published.end_pos &&
  !stale.some(
    (old) => old.depth === span.depth && old.start_pos === span.start_pos && old.end_pos === span.end_pos,
  );

/** A root stays until the next epoch when a longer one is made: a context that was begun with it must not change. */
const isSurpassed = (root: SummarySpan, others: readonly SummarySpan[]): boolean =>
  isRoot(root) &&
  others.some(
    (other) =>
      other !== root &&
      isRoot(other) &&
      other.stale === 0 &&
      other.start_pos <= root.start_pos &&
      other.end_pos >= root.end_pos &&
      (other.end_pos > root.end_pos || root.stale === 1),
  );

const isRoot = ({ state, is_root }: SummarySpan): boolean => state === "reserve" && is_root === 1;
