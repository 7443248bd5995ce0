/**
 * Represents the messages up to the anchor when not all of them fit. In this order: the newest user message and an open tool group; one
 * root or stand-in for everything older, else a range line; the tail up to 30 %; summaries, recent before older; the rest goes to the tail,
 * up to 70 %, and if that is still too little, to what was left out and to finer items (`rest.ts`). Bulky tool results and calls of the
 * tail become stubs before its messages are left out. An unused share goes to the next.
 *
 * Invariants: the choice depends only on the messages up to the anchor, so it stays the same until the anchor moves; there is always
 * room for one range line where one is needed; every message is in one pick or counted by that line, never both.
 */
import type { CoverItem } from "../model/cover.ts";
import { must } from "../model/errors.ts";
import {
  canTellOf,
  matchLoosely,
  matchReserve,
  type ReserveMatch,
  type ReserveSummary,
} from "../model/reserve.ts";
import {
  countMissing,
  endOf,
  listMissing,
  orderPicks,
  pickStubbed,
  pickWhole,
  priceOf,
  startOf,
  sumTokens,
  type Front,
  type Lack,
  type Pick,
  type PiecePick,
  type ReservePick,
} from "./picks.ts";
import { isBulky, LACKS_TOKENS, pieceOf, type LineCosts, type Piece } from "./pieces.ts";
import { useRest } from "./rest.ts";

export interface FrontChoice {
  /** Oldest first. */
  readonly picks: readonly Pick[];
  readonly range: RangeNeed | null;
  readonly tokens: number;
  /** Summaries to open next, if their sources were known. */
  readonly wanted: readonly string[];
}

/** What one range line has to represent. */
export interface RangeNeed {
  readonly messages: number;
  /** The line goes before this pick: where the oldest of its messages would be. */
  readonly beforePick: number;
  /** Oldest and newest of the pieces it represents; null if they were not read. */
  readonly oldest: Piece | null;
  readonly newest: Piece | null;
  readonly includesUnread: boolean;
}

/** Shares of the capacity. */
const TAIL_FIRST = 0.3;
const TAIL_MOST = 0.7;
const RECENT_SUMMARIES = 0.4;

export function chooseFront(front: Front): FrontChoice {
  const reserve = front.reserve.filter((summary) => !front.user || !covers(summary, front.user));
  const usable = { ...front, reserve };
  const boards = new Boards(usable);
  const choice = fill(usable, boards, false);
  return front.user === null || showsItem(choice.picks, front.user) ? choice : fill(usable, boards, true);
}

/**
 * The minimum that is ever sent: the newest user message and an open tool group, stubbed, and a line for everything else. With `withRoot`
 * also a root, if there is room for one.
 */
export function chooseLeast(front: Front, { withRoot }: { readonly withRoot: boolean }): FrontChoice {
  const picks: PiecePick[] = [];
  const newest = front.pieces.at(-1);
  if (newest?.hasTools) picks.push(pickOpenGroup(newest, front.costs));
  if (front.user && !showsItem(picks, front.user)) picks.push(pickUser(front.user, front.costs));
  const rooted = withRoot ? addRoot(front, picks) : null;
  return rooted ?? finish(front, { picks, wanted: [] }, null);
}

/** The same picks with the root that extends furthest; null if none fits. It often makes the line for everything else unnecessary. */
function addRoot(front: Front, picks: readonly PiecePick[]): FrontChoice | null {
  const reserve = front.reserve.filter((summary) => !front.user || !covers(summary, front.user));
  const board = layBoard({ ...front, reserve }, matchLoosely);
  for (const lineTokens of [0, front.costs.rangeTokens]) {
    const room = front.capacityTokens - sumTokens(picks) - lineTokens;
    const root = findSparseRoot({ ...front, reserve }, board, room);
    if (root === null) return null;
    const choice = finish(front, { picks: [pickReserve(root), ...picks], wanted: [] }, null);
    if (choice.tokens <= front.capacityTokens) return choice;
  }
  return null;
}

const covers = (reserve: ReserveSummary, item: CoverItem): boolean =>
  reserve.startPosition <= item.startPosition && item.endPosition <= reserve.endPosition;

const showsItem = (picks: readonly Pick[], { messageId }: CoverItem): boolean =>
  picks.some(
    (pick) => pick.kind === "piece" && pick.piece.items.some((item) => item.messageId === messageId),
  );

/** First without a range line: whether one is needed is known only afterwards, and its room may be what decides. */
function fill(front: Front, boards: Boards, keepsUser: boolean): FrontChoice {
  const user = keepsUser && front.user ? pickUser(front.user, front.costs) : null;
  const free = front.capacityTokens - (user?.tokens ?? 0);
  const draft = draftWithin(front, boards, user, free);
  const whole = mayShowAll(front, draft.picks) ? finishDraft(front, draft) : null;
  if (whole?.range === null) return whole;
  return finishDraft(front, draftWithin(front, boards, user, free - front.costs.rangeTokens));
}

interface Draft {
  readonly picks: readonly Pick[];
  /** See `OlderChoice`. */
  readonly gapAfter: number | null;
}

function draftWithin(front: Front, boards: Boards, user: PiecePick | null, free: number): Draft {
  const older = fillOlder(front, boards, free);
  const left = Math.min(TAIL_MOST * front.capacityTokens, free - older.tokens);
  const tail = fillTail(front, older.tailFrom, left);
  const more = older.hasGaps && tail.isWhole ? extendTail(front, older, left - tail.tokens) : [];
  const picks: Pick[] = [...older.picks, ...more, ...tail.picks];
  if (user !== null && front.user && !showsItem(picks, front.user)) picks.push(user);
  return { picks, gapAfter: older.gapAfter };
}

const finishDraft = (front: Front, { picks, gapAfter }: Draft): FrontChoice =>
  finish(front, useRest(front, picks), gapAfter);

/** Whether what is in no pick might fit beside the picks at its smallest size; false: a range line is certain. */
function mayShowAll(front: Front, picks: readonly Pick[]): boolean {
  let tokens = sumTokens(picks);
  for (const { piece, messages } of listMissing(front.pieces, orderPicks(picks))) {
    if (piece.kind === "range") return false;
    if (messages === piece.messages) tokens += piece.stubbedTokens;
  }
  return tokens <= front.capacityTokens;
}

// Summaries before the tail.

interface OlderChoice {
  readonly picks: readonly Pick[];
  readonly tokens: number;
  /** Index of the first piece that is left to the tail. */
  readonly tailFrom: number;
  /** Some messages before the tail are in no pick. */
  readonly hasGaps: boolean;
  /** End of the newest summary beyond the pieces, when all of those were taken: the missing messages come after it. */
  readonly gapAfter: number | null;
}

/** Without a gap, using items that represent exactly their messages; else with stale items; else with a gap. */
function fillOlder(front: Front, boards: Boards, free: number): OlderChoice {
  const cap = free - fillTail(front, front.tailStart, TAIL_FIRST * front.capacityTokens).tokens;
  for (const match of [matchReserve, matchLoosely]) {
    const usable = keepPreferred(front, match, cap);
    const board = usable === front ? boards.of(match) : layBoard(usable, match);
    const edge = findEdge(usable, board, cap);
    if (edge === null) continue;
    const picks = layFinest(usable, board, edge, cap);
    return { picks, tokens: sumTokens(picks), tailFrom: edge, hasGaps: false, gapAfter: null };
  }
  return pickSparsely(front, boards.of(matchLoosely), cap, free);
}

type Match = (...asked: Parameters<typeof matchReserve>) => ReserveMatch | null;

/** Without the stand-ins that would replace a preferred summary, as long as everything can still be covered. */
function keepPreferred(front: Front, match: Match, cap: number): Front {
  let usable = front;
  for (const id of front.preferred) {
    const piece = front.pieces.find(({ items }) => items[0]?.summaryId === id);
    const item = piece?.items[0];
    if (item === undefined) continue;
    const without = { ...usable, reserve: usable.reserve.filter((reserve) => !covers(reserve, item)) };
    if (findEdge(without, layBoard(without, match), cap) !== null) usable = without;
  }
  return usable;
}

/** For each edge between pieces: the minimum cost of covering everything before it without a range line, and what may end there. */
interface Board {
  readonly least: readonly number[];
  readonly endingAt: ReadonlyMap<number, readonly Placed[]>;
}

/** The boards of a front, each laid once: they do not depend on the room. */
class Boards {
  readonly #front: Front;
  readonly #boards = new Map<Match, Board>();

  constructor(front: Front) {
    this.#front = front;
  }

  of(match: Match): Board {
    const board = this.#boards.get(match) ?? layBoard(this.#front, match);
    this.#boards.set(match, board);
    return board;
  }
}

/** A stand-in between two edges; `from` −1: it also represents everything that was not read. */
interface Placed extends ReserveMatch {
  readonly reserve: ReserveSummary;
  readonly lacks: Lack | null;
  /** Including the words about what it lacks. */
  readonly tokens: number;
}

function place(reserve: ReserveSummary, match: ReserveMatch): Placed {
  const messages = match.messages - reserve.messages;
  const lacks = messages === 0 && reserve.isStale !== true ? null : { messages };
  return { reserve, ...match, lacks, tokens: reserve.tokens + (lacks === null ? 0 : LACKS_TOKENS) };
}

function layBoard(front: Front, matchOf: Match): Board {
  const endingAt = new Map<number, Placed[]>();
  const last = lastEdge(front);
  for (const reserve of front.reserve) {
    const match = matchOf(reserve, front.pieces, front.unreadMessages);
    if (match === null || match.to > last) continue;
    const placed = endingAt.get(match.to) ?? [];
    placed.push(place(reserve, match));
    endingAt.set(match.to, placed);
  }
  // The finest stand-in first, incomplete ones last; ties are broken in a fixed order, so that the same input gives the same choice.
  for (const placed of endingAt.values())
    placed.sort(
      (a, b) =>
        Number(a.lacks !== null) - Number(b.lacks !== null) ||
        a.messages - b.messages ||
        b.tokens - a.tokens ||
        (a.reserve.summaryId < b.reserve.summaryId ? -1 : 1),
    );
  const least = [front.unreadMessages > 0 ? Number.POSITIVE_INFINITY : 0];
  for (const [index, piece] of front.pieces.entries()) {
    let cost =
      must(least[index], "cost of an edge") +
      (piece.kind === "range" ? Number.POSITIVE_INFINITY : piece.tokens);
    for (const { tokens, from } of endingAt.get(index + 1) ?? [])
      cost = Math.min(cost, leastBefore(least, from) + tokens);
    least.push(cost);
  }
  return { least, endingAt };
}

/** A stand-in never replaces the newest message. */
const lastEdge = ({ pieces }: Front): number =>
  pieces.at(-1)?.kind === "messages" ? pieces.length - 1 : pieces.length;

const leastBefore = (least: readonly number[], edge: number): number =>
  edge < 0 ? 0 : must(least[edge], "cost of an edge");

/** Where the part before the tail can end without a gap: at the tail, or inside it where a stand-in ends. */
function findEdge(front: Front, board: Board, cap: number): number | null {
  for (let edge = front.tailStart; edge <= Math.max(front.tailStart, lastEdge(front)); edge++) {
    if (edge > front.tailStart && !board.endingAt.has(edge)) continue;
    if (must(board.least[edge], "cost of an edge") <= cap) return edge;
  }
  return null;
}

/** From the newest back: the finest piece that still leaves room for the cheapest cover of what is older. */
function layFinest(front: Front, board: Board, edge: number, cap: number): Pick[] {
  const picks: Pick[] = [];
  let room = cap;
  let recent = RECENT_SUMMARIES * front.capacityTokens;
  let at = edge;
  while (at > 0) {
    const piece = must(front.pieces[at - 1], "piece before an edge");
    const isFine = piece.kind !== "range" && leastBefore(board.least, at - 1) + piece.tokens <= room;
    const coarse = isFine
      ? undefined
      : board.endingAt.get(at)?.find((p) => leastBefore(board.least, p.from) + p.tokens <= room);
    const pick: Pick = isFine
      ? pickWhole(piece, nameOlder(front, piece, recent > 0))
      : pickReserve(must(coarse, "a way to cover what is older"));
    picks.unshift(pick);
    room -= pick.tokens;
    recent -= pick.tokens;
    at = isFine ? at - 1 : must(coarse, "a way to cover what is older").from;
  }
  return picks;
}

/**
 * When there is no way without a gap: a root for the beginning if there is one, then the preferred summaries, then the others from the
 * newest back, each by its stand-in where it does not fit itself. Such a root ends before the tail, else it would have been a way without a gap.
 */
function pickSparsely(front: Front, board: Board, cap: number, free: number): OlderChoice {
  // A root takes precedence over the tail's share; only what must be shown precedes it.
  const newest = front.pieces.at(-1);
  const rootCap = free - (newest?.hasTools ? newest.stubbedTokens : 0);
  const root = findSparseRoot(front, board, rootCap);
  const picks: Pick[] = [];
  const taken = new Set<string>();
  let tokens = root?.tokens ?? 0;
  const take = (piece: Piece, most = cap): boolean => {
    const id = piece.items[0]?.summaryId ?? "";
    if (taken.has(id)) return true;
    if (tokens + piece.tokens > most) return false;
    picks.push(pickWhole(piece, nameOlder(front, piece, tokens < RECENT_SUMMARIES * front.capacityTokens)));
    taken.add(id);
    tokens += piece.tokens;
    return true;
  };
  const standIn = (edge: number): number | null => {
    const isFree = ({ from, to }: Placed): boolean =>
      from >= (root?.to ?? 0) &&
      !front.pieces.slice(from, to).some(({ items }) => taken.has(items[0]?.summaryId ?? ""));
    const placed = board.endingAt.get(edge)?.find((one) => tokens + one.tokens <= cap && isFree(one));
    if (placed === undefined) return null;
    picks.push(pickReserve(placed));
    tokens += placed.tokens;
    return placed.from;
  };
  const beginning = root === null ? findBeginning(front) : null;
  if (beginning !== null) take(beginning, rootCap);
  for (const piece of listPreferred(front, root)) take(piece);
  const tookAll = takeSummaries(front, root?.to ?? 0, take, standIn);
  const isUnread = front.unreadMessages > 0 && root?.from !== -1;
  const gapAfter = tookAll && isUnread ? takeUnreadSummaries(front, root, take) : null;
  if (root !== null) picks.push(pickReserve(root));
  const ordered = picks.toSorted((a, b) => startOf(a) - startOf(b));
  return { picks: ordered, tokens, tailFrom: front.tailStart, hasGaps: true, gapAfter };
}

/** If no stand-in is a root, the condensed summary at the start of the cover serves as one. */
function findBeginning({ pieces, unreadMessages }: Front): Piece | null {
  const first = pieces[0];
  const isCondensed = first?.kind === "summary" && (first.items[0]?.depth ?? 0) > 0;
  return isCondensed && unreadMessages === 0 ? first : null;
}

/** The preferred summaries that the root does not represent, among the pieces and beyond them. */
function listPreferred(front: Front, root: Placed | null): Piece[] {
  if (front.preferred.length === 0) return [];
  const first = front.pieces[0]?.startPosition ?? 0;
  const unread = [...(front.summariesBefore?.(first) ?? [])].filter((item) => item.endPosition < first);
  const all = [...front.pieces, ...unread.map((item) => pieceOf(item, front.costs))];
  const rootEnd = root?.reserve.endPosition ?? -1;
  return front.preferred.flatMap(
    (id) =>
      all.find(
        ({ kind, items, startPosition }) =>
          kind === "summary" &&
          items[0]?.summaryId === id &&
          items[0].hidden === 0 &&
          startPosition > rootEnd,
      ) ?? [],
  );
}

/**
 * Takes summaries among the pieces, newest first, or what stands in for one that does not fit; false once neither did. `standIn` answers
 * with the edge where what it took begins.
 */
function takeSummaries(
  front: Front,
  downTo: number,
  take: (piece: Piece) => boolean,
  standIn: (edge: number) => number | null,
): boolean {
  for (let edge = front.pieces.length; edge > downTo;) {
    const piece = must(front.pieces[edge - 1], "piece");
    const next = piece.kind !== "summary" || take(piece) ? edge - 1 : standIn(edge);
    if (next === null) return false;
    edge = next;
  }
  return true;
}

/** Takes summaries beyond the pieces; returns the end of the newest if all were taken, else null. */
function takeUnreadSummaries(
  front: Front,
  root: Placed | null,
  take: (piece: Piece) => boolean,
): number | null {
  const first = front.pieces[0];
  if (front.summariesBefore === null || first === undefined) return null;
  let newestEnd: number | null = null;
  for (const item of front.summariesBefore(first.startPosition)) {
    if (item.hidden !== 0 || item.endPosition >= first.startPosition) continue;
    if (root !== null && item.startPosition <= root.reserve.endPosition) break;
    if (!take(pieceOf(item, front.costs))) return null;
    newestEnd ??= item.endPosition;
  }
  return newestEnd;
}

/** The stand-in for the beginning that extends furthest: proven by what was read, or vouched for by the store. */
function findSparseRoot(front: Front, board: Board, cap: number): Placed | null {
  const fromStart = [...board.endingAt.values()]
    .flat()
    .filter(({ from }) => from === -1 || (from === 0 && front.unreadMessages === 0));
  const first = front.pieces[0];
  for (const reserve of front.reserve) {
    const liesBefore = first === undefined || reserve.endPosition < first.startPosition;
    const { isRoot, held } = reserve;
    const isUsable = held !== undefined && canTellOf(reserve, held) && held <= front.unreadMessages;
    if (isRoot && liesBefore && isUsable) fromStart.push(place(reserve, { from: 0, to: 0, messages: held }));
  }
  const fitting = fromStart.filter(({ tokens }) => tokens <= cap);
  return (
    fitting.sort((a, b) => b.reserve.endPosition - a.reserve.endPosition || b.tokens - a.tokens)[0] ?? null
  );
}

// The tail.

function fillTail(front: Front, from: number, allotted: number) {
  const tail = front.pieces.slice(from);
  const stubbed = stubOldestFirst(tail, allotted, front.costs);
  const cost = (piece: Piece) => priceOf(piece, stubbed, front.costs);
  let tokens = 0;
  let kept = 0;
  for (const piece of tail.toReversed()) {
    const isOpenGroup = kept === 0 && piece.hasTools;
    if (piece.kind === "range" || (!isOpenGroup && tokens + cost(piece) > allotted)) break;
    tokens += cost(piece);
    kept++;
  }
  const shown = tail.slice(tail.length - kept);
  tokens = unstubNewestFirst(shown, stubbed, tokens, allotted, front.costs);
  const picks = shown.map((piece) => pickStubbed(piece, stubbed, front.costs, "fresh tail"));
  return { picks, tokens, isWhole: kept === tail.length };
}

/** Stubs as few bulky results as necessary, the oldest first. */
function stubOldestFirst(tail: readonly Piece[], allotted: number, costs: LineCosts): Set<CoverItem> {
  const stubbed = new Set<CoverItem>();
  let tokens = tail.reduce((sum, piece) => sum + piece.tokens, 0);
  for (const item of tail.flatMap((piece) => piece.items)) {
    if (tokens <= allotted) break;
    if (!isBulky(item, costs)) continue;
    stubbed.add(item);
    tokens -= item.tokens - costs.stubTokens(item);
  }
  return stubbed;
}

/** Room that is left after messages were left out is used to restore the newest results. */
function unstubNewestFirst(
  shown: readonly Piece[],
  stubbed: Set<CoverItem>,
  tokens: number,
  allotted: number,
  costs: LineCosts,
): number {
  let total = tokens;
  for (const item of shown.flatMap((piece) => piece.items).reverse()) {
    const more = item.tokens - costs.stubTokens(item);
    if (!stubbed.has(item) || total + more > allotted) continue;
    stubbed.delete(item);
    total += more;
  }
  return total;
}

/** Adds messages that are neither folded nor in the fresh tail, contiguously backwards from it, as far as they fit. */
function extendTail(front: Front, older: OlderChoice, room: number): PiecePick[] {
  const taken = new Set(older.picks.map((pick) => (pick.kind === "piece" ? pick.piece : null)));
  const rootEnd = older.picks.find((pick) => pick.kind === "reserve")?.reserve.endPosition ?? -1;
  const picks: PiecePick[] = [];
  let left = room;
  for (let index = older.tailFrom - 1; index >= 0; index--) {
    const piece = must(front.pieces[index], "piece");
    if (
      piece.kind !== "messages" ||
      taken.has(piece) ||
      piece.startPosition <= rootEnd ||
      piece.tokens > left
    )
      break;
    picks.unshift(pickWhole(piece, "not folded yet, verbatim"));
    left -= piece.tokens;
  }
  return picks;
}

// Picks.

const pickReserve = ({ reserve, messages, lacks, tokens }: Placed): ReservePick => ({
  kind: "reserve",
  reserve,
  tokens,
  messages,
  lacks,
  reason: reserve.isRoot
    ? "root: represents everything before"
    : "reserve summary where finer ones do not fit",
});

const pickUser = (user: CoverItem, costs: LineCosts): PiecePick =>
  pickWhole(pieceOf(user, costs), "newest user message");

function pickOpenGroup(piece: Piece, costs: LineCosts): PiecePick {
  const stubbed = new Set(
    piece.items.filter(
      (item) => item.toolResults.length + item.toolCalls.length > 0 && costs.stubTokens(item) < item.tokens,
    ),
  );
  return pickStubbed(piece, stubbed, costs, "open tool group");
}

function nameOlder({ preferred }: Front, piece: Piece, isRecent: boolean): string {
  if (piece.kind === "messages") return "not folded yet, verbatim";
  if (preferred.includes(piece.items[0]?.summaryId ?? "")) return "summary about what the user asked";
  return isRecent ? "recent summary" : "older summary";
}

// One range line counts the rest.

function finish(
  front: Front,
  { picks: unordered, wanted }: { readonly picks: readonly Pick[]; readonly wanted: readonly string[] },
  gapAfter: number | null,
): FrontChoice {
  const picks = orderPicks(unordered);
  const messages = countMissing(front, picks);
  const tokens = sumTokens(picks);
  if (messages <= 0) return { picks, range: null, tokens, wanted };
  return {
    picks,
    range: describeRange(front, picks, messages, gapAfter),
    tokens: tokens + front.costs.rangeTokens,
    wanted,
  };
}

function describeRange(
  front: Front,
  picks: readonly Pick[],
  messages: number,
  gapAfter: number | null,
): RangeNeed {
  const missing = listMissing(front.pieces, picks);
  const counted = missing.reduce((sum, piece) => sum + piece.messages, 0);
  const includesUnread = messages > counted;
  const oldest = missing[0]?.piece ?? null;
  return {
    messages,
    beforePick: includesUnread ? findUnreadPlace(front, picks, gapAfter) : placeBefore(picks, oldest),
    oldest,
    newest: missing.at(-1)?.piece ?? null,
    includesUnread,
  };
}

const placeBefore = (picks: readonly Pick[], oldest: Piece | null): number => {
  const index = oldest === null ? 0 : picks.findIndex((pick) => startOf(pick) > oldest.startPosition);
  return index < 0 ? picks.length : index;
};

/** Unread messages come after the summaries that extend back to the beginning; if there are none, at the very beginning. */
function findUnreadPlace(front: Front, picks: readonly Pick[], gapAfter: number | null): number {
  if (gapAfter !== null) return picks.findLastIndex((pick) => endOf(pick) <= gapAfter) + 1;
  const first = picks[0];
  const start = front.pieces[0]?.startPosition ?? Number.POSITIVE_INFINITY;
  return first?.kind === "reserve" && first.reserve.isRoot && startOf(first) <= start ? 1 : 0;
}
