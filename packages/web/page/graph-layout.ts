/**
 * The layout of summaries: horizontally by the messages they cover, in order; vertically by depth. A summary is as wide as what it covers, so
 * that the hierarchy is visible at once. Summaries of one depth that cover the same (a reserve summary beside the one it replaces) get separate
 * lanes. Pure, and fast enough to run at every change: most of it is sorting.
 */
import type { GraphNode } from "../src/api-types.ts";

export interface LayoutNode {
  readonly node: GraphNode;
  /** In messages from the start of the conversation. */
  readonly x: number;
  readonly width: number;
  /** From the bottom, leaves first. */
  readonly row: number;
}

export interface GraphLayout {
  readonly nodes: readonly LayoutNode[];
  readonly byId: ReadonlyMap<string, LayoutNode>;
  /** Per row, in order of x. */
  readonly rows: readonly (readonly LayoutNode[])[];
  /** Depth of each row. */
  readonly depths: readonly number[];
  /** Messages under leaves. */
  readonly foldedWidth: number;
  /** The x of a position, in messages from the start. */
  readonly xOf: (position: number) => number;
}

export function layOutGraph(nodes: readonly GraphNode[]): GraphLayout {
  const scale = buildScale(nodes);
  const drafts = nodes.map((node) => {
    const x = scale.at(node.startPosition, "start");
    return { node, x, width: Math.max(0.5, scale.at(node.endPosition, "end") - x) };
  });
  const rows: LayoutNode[][] = [];
  const depths: number[] = [];
  const byDepth = Map.groupBy(drafts, ({ node }) => node.depth);
  for (const depth of [...byDepth.keys()].sort((a, b) => a - b)) {
    const lanes = assignLanes(byDepth.get(depth) ?? []);
    for (const lane of lanes) {
      rows.push(lane.map((draft) => ({ ...draft, row: rows.length })));
      depths.push(depth);
    }
  }
  const placed = rows.flat();
  return {
    nodes: placed,
    byId: new Map(placed.map((one) => [one.node.summaryId, one])),
    rows,
    depths,
    foldedWidth: scale.total,
    xOf: (position) => scale.at(position, "start"),
  };
}

interface Draft {
  readonly node: GraphNode;
  readonly x: number;
  readonly width: number;
}

/** As few lanes as possible without overlaps; those of the context come first. */
function assignLanes(drafts: readonly Draft[]): Draft[][] {
  const ordered = drafts.toSorted((a, b) => Number(isAside(a)) - Number(isAside(b)) || a.x - b.x);
  const lanes: Draft[][] = [];
  for (const draft of ordered) {
    const lane = lanes.find((some) => isFree(some, draft));
    if (lane) lane.push(draft);
    else lanes.push([draft]);
  }
  return lanes.map((lane) => lane.sort((a, b) => a.x - b.x));
}

const isAside = ({ node }: Draft): boolean => node.state !== "cover";

function isFree(lane: readonly Draft[], { x, width }: Draft): boolean {
  // The last one placed is usually the neighbour; only a reserve summary has to search further.
  const last = lane.at(-1);
  if (last === undefined || last.x + last.width <= x + EPSILON) return true;
  return lane.every((other) => other.x + other.width <= x + EPSILON || x + width <= other.x + EPSILON);
}

const EPSILON = 1e-6;

interface Scale {
  readonly total: number;
  at(position: number, edge: "start" | "end"): number;
}

/** Maps positions, which have gaps, to message numbers, which have none. */
function buildScale(nodes: readonly GraphNode[]): Scale {
  const leaves = nodes
    .filter(({ depth, state }) => depth === 0 && (state === "cover" || state === "reserve"))
    .toSorted((a, b) => a.startPosition - b.startPosition || a.endPosition - b.endPosition);
  const starts: number[] = [];
  const ends: number[] = [];
  const before: number[] = [];
  const widths: number[] = [];
  let total = 0;
  for (const { startPosition, endPosition, messages } of leaves) {
    if (startPosition <= (ends.at(-1) ?? Number.NEGATIVE_INFINITY)) continue;
    starts.push(startPosition);
    ends.push(endPosition);
    before.push(total);
    widths.push(Math.max(1, messages));
    total += Math.max(1, messages);
  }
  return {
    total,
    at(position, edge) {
      const index = lastAtMost(starts, position);
      if (index < 0) return 0;
      const [start, end, x, width] = [
        starts[index] ?? 0,
        ends[index] ?? 0,
        before[index] ?? 0,
        widths[index] ?? 0,
      ];
      if (position >= end) return edge === "end" || position > end ? x + width : x;
      if (position === start && edge === "start") return x;
      return x + (width * (position - start)) / Math.max(1, end - start);
    },
  };
}

/** The last of sorted values that is not above a limit; −1 when all are. */
function lastAtMost(values: readonly number[], limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] ?? 0) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
