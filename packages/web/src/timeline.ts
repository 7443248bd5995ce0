/**
 * How a conversation has grown, as points for a plot: after each message, the tokens of all messages, and the tokens of the context at that
 * time. A summary counts from the moment it was published. A regenerated summary counts from when the first one in its place was. Pure; as many
 * points as a screen can show, however long the conversation is.
 */
import { findFrom } from "@lossless/core/doors";
import type { Outline, SummaryGraph, SummaryOutline } from "@lossless/core";
import type { Compaction, TimelineResult, TimelinePoint } from "./api-types.ts";

export type Timeline = Omit<TimelineResult, "conversation">;

const MAX_POINTS = 800;
/** This many compactions get their own points before and after, so that each is visible as a step. */
const MAX_STEPS = 300;

/** The required message columns. Numbers only: there may be a hundred thousand, or ten times that. */
type Rows = Pick<Outline, "seqs" | "positions" | "tokens" | "createdAts">;

/** In steps of some milliseconds, so that a server can answer requests in between. */
export function* planTimeline(
  rows: Rows,
  graph: SummaryGraph,
  dayOf: (at: number) => string,
): Generator<void, Timeline> {
  const arrived = orderByArrival(rows);
  const cover = graph.nodes.filter(({ state }) => state === "cover");
  yield;
  const since = datePublishing(graph, cover, arrived);
  yield;
  const stays = assignRows(arrived, cover, since);
  yield;
  const steps = planSteps(arrived, stays, graph, cover, since);
  yield;
  const walked = walk(arrived, steps, stays.isAbsorbed);
  yield;
  const isExact = cover.every(({ publishedSeq }) => publishedSeq !== null);
  return { ...walked, isExact, days: countDays(rows, dayOf) };
}

/** Rows are ordered by position, which is the order of arrival except for late ones. */
function orderByArrival(rows: Rows): Rows {
  const numbers = sortNumbers(rows.seqs);
  if (numbers === null) return rows;
  const pick = (column: Float64Array): Float64Array => column.map((_, at) => column[numbers[at] ?? 0] ?? 0);
  return {
    seqs: pick(rows.seqs),
    positions: pick(rows.positions),
    tokens: pick(rows.tokens),
    createdAts: pick(rows.createdAts),
  };
}

/** The indexes of a column in the order of its values; null when it is already sorted. */
function sortNumbers(column: Float64Array): Uint32Array | null {
  let isSorted = true;
  for (let at = 1; at < column.length && isSorted; at++)
    isSorted = (column[at - 1] ?? 0) <= (column[at] ?? 0);
  if (isSorted) return null;
  const numbers = new Uint32Array(column.length).map((_, number) => number);
  return numbers.sort((a, b) => (column[a] ?? 0) - (column[b] ?? 0) || a - b);
}

const spanOf = ({ depth, startPosition, endPosition }: SummaryOutline): string =>
  `${depth} ${startPosition} ${endPosition}`;

/** The seq at which each summary of the cover was published. */
function datePublishing(
  { nodes, edges }: SummaryGraph,
  cover: readonly SummaryOutline[],
  arrived: Rows,
): Map<string, number> {
  const first = new Map<string, number>();
  for (const node of nodes) {
    if (node.publishedSeq === null) continue;
    const span = spanOf(node);
    first.set(span, Math.min(node.publishedSeq, first.get(span) ?? node.publishedSeq));
  }
  const since = new Map(
    cover.map((node) => [node.summaryId, first.get(spanOf(node)) ?? guessPublishing(node, arrived)]),
  );
  // Sources were published before the summaries made from them.
  const sources = groupSources(edges);
  for (const { summaryId } of cover.toSorted((a, b) => b.depth - a.depth)) {
    for (const source of sources.get(summaryId) ?? []) {
      const at = since.get(source);
      if (at !== undefined) since.set(source, Math.min(at, since.get(summaryId) ?? at));
    }
  }
  return since;
}

/** For archives that do not record it: the last message that was stored when the summary was made. */
function guessPublishing({ createdAt, endPosition }: SummaryOutline, arrived: Rows): number {
  const { seqs, positions, createdAts } = arrived;
  for (let at = seqs.length - 1; at >= 0; at--) {
    if ((createdAts[at] ?? 0) <= createdAt || (positions[at] ?? 0) <= endPosition) return seqs[at] ?? 0;
  }
  return 0;
}

function groupSources(edges: SummaryGraph["edges"]): Map<string, string[]> {
  const sources = new Map<string, string[]>();
  for (const [summary, source] of edges) {
    const known = sources.get(summary);
    if (known) known.push(source);
    else sources.set(summary, [source]);
  }
  return sources;
}

/** For each message, by its number in the order of arrival. */
interface Stays {
  /** The lowest summary above it, by its number in the cover; -1: none. */
  readonly owners: Int32Array;
  /** 1: it arrived late, at a position that was already folded, and was never in the context itself. */
  readonly isAbsorbed: Uint8Array;
}

function assignRows(
  { seqs, positions }: Rows,
  cover: readonly SummaryOutline[],
  since: ReadonlyMap<string, number>,
): Stays {
  const owners = new Int32Array(seqs.length).fill(-1);
  const isAbsorbed = new Uint8Array(seqs.length);
  const numbers = sortNumbers(positions);
  const ordered = numbers === null ? positions : positions.toSorted();
  // The lowest depth first: messages under one of them stay there.
  const finestFirst = [...cover.entries()].sort(([, a], [, b]) => a.depth - b.depth);
  for (const [owner, { startPosition, endPosition, summaryId }] of finestFirst) {
    const publishedAt = since.get(summaryId) ?? 0;
    for (let at = findFrom(ordered, startPosition); at < ordered.length; at++) {
      if ((ordered[at] ?? 0) > endPosition) break;
      const row = numbers === null ? at : (numbers[at] ?? 0);
      if (owners[row] !== -1) continue;
      owners[row] = owner;
      if ((seqs[row] ?? 0) > publishedAt) isAbsorbed[row] = 1;
    }
  }
  return { owners, isAbsorbed };
}

interface Step {
  readonly seq: number;
  summaries: number;
  deltaTokens: number;
}

/** The changes of publishing to the context, by the seq at which they happened, in order. */
function planSteps(
  { tokens: said }: Rows,
  { owners, isAbsorbed }: Stays,
  graph: SummaryGraph,
  cover: readonly SummaryOutline[],
  since: ReadonlyMap<string, number>,
): Step[] {
  const numberOf = new Map(cover.map(({ summaryId }, number) => [summaryId, number]));
  /** The tokens that each summary of the cover removed from the context. */
  const replaced = new Float64Array(cover.length);
  const add = (summary: number, tokens: number): void => {
    replaced[summary] = (replaced[summary] ?? 0) + tokens;
  };
  for (let at = 0; at < said.length; at++) {
    const owner = owners[at] ?? -1;
    if (owner !== -1 && isAbsorbed[at] === 0) add(owner, said[at] ?? 0);
  }
  for (const [summary, source] of graph.edges) {
    const number = numberOf.get(summary);
    if (number !== undefined) add(number, cover[numberOf.get(source) ?? -1]?.tokens ?? 0);
  }
  const steps = new Map<number, Step>();
  for (const [number, { summaryId, tokens, messages }] of cover.entries()) {
    const seq = since.get(summaryId) ?? 0;
    const step = steps.get(seq) ?? { seq, summaries: 0, deltaTokens: 0 };
    step.summaries += 1;
    // A summary without any shown message is not shown itself.
    step.deltaTokens += (messages === 0 ? 0 : tokens) - (replaced[number] ?? 0);
    steps.set(seq, step);
  }
  return [...steps.values()].sort((a, b) => a.seq - b.seq);
}

function walk(
  { seqs, tokens, createdAts }: Rows,
  steps: readonly Step[],
  isAbsorbed: Uint8Array,
): Pick<Timeline, "points" | "compactions"> {
  const every = Math.max(1, Math.ceil(seqs.length / MAX_POINTS));
  const points: TimelinePoint[] = [];
  const compactions: Compaction[] = [];
  let rawTokens = 0;
  let contextTokens = 0;
  let next = 0;
  for (let index = 0; index < seqs.length; index++) {
    const at = createdAts[index] ?? 0;
    rawTokens += tokens[index] ?? 0;
    if (isAbsorbed[index] === 0) contextTokens += tokens[index] ?? 0;
    const isSampled = index % every === 0 || index === seqs.length - 1;
    const nextSeq = seqs[index + 1] ?? Number.POSITIVE_INFINITY;
    const isStep = (steps[next]?.seq ?? Number.POSITIVE_INFINITY) < nextSeq;
    const isShown = isSampled || (isStep && compactions.length < MAX_STEPS);
    if (isShown) points.push({ index, at, rawTokens, contextTokens });
    if (!isStep) continue;
    const tokensBefore = contextTokens;
    let summaries = 0;
    for (let step = steps[next]; step !== undefined && step.seq < nextSeq; step = steps[next]) {
      contextTokens += step.deltaTokens;
      summaries += step.summaries;
      next += 1;
    }
    compactions.push({ index, at, summaries, tokensBefore, tokensAfter: contextTokens });
    if (isShown) points.push({ index, at, rawTokens, contextTokens });
  }
  return { points, compactions };
}

function countDays({ tokens, createdAts }: Rows, dayOf: (at: number) => string): Timeline["days"] {
  const days = new Map<string, { day: string; messages: number; tokens: number }>();
  let count = { day: "", messages: 0, tokens: 0 };
  let shared = Number.NaN;
  for (let at = 0; at < createdAts.length; at++) {
    const createdAt = createdAts[at] ?? 0;
    // Formatting days is slow; messages of one quarter of an hour share theirs in every time zone.
    const quarter = Math.floor(createdAt / 900_000);
    if (quarter !== shared) {
      const day = dayOf(createdAt);
      count = days.get(day) ?? { day, messages: 0, tokens: 0 };
      days.set(day, count);
      shared = quarter;
    }
    count.messages += 1;
    count.tokens += tokens[at] ?? 0;
  }
  return [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1));
}

/** The sum of several conversations, sampled at equal intervals. */
export function addUpGrowth(
  lines: readonly (readonly TimelinePoint[])[],
  moments: number,
): { at: number; rawTokens: number; contextTokens: number }[] {
  const ordered = lines.filter((line) => line.length > 0).map((line) => line.toSorted((a, b) => a.at - b.at));
  const first = Math.min(...ordered.map((line) => line[0]?.at ?? 0));
  const last = Math.max(...ordered.map((line) => line.at(-1)?.at ?? 0));
  if (ordered.length === 0) return [];
  const indexes = ordered.map(() => 0);
  return Array.from({ length: moments }, (_, moment) => {
    const at = first + ((last - first) * moment) / Math.max(1, moments - 1);
    let rawTokens = 0;
    let contextTokens = 0;
    for (const [index, line] of ordered.entries()) {
      while ((line[indexes[index] ?? 0]?.at ?? Number.POSITIVE_INFINITY) <= at)
        indexes[index] = (indexes[index] ?? 0) + 1;
      const point = line[(indexes[index] ?? 0) - 1];
      rawTokens += point?.rawTokens ?? 0;
      contextTokens += point?.contextTokens ?? 0;
    }
    return { at, rawTokens, contextTokens };
  });
}
