/**
 * The part of a cover that may be folded, and how it is cut: runs of neighbours before the fresh tail, and chunks of them that end between
 * tool groups, span no boundary and do not cut across a stored stand-in. The planners decide everything on these.
 */
import { isDivided, isHiddenByBoundary, type Boundary } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import { must } from "../model/errors.ts";
import { matchReserve, type ReserveSummary, type Span } from "../model/reserve.ts";
import { findFreshTail, type FreshTail } from "../model/tail.ts";
import { groupItems, isMessageItem, isSummaryItem, type ItemGroup } from "../model/tool-groups.ts";
import type { CompactionPolicy } from "./policy.ts";

/** Below this a leaf is hardly shorter than its sources: it aims at up to 192 tokens, and its tag takes more. */
const MIN_LEAF_INPUT_TOKENS = 256;

/** What the planner must know besides the items. */
export interface PlanFacts {
  readonly boundaries?: readonly Boundary[];
  /** Prepared and reserve summaries that are neither stale nor retired. */
  readonly reserve?: readonly ReserveSummary[];
  /** Given when the list is only part of the cover; if absent, the list is all of it. */
  readonly window?: PlanWindow;
}

/**
 * What the store knows about a whole cover of which only a part was read, so that the cost of a pass depends on what it folds and not on
 * the length of the history. A part must extend `leafChunkTokens` and a tool group beyond the first message to be folded, or to the tail.
 */
export interface PlanWindow {
  readonly tailStartPosition: number;
  /** The newest user message, with its tool group, when it is before the tail. */
  readonly pinned: { readonly startPosition: number; readonly endPosition: number } | null;
  readonly shownTokens: number;
  /** Tokens of the shown summaries before the tail. */
  readonly prefixTokens: number;
}

/** Shown tokens of a cover: the number the threshold is compared with. */
export function countShownTokens(items: readonly CoverItem[], boundaries: readonly Boundary[] = []): number {
  let tokens = 0;
  for (const item of items)
    if (item.hidden === 0 && !isHiddenByBoundary(item, boundaries)) tokens += item.tokens;
  return tokens;
}

export interface Field {
  readonly items: readonly CoverItem[];
  readonly facts: Required<Omit<PlanFacts, "window">>;
  readonly tail: Pick<FreshTail, "startIndex" | "pinned">;
  readonly shownTokens: number;
  /** Tokens of the shown summaries before the tail. */
  readonly prefixTokens: number;
  /** Depths of those summaries, shallowest first. */
  readonly depths: readonly number[];
}

export function readField(items: readonly CoverItem[], policy: CompactionPolicy, facts: PlanFacts): Field {
  const boundaries = facts.boundaries ?? [];
  const isShown = (item: CoverItem) => item.hidden === 0 && !isHiddenByBoundary(item, boundaries);
  const shown = items.filter(isShown);
  const { window } = facts;
  const tail = window === undefined ? findFreshTail(items, policy, isShown) : locateTail(items, window);
  let shownTokens = 0;
  let prefixTokens = 0;
  const depths = new Set<number>();
  for (const [index, item] of items.entries()) {
    if (!isShown(item)) continue;
    shownTokens += item.tokens;
    if (index >= tail.startIndex || !isSummaryItem(item)) continue;
    prefixTokens += item.tokens;
    depths.add(item.depth);
  }
  return {
    items,
    facts: {
      boundaries,
      reserve: (facts.reserve ?? []).filter((reserve) => isInForce(reserve, shown, boundaries)),
    },
    tail,
    shownTokens: window?.shownTokens ?? shownTokens,
    prefixTokens: window?.prefixTokens ?? prefixTokens,
    depths: [...depths].sort((a, b) => a - b),
  };
}

/**
 * Whether a stand-in still represents neighbours of the cover. One that a boundary now divides, or whose edges are gone, must not prevent a
 * fold from cutting there. One that extends beyond what was read is trusted.
 */
function isInForce(
  reserve: ReserveSummary,
  shown: readonly CoverItem[],
  boundaries: readonly Boundary[],
): boolean {
  const last = shown.at(-1);
  if (last === undefined || reserve.endPosition > last.endPosition) return true;
  const match = matchReserve(reserve, shown, 0);
  if (match === null) return false;
  const [from, to] = [
    must(shown[match.from], "first item of a stand-in"),
    must(shown[match.to - 1], "last item of a stand-in"),
  ];
  return !isDivided(from, to, boundaries);
}

function locateTail(
  items: readonly CoverItem[],
  window: PlanWindow,
): Pick<FreshTail, "startIndex" | "pinned"> {
  const findFrom = (position: number) => {
    const index = items.findIndex((item) => item.startPosition >= position);
    return index < 0 ? items.length : index;
  };
  const { pinned, tailStartPosition } = window;
  return {
    startIndex: findFrom(tailStartPosition),
    pinned: pinned && {
      startIndex: findFrom(pinned.startPosition),
      endIndex: findFrom(pinned.endPosition + 1),
    },
  };
}

/**
 * Maximal runs of neighbours that satisfy a condition, as lists of indexes, oldest first. Hidden rows do not end a run; a boundary, what a
 * boundary hides, the pinned message and every other shown item do.
 */
export function findRuns(field: Field, belongs: (item: CoverItem) => boolean): number[][] {
  const { boundaries } = field.facts;
  const runs: number[][] = [];
  let run: number[] = [];
  const close = () => {
    if (run.length > 0) runs.push(run);
    run = [];
  };
  for (let index = 0; index < field.tail.startIndex; index++) {
    const item = must(field.items[index], "item of the cover");
    const before = field.items[index - 1];
    if (before !== undefined && isDivided(before, item, boundaries)) close();
    if (isHiddenByBoundary(item, boundaries) || isPinned(field, index)) close();
    else if (item.hidden !== 0 && isMessageItem(item)) continue;
    else if (belongs(item)) {
      if (item.hidden === 0) run.push(index);
    } else close();
  }
  close();
  return runs;
}

/** A summary with the messages directly before it that no leaf will include any more. */
export type Bundle = readonly number[];

/**
 * Runs of summaries of one depth, each with the messages stranded before it: what is left between two summaries, such as the user message
 * of a turn that was folded while it ran, is too little for a separate leaf and would keep its neighbours apart for ever.
 */
export function findSummaryRuns(
  field: Field,
  policy: CompactionPolicy,
  belongs: (item: CoverItem) => boolean,
): Bundle[][] {
  const runs: Bundle[][] = [];
  let run: Bundle[] = [];
  let stranded: number[] = [];
  let strandedTokens = 0;
  const forget = () => ([stranded, strandedTokens] = [[], 0]);
  const close = () => {
    if (run.length > 0) runs.push(run);
    run = [];
    forget();
  };
  for (let index = 0; index < field.tail.startIndex; index++) {
    const item = must(field.items[index], "item of the cover");
    const before = field.items[index - 1];
    if (before !== undefined && isDivided(before, item, field.facts.boundaries)) close();
    if (isHiddenByBoundary(item, field.facts.boundaries) || isPinned(field, index)) close();
    else if (item.hidden !== 0 && (isMessageItem(item) || belongs(item))) continue;
    else if (isMessageItem(item)) {
      stranded.push(index);
      strandedTokens += item.tokens;
    } else if (belongs(item)) {
      run.push([...stranded, index]);
      forget();
    } else close();
    // This much is not a leftover: it waits for a separate leaf.
    if (strandedTokens > policy.leafChunkTokens) close();
  }
  close();
  return runs;
}

function isPinned({ tail: { pinned } }: Field, index: number): boolean {
  return pinned !== null && pinned.startIndex <= index && index < pinned.endIndex;
}

export interface Chunk {
  /** Indexes of the shown items, neighbours. */
  readonly members: readonly number[];
  readonly tokens: number;
  readonly messages: number;
  /** The next piece of the run would have made it larger than `leafChunkTokens`. */
  readonly isFull: boolean;
  /** A stored summary of exactly these items. */
  readonly stored: ReserveSummary | null;
}

export function isWorthFolding(chunk: Chunk, policy: CompactionPolicy, isForced: boolean): boolean {
  if (chunk.stored !== null) return true;
  if (chunk.tokens < MIN_LEAF_INPUT_TOKENS) return false;
  return isForced || chunk.isFull || chunk.messages >= policy.leafMinFanout;
}

/** Cuts a run of messages, oldest first, into pieces of whole tool groups. A group larger than a chunk is a separate piece. */
export function* cutLeafChunks(
  field: Field,
  run: readonly number[],
  policy: CompactionPolicy,
): Generator<Chunk, void> {
  const bits = groupItems(run.map((index) => must(field.items[index], "item of a run"))).map(toBit);
  let next = 0;
  let offset = 0;
  while (next < bits.length) {
    const chunk = cutChunk(
      field,
      { run, offset, bits, next },
      { maxTokens: policy.leafChunkTokens, minBits: 1 },
      0,
    );
    yield chunk;
    offset += chunk.members.length;
    for (let left = chunk.members.length; left > 0; next++) left -= bits[next]?.count ?? left;
  }
}

/** The first summaries of a run that fit in a chunk, but at least `minSummaries` of them, however long they are. */
export function cutCondensedChunk(
  field: Field,
  run: readonly Bundle[],
  policy: CompactionPolicy,
  depth: number,
  minSummaries: number,
): Chunk {
  const bits = run.map((bundle) =>
    toBit({ items: bundle.map((index) => must(field.items[index], "item of a run")) }),
  );
  const size = { maxTokens: policy.leafChunkTokens, minBits: minSummaries };
  return cutChunk(field, { run: run.flat(), offset: 0, bits, next: 0 }, size, depth + 1);
}

export const countSummaries = (field: Field, chunk: Chunk): number =>
  chunk.members.filter((index) => isSummaryItem(must(field.items[index], "member of a chunk"))).length;

/** What a cut takes or leaves as a whole: a tool group, or a summary. */
interface Bit extends Span {
  readonly count: number;
  readonly tokens: number;
}

function toBit({ items }: Pick<ItemGroup, "items">): Bit {
  return {
    startPosition: must(items[0], "first item of a bit").startPosition,
    endPosition: must(items.at(-1), "last item of a bit").endPosition,
    messages: items.reduce((sum, item) => sum + item.messages, 0),
    tokens: items.reduce((sum, item) => sum + item.tokens, 0),
    count: items.length,
  };
}

/** A run whose first `offset` members, `next` bits, are already cut off. */
interface RunRest {
  readonly run: readonly number[];
  readonly offset: number;
  readonly bits: readonly Bit[];
  readonly next: number;
}

/** Takes bits while they fit (always the first ones), without cutting across a stored stand-in. */
function cutChunk(
  field: Field,
  rest: RunRest,
  { maxTokens, minBits }: { readonly maxTokens: number; readonly minBits: number },
  depth: number,
): Chunk {
  const stored = findStored(field, rest, depth);
  if (stored !== null) return describeChunk(field, rest, stored.count, false, stored.reserve);
  let count = 0;
  let tokens = 0;
  let isFull = false;
  const ends: number[] = [];
  for (let next = rest.next; next < rest.bits.length; next++) {
    const bit = must(rest.bits[next], "bit of a run");
    isFull = ends.length >= minBits && tokens + bit.tokens > maxTokens;
    if (isFull) break;
    count += bit.count;
    tokens += bit.tokens;
    ends.push(count);
  }
  const whole = ends.findLast((end) => !cutsAcross(field, rest, end)) ?? ends[0] ?? 0;
  return describeChunk(field, rest, whole, (isFull || tokens >= maxTokens) && whole === count, null);
}

/** The shortest beginning of a chunk that is enough and cuts neither a tool group nor a stand-in; the chunk itself if there is none. */
export function shortenChunk(
  field: Field,
  chunk: Chunk,
  isEnough: (beginning: Pick<Chunk, "tokens" | "messages">) => boolean,
): Chunk {
  const bits = groupItems(chunk.members.map((index) => must(field.items[index], "member of a chunk"))).map(
    toBit,
  );
  const rest: RunRest = { run: chunk.members, offset: 0, bits, next: 0 };
  let count = 0;
  for (const bit of bits) {
    count += bit.count;
    const beginning = describeChunk(field, rest, count, false, null);
    if (isEnough(beginning) && !cutsAcross(field, rest, count)) return beginning;
  }
  return chunk;
}

interface StoredRun {
  readonly reserve: ReserveSummary;
  readonly count: number;
}

/**
 * The longest stored summary of the wanted depth that represents exactly the first bits of a run. One whose last tool group got a late
 * result since no longer ends at an edge and is skipped.
 */
function findStored(field: Field, rest: RunRest, depth: number): StoredRun | null {
  let best: StoredRun | null = null;
  const first = readMember(field, rest, 0);
  for (const reserve of field.facts.reserve) {
    const holdsFirst =
      reserve.startPosition <= first.startPosition && first.endPosition <= reserve.endPosition;
    if (reserve.depth !== depth || !holdsFirst) continue;
    const bits = rest.bits.slice(rest.next);
    const match = matchReserve(reserve, bits, 0);
    if (match === null || match.from !== 0 || (depth > 0 && match.to < 2)) continue;
    const count = bits.slice(0, match.to).reduce((sum, bit) => sum + bit.count, 0);
    if (best === null || count > best.count) best = { reserve, count };
  }
  return best;
}

const readMember = (field: Field, rest: RunRest, at: number): CoverItem =>
  must(field.items[must(rest.run[rest.offset + at], "member of a run")], "item of a run");

/** True when a chunk that ends here would overlap a stored stand-in without containing it or being inside it. */
function cutsAcross(field: Field, rest: RunRest, count: number): boolean {
  const start = readMember(field, rest, 0).startPosition;
  const end = readMember(field, rest, count - 1).endPosition;
  return field.facts.reserve.some(({ startPosition, endPosition }) => {
    const overlaps = startPosition <= end && endPosition >= start;
    const holds = start <= startPosition && endPosition <= end;
    const lies = startPosition <= start && end <= endPosition;
    return overlaps && !holds && !lies;
  });
}

function describeChunk(
  field: Field,
  rest: RunRest,
  count: number,
  isFull: boolean,
  stored: ReserveSummary | null,
): Chunk {
  const members = rest.run.slice(rest.offset, rest.offset + count);
  let tokens = 0;
  let messages = 0;
  for (const index of members) {
    const item = must(field.items[index], "member of a chunk");
    tokens += item.tokens;
    messages += item.messages;
  }
  return { members, tokens, messages, isFull, stored };
}

/**
 * A new leaf includes the hidden rows on both its sides, so that none is left between two summaries, where only a condensed one could
 * include it; but not those that an adjacent stored leaf was made over, which could then not be published. A stored summary includes those
 * it was made over.
 */
export function widenOverHidden(field: Field, chunk: Chunk, kind: "leaf" | "condensed"): [number, number] {
  let start = must(chunk.members[0], "first of a chunk");
  let end = must(chunk.members.at(-1), "last of a chunk") + 1;
  if (kind === "condensed" && chunk.stored === null) return [start, end];
  while (canTakeAlong(field, start - 1, start, chunk.stored)) start--;
  while (end < field.tail.startIndex && canTakeAlong(field, end, end - 1, chunk.stored)) end++;
  return [start, end];
}

function canTakeAlong(
  field: Field,
  index: number,
  neighbour: number,
  stored: ReserveSummary | null,
): boolean {
  const item = field.items[index];
  if (item === undefined || item.hidden === 0 || !isMessageItem(item) || isPinned(field, index)) return false;
  if (stored && (item.startPosition < stored.startPosition || item.endPosition > stored.endPosition))
    return false;
  if (stored === null && isUnderStoredLeaf(field, item)) return false;
  const { boundaries } = field.facts;
  const beside = must(field.items[neighbour], "neighbour");
  if (isHiddenByBoundary(item, boundaries)) return false;
  return !(index < neighbour ? isDivided(item, beside, boundaries) : isDivided(beside, item, boundaries));
}

const isUnderStoredLeaf = ({ facts }: Field, { startPosition, endPosition }: CoverItem): boolean =>
  (facts.reserve ?? []).some(
    (leaf) => leaf.depth === 0 && leaf.startPosition <= startPosition && endPosition <= leaf.endPosition,
  );
