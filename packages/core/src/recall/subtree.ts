/**
 * What is below a summary, and the cost of opening it: for each summary the tokens of all summaries and of all messages under it, down to
 * the leaves. Works on the outline of a conversation's graph, so no text is read.
 */
import type { SummaryGraph, SummaryOutline } from "../store/folding.ts";

/** One summary below another. */
export interface SubtreeNode {
  readonly id: string;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly tokens: number;
  /** Tokens of all summaries below it. */
  readonly descendantTokens: number;
  /** Tokens of all messages below it. */
  readonly messageTokens: number;
  readonly messages: number;
  /** Whether it and all before it fit the cap. */
  readonly fits: boolean;
}

export interface Subtree {
  readonly descendantTokens: number;
  readonly messageTokens: number;
  /** Nearest first, up to a limit; the rest can be opened from them. */
  readonly nodes: readonly SubtreeNode[];
}

interface Cost {
  readonly descendantTokens: number;
  readonly messageTokens: number;
}

const NOTHING: Cost = { descendantTokens: 0, messageTokens: 0 };

export function measureSubtree(
  graph: SummaryGraph,
  rootId: string,
  { tokenCap, maxNodes }: { readonly tokenCap: number; readonly maxNodes: number },
): Subtree {
  const outlines = new Map(graph.nodes.map((node) => [node.summaryId, node]));
  const sources = Map.groupBy(graph.edges, ([id]) => id);
  const sourcesOf = (id: string): SummaryOutline[] =>
    (sources.get(id) ?? []).flatMap(([, source]) => outlines.get(source) ?? []);
  const costs = addUp(rootId, outlines, sourcesOf);
  const costOf = (id: string): Cost => costs.get(id) ?? NOTHING;
  const nodes: SubtreeNode[] = [];
  const queue = sourcesOf(rootId);
  let spent = 0;
  for (let node = queue.shift(); node !== undefined && nodes.length < maxNodes; node = queue.shift()) {
    const { summaryId: id, kind, depth, tokens, messages } = node;
    spent += tokens;
    nodes.push({ id, kind, depth, tokens, ...costOf(id), messages, fits: spent <= tokenCap });
    queue.push(...sourcesOf(id));
  }
  return { ...costOf(rootId), nodes };
}

/** From the leaves up; without recursion, because a graph may be deep. */
function addUp(
  rootId: string,
  outlines: ReadonlyMap<string, SummaryOutline>,
  sourcesOf: (id: string) => SummaryOutline[],
): Map<string, Cost> {
  const costs = new Map<string, Cost>();
  const stack = [rootId];
  for (let id = stack.at(-1); id !== undefined; id = stack.at(-1)) {
    const below = sourcesOf(id);
    const open = below.filter(({ summaryId }) => !costs.has(summaryId));
    if (open.length > 0) {
      stack.push(...open.map(({ summaryId }) => summaryId));
      continue;
    }
    stack.pop();
    costs.set(id, sumCosts(outlines.get(id), below, costs));
  }
  return costs;
}

/** A leaf was made from messages only; a condensed summary has below it what its sources have. */
function sumCosts(
  node: SummaryOutline | undefined,
  below: readonly SummaryOutline[],
  costs: ReadonlyMap<string, Cost>,
): Cost {
  const shownBelow = below.reduce((sum, { tokens }) => sum + tokens, 0);
  const own = below.length === 0 ? (node?.sourceTokens ?? 0) : 0;
  return below.reduce(
    (sum, { summaryId }) => {
      const cost = costs.get(summaryId) ?? NOTHING;
      return {
        descendantTokens: sum.descendantTokens + cost.descendantTokens,
        messageTokens: sum.messageTokens + cost.messageTokens,
      };
    },
    { descendantTokens: shownBelow, messageTokens: own },
  );
}
