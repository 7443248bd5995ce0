/**
 * Reserve summaries: coarser stand-ins made in the background, stored with their sources, not placed in the cover. One may be
 * used only where it begins and ends at item edges and counts exactly the shown messages between; both the planner, which
 * publishes them, and the assembler, which shows them, ask here.
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
  /** The store vouches that edges and count hold, so that a root can be used without reading all that lies under it. */
  readonly isVerified?: boolean;
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
}

/**
 * Compares a reserve with neighbouring spans. `messagesBefore` counts the shown messages older than the first span: a
 * reserve that reaches back beyond it must stand for all of them.
 */
export function matchReserve(
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
  let messages = 0;
  for (let index = from; index < to; index++) messages += spans[index]?.messages ?? 0;
  const reachesBack = messagesBefore > 0 && reserve.startPosition < first.startPosition;
  if (messages + (reachesBack ? messagesBefore : 0) !== reserve.messages) return null;
  return { from: reachesBack ? -1 : from, to };
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
