/** The summary graph as lines that expand and collapse: summaries above their sources, leaves above their messages. Pure. */
import type { SummaryGraph, SummaryOutline } from "@lossless/core";
import { drawTree } from "@lossless/core/doors";

export interface GraphNode extends SummaryOutline {
  readonly sourceIds: string[];
  readonly derivedIds: string[];
}

export interface SummaryLine {
  readonly kind: "summary";
  readonly node: GraphNode;
  readonly prefix: string;
  readonly level: number;
  readonly isOpen: boolean;
  /** How many of its sources are drawn above instead of below it. */
  readonly sourcesAbove: number;
}

export interface MessageLine {
  readonly kind: "message";
  readonly messageId: number;
  readonly parent: GraphNode;
  readonly prefix: string;
  readonly level: number;
}

export type GraphLine = SummaryLine | MessageLine;

export function buildNodes({ nodes, edges }: SummaryGraph): Map<string, GraphNode> {
  const built = new Map(
    nodes.map((node) => [node.summaryId, { ...node, sourceIds: [] as string[], derivedIds: [] as string[] }]),
  );
  for (const [summaryId, sourceId] of edges) {
    built.get(summaryId)?.sourceIds.push(sourceId);
    built.get(sourceId)?.derivedIds.push(summaryId);
  }
  return built;
}

export interface GraphView {
  readonly nodes: ReadonlyMap<string, GraphNode>;
  readonly open: ReadonlySet<string>;
  /** Messages of the expanded leaves. */
  readonly messages: ReadonlyMap<string, readonly number[]>;
  readonly withRetired: boolean;
}

export function drawGraph({ nodes, open, messages, withRetired }: GraphView): GraphLine[] {
  const drawn = drawTree(nodes, null, { withRetired, isOpen: (id) => open.has(id) });
  return drawn.flatMap(({ node, prefix, level, sourcesAbove }): GraphLine[] => {
    const isOpen = open.has(node.summaryId);
    const line: SummaryLine = { kind: "summary", node, prefix, level, isOpen, sourcesAbove };
    const ids = isOpen && node.kind === "leaf" ? (messages.get(node.summaryId) ?? []) : [];
    const below = prefix.replace("├─ ", "│  ").replace("└─ ", "   ");
    const toLine = (messageId: number, at: number): MessageLine => ({
      kind: "message",
      messageId,
      parent: node,
      prefix: `${below}${at === ids.length - 1 ? "└─ " : "├─ "}`,
      level: level + 1,
    });
    return [line, ...ids.map(toLine)];
  });
}

/** Everything above a summary; expanding all of it makes the summary visible. */
export function listAbove(nodes: ReadonlyMap<string, GraphNode>, summaryId: string): string[] {
  const above: string[] = [];
  const seen = new Set<string>([summaryId]);
  for (let next = nodes.get(summaryId); next !== undefined;) {
    // The fold before reserve summaries: that is where users look for it.
    const ids: string[] = next.derivedIds.filter((id) => !seen.has(id));
    const id: string | undefined = ids.find((some) => nodes.get(some)?.state === "cover") ?? ids[0];
    if (id === undefined) return above;
    seen.add(id);
    above.push(id);
    next = nodes.get(id);
  }
  return above;
}
