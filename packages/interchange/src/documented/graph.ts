/**
 * Turns the summaries of a documented conversation into a graph that our cover can represent. Pure.
 *
 * A summary can be in the cover only if its messages are consecutive and under no other summary of the cover. Any other summary is kept as
 * retired, with its sources; its messages are then shown themselves. A summary none of whose sources still exists leads to no message and cannot
 * be a summary; the caller keeps its row.
 */

import type { MovedSummary } from "@lossless/core/ports";

export interface GraphMessage {
  readonly seq: number;
  readonly position: number;
  readonly isShown: boolean;
  readonly createdAt: number;
  readonly tokens: number;
}

export interface GraphSummary {
  readonly summaryId: string;
  readonly content: string;
  readonly tokens: number;
  readonly model: string;
  readonly createdAt: number;
  /** Indexes into the list of messages, and ids of summaries, as given in the rows. */
  readonly messages: readonly number[];
  readonly sources: readonly string[];
}

export interface PlannedGraph {
  /** Sources come before the summaries made from them. */
  readonly summaries: readonly MovedSummary[];
  readonly cover: readonly string[];
  /** Summaries that lead to no message. */
  readonly rootless: readonly string[];
  /** Summaries of the context that could not be put in the cover. */
  readonly unplaced: readonly string[];
}

/** A summary with the facts derived from its sources. */
interface Node {
  readonly summary: GraphSummary;
  /** Direct sources in the order of their first message. */
  readonly sources: readonly (number | Node)[];
  readonly depth: number;
  /** Indexes of all messages below, in order of the sources. */
  readonly below: readonly number[];
  readonly descendants: number;
}

export function planGraph(
  messages: readonly GraphMessage[],
  summaries: readonly GraphSummary[],
  contextOrder: readonly string[],
): PlannedGraph {
  const nodes = resolveNodes(summaries);
  const inCover = chooseCover(nodes, contextOrder);
  const published = new Set<string>();
  for (const id of inCover) publish(nodes.get(id), published);
  const planned = [...nodes.values()].map((node) =>
    toMoved(node, messages, published.has(node.summary.summaryId)),
  );
  return {
    summaries: planned.sort(
      (a, b) =>
        a.depth - b.depth || a.startPosition - b.startPosition || (a.summaryId < b.summaryId ? -1 : 1),
    ),
    cover: [...inCover].sort((a, b) => firstOf(nodes, a) - firstOf(nodes, b)),
    rootless: summaries.map(({ summaryId }) => summaryId).filter((id) => !nodes.has(id)),
    unplaced: contextOrder.filter((id) => nodes.has(id) && !inCover.has(id)),
  };
}

function resolveNodes(summaries: readonly GraphSummary[]): Map<string, Node> {
  const byId = new Map(summaries.map((summary) => [summary.summaryId, summary]));
  const nodes = new Map<string, Node>();
  const underWay = new Set<string>();
  const resolve = (id: string): Node | null => {
    const known = nodes.get(id);
    const summary = byId.get(id);
    // Stop at a summary that is, through others, its own source.
    if (known !== undefined || summary === undefined || underWay.has(id)) return known ?? null;
    underWay.add(id);
    const finer = summary.sources.map(resolve).filter((node) => node !== null);
    underWay.delete(id);
    const sources = [...summary.messages, ...finer].sort((a, b) => startOf(a) - startOf(b));
    if (sources.length === 0) return null;
    const node: Node = {
      summary,
      sources,
      depth: finer.reduce((deepest, source) => Math.max(deepest, source.depth + 1), 0),
      below: sources.flatMap((source) => (typeof source === "number" ? [source] : source.below)),
      descendants: finer.reduce((sum, source) => sum + source.descendants + 1, 0),
    };
    nodes.set(id, node);
    return node;
  };
  for (const { summaryId } of summaries) resolve(summaryId);
  return nodes;
}

const startOf = (source: number | Node): number =>
  typeof source === "number" ? source : (source.below[0] ?? 0);
const firstOf = (nodes: ReadonlyMap<string, Node>, id: string): number => nodes.get(id)?.below[0] ?? 0;

function chooseCover(nodes: ReadonlyMap<string, Node>, contextOrder: readonly string[]): Set<string> {
  const covered = new Set<number>();
  const used = new Set<string>();
  const chosen = new Set<string>();
  for (const id of contextOrder) {
    const node = nodes.get(id);
    if (node === undefined || chosen.has(id) || !isContiguous(node.below)) continue;
    const members = listMembers(node);
    if (node.below.some((index) => covered.has(index)) || members.some((member) => used.has(member)))
      continue;
    for (const index of node.below) covered.add(index);
    for (const member of members) used.add(member);
    chosen.add(id);
  }
  return chosen;
}

function isContiguous(below: readonly number[]): boolean {
  return below.every((index, at) => at === 0 || index === (below[at - 1] ?? 0) + 1);
}

function listMembers(node: Node): string[] {
  const finer = node.sources.filter((source) => typeof source !== "number");
  return [node.summary.summaryId, ...finer.flatMap(listMembers)];
}

function publish(node: Node | undefined, published: Set<string>): void {
  for (const id of node === undefined ? [] : listMembers(node)) published.add(id);
}

function toMoved(node: Node, messages: readonly GraphMessage[], isPublished: boolean): MovedSummary {
  const { summary, below } = node;
  const covered = below.map((index) => messages[index]).filter((message) => message !== undefined);
  const shown = covered.filter((message) => message.isShown);
  const [first, last] = [covered[0], covered.at(-1)];
  const times = covered.map((message) => message.createdAt);
  return {
    summaryId: summary.summaryId,
    kind: node.depth > 0 ? "condensed" : "leaf",
    depth: node.depth,
    state: isPublished ? "cover" : "retired",
    startPosition: first?.position ?? 0,
    startSeq: first?.seq ?? 0,
    endPosition: last?.position ?? 0,
    endSeq: last?.seq ?? 0,
    messages: shown.length,
    descendantCount: node.descendants,
    tokens: summary.tokens,
    sourceTokens: shown.reduce((sum, message) => sum + message.tokens, 0),
    earliestAt: times.reduce((a, b) => Math.min(a, b), Infinity),
    latestAt: times.reduce((a, b) => Math.max(a, b), 0),
    content: summary.content,
    model: summary.model,
    level: "normal",
    isStale: false,
    isRoot: false,
    madeAtSeq: last?.seq ?? 0,
    createdAt: summary.createdAt,
    publishedSeq: null,
    previousId: null,
    sources: node.sources.map((source) =>
      typeof source === "number" ? (messages[source]?.seq ?? 0) : source.summary.summaryId,
    ),
  };
}
