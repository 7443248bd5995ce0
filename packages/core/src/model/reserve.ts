/**
 * Reserve summaries: coarser stand-ins made in the background, stored with their sources, not placed in the cover. One may be
 * used only where it begins and ends at item edges; both the planner, which publishes them, and the assembler, which shows them, ask
 * here. The planner takes only those that count exactly the shown messages between; for the assembler one that tells something old, or
 * lacks rows that came late, is still better than a line that tells nothing.
 */

export interface ReserveSummary {
  readonly summaryId: string;
  readonly startPosition: number;
  readonly endPosition: number;
  /** Shown messages it stands for. */
  readonly messages: number;
  readonly tokens: number;
  readonly depth: number;
  /** It was made over everything before the tail of its segment. */
  readonly isRoot: boolean;
  /** Something below it changed since it was made. */
  readonly isStale?: boolean;
  /**
   * Shown messages in its span, counted by the store where that begins and ends at item edges, so that a root can be used without reading
   * all that lies under it.
   */
  readonly held?: number | undefined;
  /**
   * The conversation's newest `seq` when it was made, so that it waits for the next anchor and no running context changes
   * because of it. Absent when it is older than the epoch.
   */
  readonly madeAtSeq?: number;
}

/** What a stand-in is compared with: items or groups of them, oldest first. */
export interface Span {
  readonly startPosition: number;
  readonly endPosition: number;
  readonly messages: number;
}

/** The spans `[from, to)` a reserve stands for; `from` is −1 when it also stands for everything older than the first span. */
export interface ReserveMatch {
  readonly from: number;
  readonly to: number;
  /** Shown messages there now. */
  readonly messages: number;
}

/**
 * Compares a reserve with neighbouring spans. `messagesBefore` counts the shown messages older than the first span: a
 * reserve that reaches back beyond it must stand for all of them. Null: it does not stand for exactly those messages.
 */
export function matchReserve(
  reserve: ReserveSummary,
  spans: readonly Span[],
  messagesBefore: number,
): ReserveMatch | null {
  const match = reserve.isStale === true ? null : placeReserve(reserve, spans, messagesBefore);
  return match?.messages === reserve.messages ? match : null;
}

/**
 * The same for one that may tell something old or lack rows that came late, as far as its edges hold. A stale one may also tell of messages
 * that were hidden since.
 */
export function matchLoosely(
  reserve: ReserveSummary,
  spans: readonly Span[],
  messagesBefore: number,
): ReserveMatch | null {
  const match = placeReserve(reserve, spans, messagesBefore);
  if (match === null || !canTellOf(reserve, match.messages)) return null;
  if (match.from >= 0) return match;
  const isWhole = match.messages === reserve.messages || match.messages === reserve.held;
  return isWhole ? match : null;
}

/** More messages than are shown now are under a stand-in only when something under it changed. */
export const canTellOf = (reserve: ReserveSummary, shown: number): boolean =>
  shown >= reserve.messages || (reserve.isStale === true && shown > 0);

/** Where it lies, edges only. */
function placeReserve(
  reserve: ReserveSummary,
  spans: readonly Span[],
  messagesBefore: number,
): ReserveMatch | null {
  const to = countWhere(spans, (span) => span.startPosition <= reserve.endPosition);
  const from = countWhere(spans, (span) => span.startPosition < reserve.startPosition);
  const first = spans[0];
  const last = spans[to - 1];
  if (first === undefined || last === undefined || from >= to || last.endPosition > reserve.endPosition)
    return null;
  const before = spans[from - 1];
  if (before !== undefined && before.endPosition >= reserve.startPosition) return null;
  const reachesBack = messagesBefore > 0 && reserve.startPosition < first.startPosition;
  let messages = reachesBack ? messagesBefore : 0;
  for (let index = from; index < to; index++) messages += spans[index]?.messages ?? 0;
  return { from: reachesBack ? -1 : from, to, messages };
}

/** How many leading spans satisfy a condition that holds for a prefix of them. */
function countWhere(spans: readonly Span[], holds: (span: Span) => boolean): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const span = spans[middle];
    if (span !== undefined && holds(span)) low = middle + 1;
    else high = middle;
  }
  return low;
}
