import { describe, expect, test } from "vitest";
import type { GraphNode } from "../../src/api-types.ts";
import { layOutGraph } from "../../page/graph-layout.ts";

function node(
  depth: number,
  start: number,
  end: number,
  messages: number,
  state: GraphNode["state"] = "cover",
): GraphNode {
  return {
    summaryId: `sum_${depth}_${start}_${state}`,
    depth,
    state,
    startPosition: start,
    endPosition: end,
    messages,
    tokens: 100,
    sourceTokens: 1000,
    earliestAt: start,
    latestAt: end,
    isRoot: false,
  };
}

describe("placing the graph", () => {
  const leaves = [node(0, 0, 9, 10), node(0, 100, 100, 1), node(0, 200, 219, 20)];

  test("a leaf is as wide as its messages, and follows the one before without a gap", () => {
    const { rows, foldedWidth } = layOutGraph(leaves);
    expect(rows[0]?.map(({ x, width }) => [x, width])).toEqual([
      [0, 10],
      [10, 1],
      [11, 20],
    ]);
    expect(foldedWidth).toBe(31);
  });

  test("a summary spans what it covers, above it", () => {
    const { rows, depths } = layOutGraph([node(1, 100, 219, 21), ...leaves]);
    expect(depths).toEqual([0, 1]);
    expect(rows[1]?.map(({ x, width, row }) => [x, width, row])).toEqual([[10, 21, 1]]);
  });

  test("a stand-in beside a summary of its depth gets a lane of its own", () => {
    const { rows, depths } = layOutGraph([node(1, 0, 100, 11, "reserve"), node(1, 0, 219, 31), ...leaves]);
    expect(depths).toEqual([0, 1, 1]);
    expect(rows.slice(1).map((row) => row.map((placed) => placed.node.state))).toEqual([
      ["cover"],
      ["reserve"],
    ]);
  });

  test("5,000 summaries are placed without overlaps", () => {
    const many = Array.from({ length: 5_000 }, (_, index) => node(0, index * 100, index * 100 + 50, 12));
    const above = Array.from({ length: 500 }, (_, index) => node(1, index * 1000, index * 1000 + 950, 120));
    const { rows } = layOutGraph([...many, ...above]);
    expect(rows).toHaveLength(2);
    for (const row of rows) {
      for (const [index, placed] of row.entries()) {
        const next = row[index + 1];
        if (next) expect(placed.x + placed.width).toBeLessThanOrEqual(next.x + 1e-6);
      }
    }
  });

  test("nothing gives nothing", () => {
    expect(layOutGraph([])).toMatchObject({ rows: [], foldedWidth: 0 });
  });
});
