/**
 * Which stand-in to make next in the background: reserve summaries over runs of the cover's summaries, up to one root per segment
 * over everything folded before the tail. They are stored with their sources and not placed in the cover; the assembler
 * uses them when a budget is small, a fold publishes them where they are exactly what it needs.
 */
import { isDivided, isHiddenByBoundary } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import { must } from "../model/errors.ts";
import { matchReserve, type ReserveSummary, type Span } from "../model/reserve.ts";
import { isSummaryItem } from "../model/tool-groups.ts";
import { condensedTarget, type CompactionPolicy } from "./policy.ts";
import { findSummaryRuns, readField, type Bundle, type Field, type PlanFacts } from "./runs.ts";

/** A root is remade when more than this share of the budget lies between it and the tail. */
const ROOT_LAG_SHARE = 0.15;

export interface ReserveStep {
  readonly startPosition: number;
  readonly endPosition: number;
  /** Summaries to condense, oldest first; depths may differ. */
  readonly sourceIds: readonly string[];
  readonly depth: number;
  readonly messages: number;
  readonly inputTokens: number;
  readonly targetTokens: number;
  readonly isRoot: boolean;
}

/**
 * The next stand-in to make in the background. Sources that are too much for one call are first condensed among
 * themselves; the root is then made from few. A former root is never a source: retelling a retelling loses the beginning.
 */
export function planReserve(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  budgetTokens: number,
  facts: PlanFacts = {},
): ReserveStep | null {
  const field = readField(items, policy, facts);
  for (const segment of splitSegments(field, policy).reverse()) {
    const step = planSegmentRoot(field, segment, policy, budgetTokens);
    if (step !== null) return step;
  }
  return null;
}

interface Segment {
  /** The summaries from the segment's beginning up to the first messages a leaf may still take, as what they stand for. */
  readonly summaries: readonly Tile[];
  /** Shown items before the tail. */
  readonly shown: readonly CoverItem[];
}

/** What a stand-in is made from: a summary of the cover or an earlier stand-in, with the messages stranded before it. */
interface Tile extends Span {
  readonly id: string;
  readonly tokens: number;
  readonly depth: number;
}

function splitSegments(field: Field, policy: CompactionPolicy): Segment[] {
  const { boundaries } = field.facts;
  const summaries = findSummaryRuns(field, policy, isSummaryItem).map((run) =>
    run.map((bundle) => toTile(field, bundle)),
  );
  const segments: CoverItem[][] = [];
  let before: CoverItem | undefined;
  for (const item of field.items.slice(0, field.tail.startIndex)) {
    if (before === undefined || isDivided(before, item, boundaries)) segments.push([]);
    before = item;
    if (item.hidden === 0 && !isHiddenByBoundary(item, boundaries)) segments.at(-1)?.push(item);
  }
  return segments.map((shown) => {
    const first = shown[0];
    return {
      shown,
      summaries: summaries.find((run) => run[0]?.startPosition === first?.startPosition) ?? [],
    };
  });
}

function toTile(field: Field, bundle: Bundle): Tile {
  const items = bundle.map((index) => must(field.items[index], "item of a bundle"));
  const summary = must(items.at(-1), "summary of a bundle");
  return {
    id: must(summary.summaryId, "summary id"),
    startPosition: must(items[0], "first item of a bundle").startPosition,
    endPosition: summary.endPosition,
    messages: items.reduce((sum, item) => sum + item.messages, 0),
    tokens: items.reduce((sum, item) => sum + item.tokens, 0),
    depth: summary.depth,
  };
}

function planSegmentRoot(
  field: Field,
  segment: Segment,
  policy: CompactionPolicy,
  budgetTokens: number,
): ReserveStep | null {
  const { summaries } = segment;
  const last = summaries.at(-1);
  if (summaries.length < 2 || last === undefined) return null;
  const root = findRoot(field, summaries);
  if (root !== null) {
    const lag = segment.shown.filter((item) => item.startPosition > root.endPosition);
    const lagTokens = lag.reduce((sum, item) => sum + item.tokens, 0);
    const hasGrown = last.startPosition > root.endPosition;
    if (!hasGrown || lagTokens <= ROOT_LAG_SHARE * budgetTokens) return null;
  }
  const tiles = layTiles(field, summaries);
  const total = tiles.reduce((sum, tile) => sum + tile.tokens, 0);
  const isRoot = total <= policy.leafChunkTokens || tiles.length === 2;
  const sources = isRoot ? tiles : pickInnerRun(tiles, policy);
  return makeReserveStep(sources, policy, isRoot);
}

/** The root in force: valid on the cover as it is, and reaching furthest. */
function findRoot(field: Field, summaries: readonly Tile[]): ReserveSummary | null {
  const valid = field.facts.reserve.filter(
    (reserve) => reserve.isRoot && matchReserve(reserve, summaries, 0)?.from === 0,
  );
  return valid.sort((a, b) => b.endPosition - a.endPosition)[0] ?? null;
}

/** Covers the summaries with the coarsest stand-ins that are not roots, oldest first. */
function layTiles(field: Field, summaries: readonly Tile[]): Tile[] {
  const widest = new Map<number, { reserve: ReserveSummary; to: number }>();
  for (const reserve of field.facts.reserve) {
    const match = reserve.isRoot ? null : matchReserve(reserve, summaries, 0);
    if (match === null || match.to <= (widest.get(match.from)?.to ?? match.from + 1)) continue;
    widest.set(match.from, { reserve, to: match.to });
  }
  const tiles: Tile[] = [];
  for (let index = 0; index < summaries.length;) {
    const item = must(summaries[index], "summary of a segment");
    const wide = widest.get(index);
    tiles.push(wide === undefined ? item : { ...wide.reserve, id: wide.reserve.summaryId });
    index = wide?.to ?? index + 1;
  }
  return tiles;
}

/** The oldest run of at least two tiles of the least depth that has one; failing that, the two oldest tiles. */
function pickInnerRun(tiles: readonly Tile[], policy: CompactionPolicy): readonly Tile[] {
  for (const depth of [...new Set(tiles.map((tile) => tile.depth))].sort((a, b) => a - b)) {
    let from = 0;
    while (from < tiles.length) {
      const run = takeRun(tiles, from, depth, policy.leafChunkTokens);
      if (run.length >= 2) return run;
      from += Math.max(1, run.length);
    }
  }
  return tiles.slice(0, 2);
}

function takeRun(tiles: readonly Tile[], from: number, depth: number, maxTokens: number): Tile[] {
  const run: Tile[] = [];
  let tokens = 0;
  for (const tile of tiles.slice(from)) {
    if (tile.depth !== depth || (run.length > 0 && tokens + tile.tokens > maxTokens)) break;
    run.push(tile);
    tokens += tile.tokens;
  }
  return run;
}

function makeReserveStep(tiles: readonly Tile[], policy: CompactionPolicy, isRoot: boolean): ReserveStep {
  const inputTokens = tiles.reduce((sum, tile) => sum + tile.tokens, 0);
  return {
    startPosition: must(tiles[0], "first source").startPosition,
    endPosition: must(tiles.at(-1), "last source").endPosition,
    sourceIds: tiles.map((tile) => tile.id),
    depth: Math.max(...tiles.map((tile) => tile.depth)) + 1,
    messages: tiles.reduce((sum, tile) => sum + tile.messages, 0),
    inputTokens,
    targetTokens: condensedTarget(policy, inputTokens),
    isRoot,
  };
}
