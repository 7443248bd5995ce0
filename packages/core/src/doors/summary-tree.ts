/**
 * The summary graph as lines of a tree: each summary above its sources, oldest first. A summary may be a source of two others (of the fold
 * and of a stand-in); it is drawn once, and the other one says how many of its sources are drawn above it.
 */
import type { Engine } from "../engine/engine.ts";
import type { SummaryNode } from "../store/folding.ts";

/** What drawing needs of a summary. */
export type TreeNode = Pick<
  SummaryNode,
  "summaryId" | "state" | "startPosition" | "depth" | "sourceIds" | "derivedIds"
>;

export type Graph<Node extends TreeNode = SummaryNode> = ReadonlyMap<string, Node>;

export interface TreeLine<Node extends TreeNode = SummaryNode> {
  readonly node: Node;
  /** The branches drawn before the name. */
  readonly prefix: string;
  /** How far below the top it is. */
  readonly level: number;
  /** How many of its sources are not below it, because they were already drawn. */
  readonly sourcesAbove: number;
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

export interface DrawOptions {
  readonly withRetired?: boolean;
  /** Whether the sources of a summary are drawn below it. Absent: always. */
  readonly isOpen?: (summaryId: string) => boolean;
}

/**
 * From the named summary down. Without a name, first the fold itself, then stand-ins and prepared summaries, and on request those that were
 * replaced.
 */
export function drawTree<Node extends TreeNode>(
  graph: Graph<Node>,
  topId: string | null,
  { withRetired = false, isOpen = () => true }: DrawOptions = {},
): TreeLine<Node>[] {
  const lines: TreeLine<Node>[] = [];
  const drawn = new Set<string>();
  const draw = (node: Node, branch: string, below: string, level: number): void => {
    drawn.add(node.summaryId);
    const known = isOpen(node.summaryId) ? node.sourceIds.flatMap((id) => graph.get(id) ?? []) : [];
    const sources = known.filter(({ summaryId }) => !drawn.has(summaryId));
    lines.push({ node, prefix: branch, level, sourcesAbove: known.length - sources.length });
    for (const [index, source] of sources.entries()) {
      const isLast = index === sources.length - 1;
      draw(source, `${below}${isLast ? "└─ " : "├─ "}`, `${below}${isLast ? "   " : "│  "}`, level + 1);
    }
  };
  for (const top of findTops(graph, topId, withRetired)) draw(top, "", "", 0);
  return lines;
}

function findTops<Node extends TreeNode>(
  graph: Graph<Node>,
  topId: string | null,
  withRetired: boolean,
): Node[] {
  if (topId !== null) return [graph.get(topId)].filter((node) => node !== undefined);
  const nodes = [...graph.values()].sort(
    (left, right) => left.startPosition - right.startPosition || right.depth - left.depth,
  );
  const isFolded = ({ state }: TreeNode): boolean => state === "cover";
  const isUnder = (node: TreeNode, isCounted: (above: TreeNode) => boolean): boolean =>
    node.derivedIds.some((id) => {
      const above = graph.get(id);
      return above !== undefined && isCounted(above);
    });
  const isShown = ({ state }: TreeNode): boolean => withRetired || state !== "retired";
  return [
    ...nodes.filter((node) => isFolded(node) && !isUnder(node, isFolded)),
    ...nodes.filter((node) => !isFolded(node) && isShown(node) && !isUnder(node, isShown)),
  ];
}
