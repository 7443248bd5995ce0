import type { SummaryNode } from "../../src/store/folding.ts";
import { describe, expect, test } from "vitest";
import { drawTree } from "../../src/doors/summary-tree.ts";
import type { Graph } from "../../src/doors/summary-tree.ts";

interface Sketch {
  readonly id: string;
  readonly state?: SummaryNode["state"];
  readonly from?: readonly string[];
}

/** A graph in the order of what its summaries stand for. */
function sketch(summaries: readonly Sketch[]): Graph {
  return new Map(
    summaries.map(({ id, state = "cover", from = [] }, index) => [
      id,
      {
        summaryId: id,
        state,
        depth: from.length === 0 ? 0 : 1,
        startPosition: index,
        sourceIds: [...from],
        derivedIds: summaries.filter((other) => other.from?.includes(id)).map((other) => other.id),
      } as unknown as SummaryNode,
    ]),
  );
}

const draw = (graph: Graph, topId: string | null = null, withRetired = false): string[] =>
  drawTree(graph, topId, { withRetired }).map(
    ({ prefix, node, sourcesAbove }) =>
      `${prefix}${node.summaryId}${sourcesAbove > 0 ? ` (${sourcesAbove} above)` : ""}`,
  );

const GRAPH = sketch([
  { id: "a" },
  { id: "b" },
  { id: "ab", from: ["a", "b"] },
  { id: "c" },
  { id: "old root", state: "retired", from: ["a", "b"] },
  { id: "root", state: "reserve", from: ["ab", "c"] },
]);

describe("the tree of summaries", () => {
  test("draws each summary once: first the fold, then the stand-ins made from it", () => {
    expect(draw(GRAPH)).toEqual(["ab", "├─ a", "└─ b", "c", "root (2 above)"]);
  });

  test("shows what was replaced on request", () => {
    expect(draw(GRAPH, null, true)).toEqual([
      ...draw(GRAPH).slice(0, 4),
      "old root (2 above)",
      ...draw(GRAPH).slice(4),
    ]);
  });

  test("begins at a summary that was named", () => {
    expect(draw(GRAPH, "root")).toEqual(["root", "├─ ab", "│  ├─ a", "│  └─ b", "└─ c"]);
    expect(draw(GRAPH, "nobody")).toEqual([]);
  });
});
