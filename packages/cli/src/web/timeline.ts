/**
 * How a conversation has grown, as points for a plot: tokens of everything said up to a message, and tokens of what stands for it in the
 * context now. Pure; as many points as a screen can show, however long the conversation is.
 */
import type { SummaryRow } from "@lossless/core/store/folding.ts";
import type { OutlineRow } from "./outline.ts";

export interface TimelinePoint {
  /** Number of the message, from 0. */
  readonly index: number;
  readonly at: number;
  readonly rawTokens: number;
  readonly contextTokens: number;
}

export interface TimelineFold {
  readonly index: number;
  readonly summaryId: string;
  readonly tokens: number;
  /** Of all messages it stands for. */
  readonly rawTokens: number;
}

export interface Timeline {
  readonly points: readonly TimelinePoint[];
  /** Where the summaries that stand in the context end. */
  readonly folds: readonly TimelineFold[];
  readonly days: readonly { readonly day: string; readonly messages: number; readonly tokens: number }[];
}

const MAX_POINTS = 800;

export function planTimeline(
  rows: readonly OutlineRow[],
  cover: readonly SummaryRow[],
  dayOf: (at: number) => string,
): Timeline {
  const tops = measureTops(findTops(cover), rows);
  const step = Math.max(1, Math.ceil(rows.length / MAX_POINTS));
  const points: TimelinePoint[] = [];
  const folds: TimelineFold[] = [];
  let rawTokens = 0;
  let contextTokens = 0;
  let at = 0;
  for (const [index, row] of rows.entries()) {
    const passed = tops[at];
    if (passed && passed.summary.endPosition < row.position) {
      const { summaryId, tokens } = passed.summary;
      folds.push({ index: Math.max(0, index - 1), summaryId, tokens, rawTokens: passed.rawTokens });
      at += 1;
    }
    rawTokens += row.tokens;
    const top = tops[at];
    const isUnder = top !== undefined && row.position >= top.summary.startPosition;
    // A summary's tokens are spread over what it stands for, so that the line shows how much each stretch is worth.
    contextTokens += isUnder ? (row.tokens * top.summary.tokens) / Math.max(1, top.rawTokens) : row.tokens;
    if (index % step === 0 || index === rows.length - 1) {
      points.push({ index, at: row.createdAt, rawTokens, contextTokens: Math.round(contextTokens) });
    }
  }
  return { points, folds, days: countDays(rows, dayOf) };
}

/** The summaries that lie in no other, in order. */
function findTops(cover: readonly SummaryRow[]): SummaryRow[] {
  const ordered = cover.toSorted((a, b) => a.startPosition - b.startPosition || b.depth - a.depth);
  let coveredUpTo = Number.NEGATIVE_INFINITY;
  return ordered.filter(({ endPosition }) => {
    if (endPosition <= coveredUpTo) return false;
    coveredUpTo = endPosition;
    return true;
  });
}

interface Top {
  readonly summary: SummaryRow;
  readonly rawTokens: number;
}

/** Summaries that cover a message at least, each with the tokens of all it covers. */
function measureTops(tops: readonly SummaryRow[], rows: readonly OutlineRow[]): Top[] {
  const sums = tops.map(() => ({ messages: 0, rawTokens: 0 }));
  let at = 0;
  for (const { position, tokens } of rows) {
    while (at < tops.length && (tops[at]?.endPosition ?? 0) < position) at += 1;
    const sum = sums[at];
    if (sum === undefined || position < (tops[at]?.startPosition ?? 0)) continue;
    sum.messages += 1;
    sum.rawTokens += tokens;
  }
  return tops.flatMap((summary, index) => {
    const { messages = 0, rawTokens = 0 } = sums[index] ?? {};
    return messages === 0 ? [] : [{ summary, rawTokens }];
  });
}

function countDays(rows: readonly OutlineRow[], dayOf: (at: number) => string): Timeline["days"] {
  const days = new Map<string, { messages: number; tokens: number }>();
  let day = "";
  let shared = Number.NaN;
  for (const { createdAt, tokens } of rows) {
    // Names of days are slow to make; messages of one quarter of an hour share theirs in every zone.
    const quarter = Math.floor(createdAt / 900_000);
    if (quarter !== shared) day = dayOf(createdAt);
    shared = quarter;
    const count = days.get(day) ?? { messages: 0, tokens: 0 };
    days.set(day, { messages: count.messages + 1, tokens: count.tokens + tokens });
  }
  return [...days].map(([name, count]) => ({ day: name, ...count })).sort((a, b) => (a.day < b.day ? -1 : 1));
}
