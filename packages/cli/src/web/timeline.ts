/**
 * How a conversation has grown, as points for a plot: after each message, the tokens of everything said, and the tokens of the context as it
 * was then. A summary counts from the moment it was published. Summaries that were written anew count from when the first of their place
 * was. Pure; as many points as a screen can show, however long the conversation is.
 */
import type { SummaryGraph, SummaryOutline } from "@lossless/core/store/folding.ts";
import type { Compaction, OutlineRow, TimelineAnswer, TimelinePoint } from "./answers.ts";

export type Timeline = Omit<TimelineAnswer, "conversation">;

const MAX_POINTS = 800;
/** So many compactions get points of their own before and after, so that each is seen as the step it was. */
const MAX_STEPS = 300;

export function planTimeline(
  rows: readonly OutlineRow[],
  graph: SummaryGraph,
  dayOf: (at: number) => string,
): Timeline {
  const arrived = rows.toSorted((a, b) => a.seq - b.seq);
  const cover = graph.nodes.filter(({ state }) => state === "cover");
  const since = datePublishing(graph, cover, arrived);
  const owners = assignRows(rows, cover);
  const steps = planSteps({ arrived, graph, cover, since, owners });
  return {
    ...walk(arrived, steps, (row) => isAbsorbed(row, owners, since)),
    isExact: cover.every(({ publishedSeq }) => publishedSeq !== null),
    days: countDays(rows, dayOf),
  };
}

const placeOf = ({ depth, startPosition, endPosition }: SummaryOutline): string =>
  `${depth} ${startPosition} ${endPosition}`;

/** The seq at which each summary of the cover took its place. */
function datePublishing(
  { nodes, edges }: SummaryGraph,
  cover: readonly SummaryOutline[],
  arrived: readonly OutlineRow[],
): Map<string, number> {
  const first = new Map<string, number>();
  for (const node of nodes) {
    if (node.publishedSeq === null) continue;
    const place = placeOf(node);
    first.set(place, Math.min(node.publishedSeq, first.get(place) ?? node.publishedSeq));
  }
  const since = new Map(
    cover.map((node) => [node.summaryId, first.get(placeOf(node)) ?? guessPublishing(node, arrived)]),
  );
  // What lies below was there before what lies above.
  const sources = groupSources(edges);
  for (const { summaryId } of cover.toSorted((a, b) => b.depth - a.depth)) {
    for (const source of sources.get(summaryId) ?? []) {
      const at = since.get(source);
      if (at !== undefined) since.set(source, Math.min(at, since.get(summaryId) ?? at));
    }
  }
  return since;
}

/** Archives that do not tell: the last message that was there when the summary was made. */
function guessPublishing({ createdAt, endPosition }: SummaryOutline, arrived: readonly OutlineRow[]): number {
  const last = arrived.findLast((row) => row.createdAt <= createdAt || row.position <= endPosition);
  return last?.seq ?? 0;
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

/** The lowest summary of the cover that each message lies under. */
function assignRows(
  rows: readonly OutlineRow[],
  cover: readonly SummaryOutline[],
): Map<number, SummaryOutline> {
  const ordered = rows.toSorted((a, b) => a.position - b.position);
  const owners = new Map<number, SummaryOutline>();
  for (const summary of cover.toSorted((a, b) => a.depth - b.depth)) {
    for (let at = firstFrom(ordered, summary.startPosition); at < ordered.length; at++) {
      const row = ordered[at];
      if (row === undefined || row.position > summary.endPosition) break;
      if (!owners.has(row.messageId)) owners.set(row.messageId, summary);
    }
  }
  return owners;
}

/** The first row at a position or behind it. */
function firstFrom(ordered: readonly OutlineRow[], position: number): number {
  let low = 0;
  let high = ordered.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ordered[middle]?.position ?? 0) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Came late, to a place that was folded already: it never stood in the context by itself. */
function isAbsorbed(
  row: OutlineRow,
  owners: ReadonlyMap<number, SummaryOutline>,
  since: ReadonlyMap<string, number>,
): boolean {
  const owner = owners.get(row.messageId);
  return owner !== undefined && row.seq > (since.get(owner.summaryId) ?? 0);
}

interface Step {
  readonly seq: number;
  summaries: number;
  deltaTokens: number;
}

/** What publishing changed in the context, by the seq at which it happened, in order. */
function planSteps(history: {
  arrived: readonly OutlineRow[];
  graph: SummaryGraph;
  cover: readonly SummaryOutline[];
  since: ReadonlyMap<string, number>;
  owners: ReadonlyMap<number, SummaryOutline>;
}): Step[] {
  const { arrived, graph, cover, since, owners } = history;
  const tokensOf = new Map(cover.map(({ summaryId, tokens }) => [summaryId, tokens]));
  const replaced = new Map<string, number>();
  const add = (summaryId: string, tokens: number): void =>
    void replaced.set(summaryId, (replaced.get(summaryId) ?? 0) + tokens);
  for (const row of arrived) {
    const owner = owners.get(row.messageId);
    if (owner && !isAbsorbed(row, owners, since)) add(owner.summaryId, row.tokens);
  }
  for (const [summary, source] of graph.edges) {
    if (tokensOf.has(summary)) add(summary, tokensOf.get(source) ?? 0);
  }
  const steps = new Map<number, Step>();
  for (const { summaryId, tokens, messages } of cover) {
    const seq = since.get(summaryId) ?? 0;
    const step = steps.get(seq) ?? { seq, summaries: 0, deltaTokens: 0 };
    step.summaries += 1;
    // A summary of which nothing is shown is not shown itself.
    step.deltaTokens += (messages === 0 ? 0 : tokens) - (replaced.get(summaryId) ?? 0);
    steps.set(seq, step);
  }
  return [...steps.values()].sort((a, b) => a.seq - b.seq);
}

function walk(
  arrived: readonly OutlineRow[],
  steps: readonly Step[],
  isAbsorbedRow: (row: OutlineRow) => boolean,
): Pick<Timeline, "points" | "compactions"> {
  const every = Math.max(1, Math.ceil(arrived.length / MAX_POINTS));
  const points: TimelinePoint[] = [];
  const compactions: Compaction[] = [];
  let rawTokens = 0;
  let contextTokens = 0;
  let next = 0;
  for (const [index, row] of arrived.entries()) {
    rawTokens += row.tokens;
    if (!isAbsorbedRow(row)) contextTokens += row.tokens;
    const point = (): TimelinePoint => ({ index, at: row.createdAt, rawTokens, contextTokens });
    const isSampled = index % every === 0 || index === arrived.length - 1;
    const nextSeq = arrived[index + 1]?.seq ?? Number.POSITIVE_INFINITY;
    const isStep = (steps[next]?.seq ?? Number.POSITIVE_INFINITY) < nextSeq;
    const isShown = isSampled || (isStep && compactions.length < MAX_STEPS);
    if (isShown) points.push(point());
    if (!isStep) continue;
    const tokensBefore = contextTokens;
    let summaries = 0;
    for (let step = steps[next]; step !== undefined && step.seq < nextSeq; step = steps[next]) {
      contextTokens += step.deltaTokens;
      summaries += step.summaries;
      next += 1;
    }
    compactions.push({ index, at: row.createdAt, summaries, tokensBefore, tokensAfter: contextTokens });
    if (isShown) points.push(point());
  }
  return { points, compactions };
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

/** Several conversations as one: what all of them had at moments in equal distances. */
export function addUpGrowth(
  lines: readonly (readonly TimelinePoint[])[],
  moments: number,
): { at: number; rawTokens: number; contextTokens: number }[] {
  const ordered = lines.filter((line) => line.length > 0).map((line) => line.toSorted((a, b) => a.at - b.at));
  const first = Math.min(...ordered.map((line) => line[0]?.at ?? 0));
  const last = Math.max(...ordered.map((line) => line.at(-1)?.at ?? 0));
  if (ordered.length === 0) return [];
  const places = ordered.map(() => 0);
  return Array.from({ length: moments }, (_, moment) => {
    const at = first + ((last - first) * moment) / Math.max(1, moments - 1);
    let rawTokens = 0;
    let contextTokens = 0;
    for (const [index, line] of ordered.entries()) {
      while ((line[places[index] ?? 0]?.at ?? Number.POSITIVE_INFINITY) <= at)
        places[index] = (places[index] ?? 0) + 1;
      const point = line[(places[index] ?? 0) - 1];
      rawTokens += point?.rawTokens ?? 0;
      contextTokens += point?.contextTokens ?? 0;
    }
    return { at, rawTokens, contextTokens };
  });
}
