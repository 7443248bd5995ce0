/**
 * Reserve summaries: coarser stand-ins made in the background, stored with their sources, not placed in the cover. One may be used only
 * where it begins and ends at item edges; both the planner, which publishes them, and the assembler, which shows them, check that here. The
 * planner takes only those that count exactly the shown messages in between; for the assembler, a stale one, or one that lacks late rows,
 * is still better than a line without content.
 */

export interface ReserveSummary {
  readonly summaryId: string;
  readonly startPosition: number;
  readonly endPosition: number;
  /** Shown messages it represents. */
  readonly messages: number;
  readonly tokens: number;
  readonly depth: number;
  /** It was made over everything before the tail of its segment. */
  readonly isRoot: boolean;
  /** Something below it changed since it was made. */
  readonly isStale?: boolean;
  /**
   * Shown messages in its span, counted by the store if the span begins and ends at item edges, so that a root can be used without reading
   * everything under it.
   */
  readonly held?: number | undefined;
  /**
   * The conversation's newest `seq` when it was made, so that it waits for the next anchor and changes no running context. Absent when it
   * is older than the epoch.
   */
  readonly madeAtSeq?: number;
}

/** What a stand-in is compared with: items or groups of items, oldest first. */
export interface Span {
  readonly startPosition: number;
  readonly endPosition: number;
  readonly messages: number;
}

/** The spans `[from, to)` a reserve represents; `from` is −1 when it also represents everything older than the first span. */
export interface ReserveMatch {
  readonly from: number;
  readonly to: number;
  /** Messages currently shown there. */
  readonly messages: number;
}

/**
 * Compares a reserve with neighbouring spans. `messagesBefore` counts the shown messages older than the first span: a reserve that begins
 * before it must represent all of them. Null: it does not represent exactly those messages.
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
 * The same for one that may be stale or lack late rows, as long as its edges match. A stale one may also mention messages that were hidden
 * since.
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

/** A stand-in can cover more messages than are shown now only if something under it changed. */
export const canTellOf = (reserve: ReserveSummary, shown: number): boolean =>
  shown >= reserve.messages || (reserve.isStale === true && shown > 0);

/** Where it is, by its edges only. */
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
