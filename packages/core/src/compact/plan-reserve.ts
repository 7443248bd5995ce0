/**
 * Which stand-in to make next in the background: reserve summaries over runs of the cover's summaries, up to one root per segment over
 * everything folded before the tail. They are stored with their sources and not placed in the cover; the assembler uses them when a budget
 * is small, and a fold publishes them if they are exactly what it needs.
 */
import { isDivided, isHiddenByBoundary } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import { must } from "../model/errors.ts";
import { matchReserve, type ReserveSummary, type Span } from "../model/reserve.ts";
import { isSummaryItem } from "../model/tool-groups.ts";
import { condensedTarget, MIN_TARGET_TOKENS, type CompactionPolicy } from "./policy.ts";
import { findSummaryRuns, readField, type Bundle, type Field, type PlanFacts } from "./runs.ts";

/** A root is remade when there is more than this share of the budget between it and the tail. */
const ROOT_LAG_SHARE = 0.15;
/**
 * A stand-in for a run of summaries aims at no more than this share of the budget, so that it fits beside the newest messages, together
 * with another one if the newest user message divides the history.
 */
const STAND_IN_SHARE = 0.15;
/** One that came out longer, or was made for a larger window, is still used up to this multiple of it. */
const STAND_IN_SLACK = 1.5;
/** No more than this are made of one run, so that a model that always writes too much is not called for ever. */
const MAX_OF_ONE_RUN = 2;

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
 * The next stand-in to make in the background. Sources that are too large for one call are first condensed among themselves; the root is
 * then made from few. A former root is never a source: summarising a summary again loses the beginning.
 */
export function planReserve(
  items: readonly CoverItem[],
  policy: CompactionPolicy,
  budgetTokens: number,
  facts: PlanFacts = {},
): ReserveStep | null {
  const field = readField(items, policy, facts);
  for (const run of findStoryRuns(field, policy).reverse()) {
    const step = planStandIn(field, run, policy, budgetTokens);
    if (step !== null) return step;
  }
  return null;
}

/** Summaries that one stand-in can represent. */
interface StoryRun {
  readonly summaries: readonly Tile[];
  /** A segment begins here: its stand-in is a root. */
  readonly isFirst: boolean;
  /** Shown items of its segment, up to the tail. */
  readonly shown: readonly CoverItem[];
}

/** A source of a stand-in: a summary of the cover or an earlier stand-in, with the messages stranded before it. */
interface Tile extends Span {
  readonly id: string;
  readonly tokens: number;
  readonly depth: number;
}

function findStoryRuns(field: Field, policy: CompactionPolicy): StoryRun[] {
  const segments = splitSegments(field);
  return findSummaryRuns(field, policy, isSummaryItem).map((run) => {
    const summaries = run.map((bundle) => toTile(field, bundle));
    const start = must(summaries[0], "first summary of a run").startPosition;
    const shown = must(
      segments.findLast((segment) => (segment[0]?.startPosition ?? Number.POSITIVE_INFINITY) <= start),
      "segment of a run",
    );
    return { summaries, shown, isFirst: shown[0]?.startPosition === start };
  });
}

/** The shown items before the tail, cut at the boundaries. */
function splitSegments(field: Field): CoverItem[][] {
  const { boundaries } = field.facts;
  const segments: CoverItem[][] = [];
  let before: CoverItem | undefined;
  for (const item of field.items.slice(0, field.tail.startIndex)) {
    if (before === undefined || isDivided(before, item, boundaries)) segments.push([]);
    before = item;
    if (item.hidden === 0 && !isHiddenByBoundary(item, boundaries)) segments.at(-1)?.push(item);
  }
  return segments;
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

function planStandIn(
  field: Field,
  run: StoryRun,
  policy: CompactionPolicy,
  budgetTokens: number,
): ReserveStep | null {
  if (!needsStandIn(field, run, budgetTokens)) return null;
  const { summaries, isFirst } = run;
  const fitsOneCall = sumTokens(summaries) <= policy.leafChunkTokens;
  const tiles = fitsOneCall ? summaries : layTiles(field, summaries);
  const isWhole = sumTokens(tiles) <= policy.leafChunkTokens || tiles.length === 2;
  if (!isWhole) return makeReserveStep(pickInnerRun(tiles, policy), policy, false);
  const step = makeReserveStep(tiles, policy, isFirst);
  const most = Math.max(MIN_TARGET_TOKENS, Math.floor(STAND_IN_SHARE * budgetTokens));
  return { ...step, targetTokens: Math.min(step.targetTokens, most) };
}

/** A segment of several summaries has a root; any other run needs a stand-in if it takes much of the window. */
function needsStandIn(field: Field, run: StoryRun, budgetTokens: number): boolean {
  const { summaries, isFirst, shown } = run;
  const fits = (tokens: number): boolean => tokens <= STAND_IN_SLACK * STAND_IN_SHARE * budgetTokens;
  if (fits(sumTokens(summaries)) && (summaries.length < 2 || !isFirst)) return false;
  const last = must(summaries.at(-1), "last summary of a run");
  const known = findStandIns(field, run);
  const current = known.find(({ tokens }) => fits(tokens));
  if (current !== undefined) {
    const lag = shown.filter((item) => item.startPosition > current.endPosition);
    const hasGrown = last.startPosition > current.endPosition;
    if (!hasGrown || sumTokens(lag) <= ROOT_LAG_SHARE * budgetTokens) return false;
  }
  return known.filter(({ endPosition }) => endPosition === last.endPosition).length < MAX_OF_ONE_RUN;
}

const sumTokens = (list: readonly { readonly tokens: number }[]): number =>
  list.reduce((sum, { tokens }) => sum + tokens, 0);

/** The stand-ins in force for a run from its beginning, valid on the current cover, the one that extends furthest first. */
function findStandIns(field: Field, { summaries, isFirst }: StoryRun): ReserveSummary[] {
  return field.facts.reserve
    .filter((reserve) => reserve.isRoot === isFirst && matchReserve(reserve, summaries, 0)?.from === 0)
    .sort((a, b) => b.endPosition - a.endPosition || a.tokens - b.tokens);
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

/** The oldest run of at least two tiles of the smallest depth that has one; otherwise, the two oldest tiles. */
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
  const inputTokens = sumTokens(tiles);
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
