/**
 * The summary graph as lines of a tree: each summary above its sources, oldest first. A summary may be a source of two others (of the
 * fold and of a stand-in); it is drawn with what lies below it once, and named again at its second place.
 */
import type { Engine } from "@lossless/core/engine.ts";
import type { SummaryNode } from "@lossless/core/store/folding.ts";

export type Graph = ReadonlyMap<string, SummaryNode>;

export interface TreeLine {
  readonly node: SummaryNode;
  /** The branches drawn before the name. */
  readonly prefix: string;
  /** How far below the top it stands. */
  readonly level: number;
  /** Its sources were drawn before. */
  readonly isRepeated: boolean;
}

const PAGE = 500;

export async function readGraph(
  engine: Engine,
  scope: { owner?: string },
  conversationId: number,
): Promise<Graph> {
  const graph = new Map<string, SummaryNode>();
  for (let after: string | null = null; ;) {
    const page = await engine.listSummaries({ ...scope, conversationId, limit: PAGE, after });
    for (const { summaryId } of page.items) {
      const node = await engine.readSummary({ ...scope, summaryId });
      if (node !== null) graph.set(summaryId, node);
    }
    if (page.next === null) return graph;
    after = page.next;
  }
}

/**
 * From the named summary down. Without a name, first the fold itself, then what else was made: stand-ins and prepared summaries, and on
 * request those that were replaced.
 */
export function drawTree(
  graph: Graph,
  topId: string | null,
  options: { withRetired?: boolean } = {},
): TreeLine[] {
  const lines: TreeLine[] = [];
  const drawn = new Set<string>();
  const draw = (node: SummaryNode, branch: string, below: string, level: number): void => {
    const isRepeated = drawn.has(node.summaryId);
    drawn.add(node.summaryId);
    lines.push({ node, prefix: branch, level, isRepeated });
    if (isRepeated) return;
    const sources = node.sourceIds.flatMap((id) => graph.get(id) ?? []);
    for (const [index, source] of sources.entries()) {
      const isLast = index === sources.length - 1;
      draw(source, `${below}${isLast ? "└─ " : "├─ "}`, `${below}${isLast ? "   " : "│  "}`, level + 1);
    }
  };
  for (const top of findTops(graph, topId, options.withRetired ?? false)) draw(top, "", "", 0);
  return lines;
}

function findTops(graph: Graph, topId: string | null, withRetired: boolean): SummaryNode[] {
  if (topId !== null) return [graph.get(topId)].filter((node) => node !== undefined);
  const nodes = [...graph.values()].sort(
    (left, right) => left.startPosition - right.startPosition || right.depth - left.depth,
  );
  const isFolded = ({ state }: SummaryNode): boolean => state === "cover";
  const isUnder = (node: SummaryNode, isCounted: (above: SummaryNode) => boolean): boolean =>
    node.derivedIds.some((id) => {
      const above = graph.get(id);
      return above !== undefined && isCounted(above);
    });
  const isShown = ({ state }: SummaryNode): boolean => withRetired || state !== "retired";
  return [
    ...nodes.filter((node) => isFolded(node) && !isUnder(node, isFolded)),
    ...nodes.filter((node) => !isFolded(node) && isShown(node) && !isUnder(node, isShown)),
  ];
}
