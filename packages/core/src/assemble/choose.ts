/**
 * The choice of a context for a budget. If the whole cover fits, it is the choice; if it leaves most of the budget unused, summaries are
 * opened (`open.ts`). Otherwise the choice is tight: the messages up to an anchor are represented within 80 % of the budget, and what
 * follows the anchor is verbatim. The anchor is the last multiple of 20 % of the budget in the conversation's running token count, so the
 * front of the prompt keeps its bytes until the conversation has grown by that much.
 *
 * Invariants: the tokens chosen are at most the budget, or it is the newest user message and the open tool group alone, stubbed; a tight
 * choice has at least 85 % of (80 % of the budget and what arrived after the anchor), unless nothing that was left out and no source of a
 * shown summary fits in the rest; every shown message is in exactly one chosen item; the same input gives the same choice. It writes
 * nothing, calls no model, and reads no more of the cover than a few budgets.
 */
import type { CoverItem } from "../model/cover.ts";
import { formatMessageId } from "../model/ids.ts";
import type { Stretch } from "../store/folding.ts";
import type { ReserveSummary } from "../model/reserve.ts";
import { measureFreshTail, type TailGroup, type TailPolicy } from "../model/tail.ts";
import { applyFactor } from "../text/tokens.ts";
import { isUserMessage } from "../model/tool-groups.ts";
import { chooseFront, chooseLeast, type FrontChoice, type RangeNeed } from "./front.ts";
import { openSummaries } from "./open.ts";
import type { Front, Pick, Stubs } from "./picks.ts";
import {
  BRIEF_LINE_COSTS,
  DEFAULT_LINE_COSTS,
  readPieces,
  withCosts,
  type LineCosts,
  type Piece,
  type Pieces,
} from "./pieces.ts";

export interface CoverCounters {
  /** Messages that the whole cover represents, without hidden ones. */
  readonly shownMessages: number;
  /** The running token count: grows by the tokens of each shown message when it is appended, and otherwise changes only with an epoch. */
  readonly shownTokens: number;
  /** Time of the first shown message. */
  readonly firstAt: number | null;
}

export interface ChooseRequest {
  /** The cover's items, newest first, read lazily, more than once. May end early; the counters then show how much is missing. */
  readonly items: Iterable<CoverItem>;
  readonly counters: CoverCounters;
  readonly budgetTokens: number;
  /** Part of the budget that is kept free; it does not move the anchor. */
  readonly marginTokens?: number;
  /** The model's factor for stored counts; it changes only with an epoch. */
  readonly tokenFactor?: number;
  readonly tail: TailPolicy;
  readonly reserve?: readonly ReserveSummary[];
  /** The cover's summaries before a position, newest first. */
  readonly summariesBefore?: (position: number) => Iterable<CoverItem>;
  /** The newest shown user message before a position, for turns longer than what is read. If absent, the items are read further. */
  readonly newestUserBefore?: (position: number) => CoverItem | null;
  /** Ids of summaries that get room before others in a tight choice, the most important first. */
  readonly preferred?: readonly string[];
  /** The sources of summaries, oldest first, as far as known; see `Choice.wanted`. */
  readonly sources?: ReadonlyMap<string, readonly CoverItem[]>;
  /** Nothing larger fits once written: only the newest user message and the open tool group. */
  readonly isLeast?: boolean;
}

export interface ChosenItem {
  readonly kind: "message" | "stub" | "summary" | "range";
  /** Public ids: the message, or the summary. */
  readonly ids: readonly string[];
  readonly messageId: number | null;
  readonly summaryId: string | null;
  readonly seq: number | null;
  /** What a range counts lies between these; other items may lie there too. */
  readonly startPosition: number;
  readonly endPosition: number;
  /** Uncalibrated. */
  readonly tokens: number;
  /** Shown messages it represents. */
  readonly messages: number;
  /** −1 for messages, stubs and ranges. */
  readonly depth: number;
  readonly earliestAt: number | null;
  readonly latestAt: number | null;
  /** Why it is here, in a few words. */
  readonly reason: string;
  /** For a stand-in that was made before something below it changed: how many messages it lacks. */
  readonly lacks?: number;
  /** Sent without its images and files; a line mentions them. */
  readonly withoutMedia?: true;
  /** Set on items from another conversation. For a range: the messages at which it begins and ends. */
  readonly ends?: { readonly first: number | null; readonly last: number | null };
}

export interface Choice {
  readonly mode: "whole" | "tight" | "least";
  /** Oldest first. */
  readonly items: readonly ChosenItem[];
  readonly tokens: number;
  /** Tokens with the model's factor: comparable with the requested budget. */
  readonly calibratedTokens: number;
  readonly messages: number;
  /** How many of the items, from the first, stay the same until the anchor moves. */
  readonly stableItems: number;
  readonly anchorTokens: number | null;
  /** Summaries that would be opened if their sources were known; the choice is final when there are none. */
  readonly wanted: readonly string[];
  /** Of a tight choice: the minimum for its front, or for all of it without an anchor, if there is enough to show. */
  readonly leastTokens: number;
}

const FRONT_SHARE = 0.8;
/** The share of the front's room, and of what follows the anchor, that must be used. */
const LEAST_USED = 0.85;
/** The share of its capacity that the front aims at: less than all, because the last tokens cost the most reading. */
const AIM = 0.92;
const ANCHOR_SHARE = 0.2;
/** A group that begins before the anchor is verbatim unless more than this share of the budget is before it. */
const MAX_CROSSING_SHARE = 0.3;
/** How far beyond its capacity the front is read, to find stand-ins that end there, and how much further if that was too little. */
const READ_AHEAD = 2;
const READ_ON = 4;

export function choose(request: ChooseRequest): Choice {
  const scene = openScene(request);
  if (request.isLeast) return chooseAtLeast(scene, { withRoot: false });
  return chooseWhole(scene) ?? chooseSome(scene);
}

/**
 * With an anchor, unless that leaves out many messages of which the whole budget has room for a summary: a range line is only for what nothing
 * else can show, and a long message may leave the front no room for a summary of what is older.
 */
function chooseSome(scene: Scene): Choice {
  const terse = { ...scene, reader: withCosts(scene.reader, BRIEF_LINE_COSTS), costs: BRIEF_LINE_COSTS };
  const chooseAll = (madeBy?: number): Choice =>
    preferBrief(chooseFresh(scene, madeBy), () => chooseFresh(terse, madeBy));
  // Between its two forms the front decides alone: what follows the anchor grows, and the front must not change with it.
  const front = preferBrief(chooseUpToAnchor(scene), () => chooseUpToAnchor(terse));
  const anchored = front === null ? null : chooseTight(scene, front);
  if (front === null || anchored === null) return chooseAll();
  const leftOut = countLeftOut(anchored);
  if (leftOut === 0 || !maySummarize(scene, anchored)) return anchored;
  // A stand-in made since then must not change the choice before the anchor moves.
  const fresh = chooseAll(seqBefore(scene, front.cut));
  const shown = new Set(anchored.items.map(({ summaryId }) => summaryId).concat(null));
  const hasMore = fresh.items.some(({ summaryId }) => !shown.has(summaryId));
  return hasMore && countLeftOut(fresh) < FRESH_SHARE * leftOut ? fresh : anchored;
}

/** Whether a summary that is not shown represents something of what a choice leaves out. */
function maySummarize({ request, reader }: Scene, { items }: Choice): boolean {
  const shown = new Set(items.map(({ summaryId }) => summaryId));
  const ranges = items.filter(({ kind }) => kind === "range");
  const isLeftOut = (span: { readonly startPosition: number; readonly endPosition: number }): boolean =>
    ranges.some(
      ({ startPosition, endPosition }) =>
        span.startPosition <= endPosition && span.endPosition >= startPosition,
    );
  const summaries =
    request.summariesBefore?.(Number.MAX_SAFE_INTEGER) ??
    reader.slice().flatMap(({ kind, items: [item] }) => (kind === "summary" ? (item ?? []) : []));
  return (
    (request.reserve ?? []).some((reserve) => !shown.has(reserve.summaryId) && isLeftOut(reserve)) ||
    [...summaries].some((item) => !shown.has(item.summaryId) && isLeftOut(item))
  );
}

/** A choice without an anchor gives up the stable front: it must leave out less than this share of what one with an anchor does. */
const FRESH_SHARE = 0.5;

interface Chosen {
  readonly items: readonly ChosenItem[];
}

/** With brief stubs if the room they save shows what would be left out otherwise: many calls at once may fill a small window with stubs. */
function preferBrief<T extends Chosen | null>(choice: T, chooseBrief: () => T): T {
  if (choice === null) return chooseBrief();
  const leftOut = countLeftOut(choice);
  if (leftOut === 0 || !choice.items.some(({ kind }) => kind === "stub")) return choice;
  const brief = chooseBrief();
  return brief !== null && countLeftOut(brief) < leftOut ? brief : choice;
}

const countLeftOut = ({ items }: Chosen): number =>
  items.reduce((sum, { kind, messages }) => sum + (kind === "range" ? messages : 0), 0);

interface Scene {
  readonly request: ChooseRequest;
  readonly reader: Pieces;
  readonly costs: LineCosts;
  /** In stored tokens: the budget, and how much of it may be used. */
  readonly budget: number;
  readonly room: number;
  readonly factor: number;
}

function openScene(request: ChooseRequest): Scene {
  const factor = request.tokenFactor ?? 1;
  const budget = divideByFactor(request.budgetTokens, factor);
  const room = divideByFactor(Math.max(0, request.budgetTokens - (request.marginTokens ?? 0)), factor);
  const reader = readPieces(request.items, DEFAULT_LINE_COSTS);
  return { request, reader, costs: DEFAULT_LINE_COSTS, budget, room, factor };
}

/** The position at which the front of a context for a budget ends, in the running token count. All in stored tokens. */
export function findAnchor(shownTokens: number, budget: number): number {
  const quantum = Math.max(1, Math.floor(budget * ANCHOR_SHARE));
  return Math.floor(shownTokens / quantum) * quantum;
}

/** The largest number of stored tokens that, with the model's factor, is at most this many. */
export function divideByFactor(tokens: number, factor: number): number {
  let stored = Math.floor(tokens / factor);
  while (stored > 0 && applyFactor(stored, factor) > tokens) stored--;
  return stored;
}

function chooseWhole(scene: Scene): Choice | null {
  const { reader, room, request } = scene;
  let tokens = 0;
  let messages = 0;
  let count = 0;
  for (let piece = reader.at(0); piece !== undefined; piece = reader.at(++count)) {
    tokens += piece.tokens;
    messages += piece.messages;
    if (tokens > room) return null;
  }
  if (messages < request.counters.shownMessages) return null;
  const pieces = reader.slice(0, count).reverse();
  const anchor = findAnchor(request.counters.shownTokens, scene.budget);
  const sources = request.sources ?? NO_SOURCES;
  const opened = openSummaries(pieces, sources, { anchor, budget: scene.budget, costs: scene.costs });
  const isOpened = opened.pieces.some(({ isOpened: is }) => is);
  const items = opened.pieces.flatMap(({ piece, isOpened: is }) =>
    showPiece(piece, is ? "opened: there is room" : "the whole cover fits"),
  );
  const choice = close(scene, "whole", items, items.length, isOpened ? anchor : null);
  if (choice.tokens > room) return chooseWholeClosed(scene, pieces);
  return { ...choice, wanted: opened.wanted };
}

const NO_SOURCES: ReadonlyMap<string, readonly CoverItem[]> = new Map();

function chooseWholeClosed(scene: Scene, pieces: readonly Piece[]): Choice {
  const items = pieces.flatMap((piece) => showPiece(piece, "the whole cover fits"));
  return close(scene, "whole", items, items.length, null);
}

/** The front of a tight choice. */
interface AnchoredFront extends Chosen {
  readonly tokens: number;
  readonly wanted: readonly string[];
  readonly leastTokens: number;
  readonly anchor: number;
  /** How many of the newest pieces follow it. */
  readonly cut: number;
}

/** The front for 80 % up to the anchor; null when that is impossible. */
function chooseUpToAnchor(scene: Scene): AnchoredFront | null {
  const { budget, room, request } = scene;
  const anchor = findAnchor(request.counters.shownTokens, budget);
  const { cut, crossing, inFront } = findCut(scene, request.counters.shownTokens - anchor);
  const capacity = Math.floor(budget * FRONT_SHARE) + inFront - (budget - room) - crossing;
  // What follows the anchor is shown in any case and does not count here: the front must not change with each message.
  const owed = LEAST_USED * (FRONT_SHARE * budget + inFront) - crossing;
  const least = Math.max(owed, AIM * capacity);
  const { front, choice } = fillFront(scene, { cut, capacity, least, madeBy: seqBefore(scene, cut) });
  if (choice.tokens > capacity) return null;
  const items = showFront(scene, front, choice);
  const { tokens, wanted } = choice;
  return { items, tokens, wanted, leastTokens: front.leastTokens, anchor, cut };
}

/** The front and what follows the anchor, verbatim; null when that is too much. */
function chooseTight(scene: Scene, front: AnchoredFront): Choice | null {
  const verbatim = scene.reader.slice(0, front.cut).reverse();
  const after = verbatim.reduce((sum, piece) => sum + piece.tokens, 0);
  if (front.tokens + after > scene.room) return null;
  const rest = verbatim.flatMap((piece) => showPiece(piece, "verbatim since the anchor"));
  const { items, wanted, leastTokens, anchor } = front;
  return { ...close(scene, "tight", [...items, ...rest], items.length, anchor), wanted, leastTokens };
}

/** Without an anchor, for the whole budget: when single messages are large compared with it. */
function chooseFresh(scene: Scene, madeBy = Number.POSITIVE_INFINITY): Choice {
  const { room } = scene;
  const { front, choice } = fillFront(scene, { cut: 0, capacity: room, least: AIM * room, madeBy });
  if (choice.tokens > room) return chooseAtLeast(scene, { withRoot: true });
  const items = showFront(scene, front, choice);
  return { ...close(scene, "tight", items, 0, null), wanted: choice.wanted, leastTokens: front.leastTokens };
}

function chooseAtLeast(scene: Scene, how: { readonly withRoot: boolean }): Choice {
  const need = { cut: 0, capacity: scene.room, least: 0, madeBy: Number.POSITIVE_INFINITY };
  const front = readFront(scene, need, READ_AHEAD);
  const items = showFront(scene, front, chooseLeast(front, how));
  const user = front.user?.messageId ?? null;
  const bare = items.map((item) =>
    item.messageId !== null && (item.messageId === user || item.kind === "stub")
      ? { ...item, withoutMedia: true as const }
      : item,
  );
  return close(scene, "least", bare, 0, null);
}

/** What the front must achieve. */
interface FrontNeed {
  /** How many of the newest pieces are not part of it. */
  readonly cut: number;
  readonly capacity: number;
  readonly least: number;
  /** Stand-ins made after this message are not used. */
  readonly madeBy: number;
}

/** Reads further when what was read cannot fill the room: a few large messages may follow many small ones. */
function fillFront(scene: Scene, need: FrontNeed): { front: Front; choice: FrontChoice } {
  for (let ahead = READ_AHEAD; ; ahead *= READ_ON) {
    const front = readFront(scene, need, ahead);
    const choice = chooseFront(front);
    const isAll = scene.reader.at(need.cut + front.pieces.length) === undefined;
    if (isAll || choice.tokens >= front.leastTokens) return { front, choice };
  }
}

/** The newest message before the last pieces. */
const seqBefore = ({ reader }: Scene, pieces: number): number => reader.at(pieces)?.items.at(-1)?.seq ?? 0;

interface Cut {
  /** How many of the newest pieces follow the anchor. */
  readonly cut: number;
  /** Tokens of them before the anchor: subtracted from the front's capacity. */
  readonly crossing: number;
  /** Tokens after the anchor that are left to the front. */
  readonly inFront: number;
}

/**
 * A tool group that straddles the anchor is put after it: it may still grow, and the part before the anchor does not. One that is too large
 * for that is left to the front, whole.
 */
function findCut(scene: Scene, afterAnchor: number): Cut {
  let tokens = 0;
  let cut = 0;
  for (let piece = scene.reader.at(0); piece?.kind === "messages"; piece = scene.reader.at(cut)) {
    if (tokens >= afterAnchor) break;
    const before = tokens + piece.storedTokens - afterAnchor;
    if (before > MAX_CROSSING_SHARE * scene.budget) break;
    cut++;
    tokens += piece.storedTokens;
    if (before > 0) return { cut, crossing: before, inFront: 0 };
  }
  return { cut, crossing: 0, inFront: Math.max(0, afterAnchor - tokens) };
}

function readFront(scene: Scene, need: FrontNeed, ahead: number): Front {
  const { reader, request, costs } = scene;
  const { cut, capacity, least, madeBy } = need;
  const { freshTailCount } = request.tail;
  let after = 0;
  for (const piece of reader.slice(0, cut)) after += piece.messages;
  let whole = 0;
  let stubbed = 0;
  let messages = 0;
  let end = cut;
  for (let piece = reader.at(end); piece !== undefined; piece = reader.at(++end)) {
    const limit = ahead * Math.max(0, capacity);
    if (stubbed > limit || (whole > limit && messages >= freshTailCount)) break;
    whole += piece.tokens;
    stubbed += piece.stubbedTokens;
    messages += piece.messages;
  }
  const pieces = reader.slice(cut, end).reverse();
  return {
    pieces,
    unreadMessages: Math.max(0, request.counters.shownMessages - after - messages),
    capacityTokens: capacity,
    leastTokens: least,
    tailStart: findTailPiece(pieces, request.tail),
    user: findUser(scene, pieces, end),
    reserve: (request.reserve ?? []).filter(({ madeAtSeq = 0 }) => madeAtSeq <= madeBy),
    summariesBefore: request.summariesBefore ?? null,
    preferred: request.preferred ?? [],
    sources: request.sources ?? NO_SOURCES,
    costs,
  };
}

function findTailPiece(pieces: readonly Piece[], policy: TailPolicy): number {
  const trailing: TailGroup[] = [];
  for (let piece = pieces.at(-1); piece?.kind === "messages"; piece = pieces.at(-1 - trailing.length))
    trailing.push({ items: piece.items, tokens: piece.storedTokens });
  return pieces.length - measureFreshTail(trailing, policy).groups;
}

function findUser({ reader, request }: Scene, pieces: readonly Piece[], end: number): CoverItem | null {
  for (const piece of pieces.toReversed()) {
    const user = piece.items.findLast(isUserMessage);
    if (user !== undefined) return user;
  }
  const first = pieces[0];
  if (first === undefined) return null;
  if (request.newestUserBefore !== undefined) return request.newestUserBefore(first.startPosition);
  let at = end;
  for (let piece = reader.at(at); piece !== undefined; piece = reader.at(++at)) {
    const user = piece.items.findLast(isUserMessage);
    if (user !== undefined) return user;
  }
  return null;
}

// From picks to chosen items.

function showFront(scene: Scene, front: Front, choice: FrontChoice): ChosenItem[] {
  const items: ChosenItem[] = [];
  for (const [index, pick] of choice.picks.entries()) {
    if (choice.range?.beforePick === index) items.push(showRange(scene, front, choice.range));
    items.push(...showPick(pick));
  }
  if (choice.range && choice.range.beforePick >= choice.picks.length)
    items.push(showRange(scene, front, choice.range));
  return items;
}

function showPick(pick: Pick): ChosenItem[] {
  if (pick.kind === "piece") {
    const items = showPiece(pick.piece, pick.reason, pick.stubbed);
    return pick.piece.kind === "summary" ? items.map((item) => showPart(item, pick.messages)) : items;
  }
  const { reserve, lacks } = pick;
  const messages = reserve.messages + (lacks?.messages ?? 0);
  const item: ChosenItem = {
    kind: "summary",
    ids: [reserve.summaryId],
    messageId: null,
    summaryId: reserve.summaryId,
    seq: null,
    startPosition: reserve.startPosition,
    endPosition: reserve.endPosition,
    tokens: pick.tokens,
    messages,
    depth: reserve.depth,
    earliestAt: null,
    latestAt: null,
    reason: lacks === null ? pick.reason : `${pick.reason}, ${describeLack(lacks.messages)}`,
    lacks: lacks?.messages,
  };
  return [showPart(item, pick.messages)];
}

function describeLack(messages: number): string {
  if (messages > 0) return `without ${messages} that came later`;
  return "made before something below it changed";
}

/** A summary beside which some of its sources are shown. */
function showPart(item: ChosenItem, messages: number): ChosenItem {
  if (item.messages === messages) return item;
  return { ...item, messages, reason: `${item.reason}, of which ${item.messages - messages} follow` };
}

function showPiece(piece: Piece, reason: string, stubbed: Stubs = new Map()): ChosenItem[] {
  const notes = piece.tokens - piece.storedTokens;
  return piece.items.map((item, index) => {
    const stubTokens = stubbed.get(item);
    const isStub = stubTokens !== undefined;
    const extra = index === piece.items.length - 1 ? notes : 0;
    return {
      kind: isStub
        ? "stub"
        : item.messageId !== null
          ? "message"
          : item.summaryId !== null
            ? "summary"
            : "range",
      ids: idsOf(item),
      messageId: item.messageId,
      summaryId: item.summaryId,
      seq: item.seq,
      startPosition: item.startPosition,
      endPosition: item.endPosition,
      tokens: (stubTokens ?? item.tokens) + extra,
      messages: item.messages,
      depth: item.depth,
      earliestAt: item.createdAt,
      latestAt: item.createdAt,
      reason: isStub ? `${reason}, ${item.tokens} tokens as a stub` : reason,
    };
  });
}

function idsOf(item: CoverItem): string[] {
  if (item.messageId !== null) return [formatMessageId(item.messageId)];
  return item.summaryId === null ? [] : [item.summaryId];
}

function showRange(scene: Scene, front: Front, range: RangeNeed): ChosenItem {
  const oldest = range.includesUnread ? undefined : range.oldest?.items[0];
  const newest = range.newest?.items.at(-1);
  const next = front.pieces[0]?.items[0];
  const isFromStart = range.includesUnread && range.beforePick === 0;
  return {
    kind: "range",
    ids: [],
    messageId: null,
    summaryId: null,
    seq: null,
    startPosition: oldest?.startPosition ?? 0,
    endPosition: newest?.endPosition ?? (next ? next.startPosition - 1 : 0),
    tokens: front.costs.rangeTokens,
    messages: range.messages,
    depth: -1,
    earliestAt: oldest?.createdAt ?? (isFromStart ? scene.request.counters.firstAt : null),
    latestAt: newest?.createdAt ?? next?.createdAt ?? null,
    reason: "not shown: no room, and no summary covers it",
  };
}

/** The stretches of a range, within others, in which no other item lies, oldest first: what it counts is there. */
export function listStretches(
  range: ChosenItem,
  items: readonly ChosenItem[],
  within: readonly Stretch[],
): Stretch[] {
  const stretches: Stretch[] = [];
  let { startPosition } = range;
  // A summary may extend beyond its sources that are shown beside it.
  for (const item of items.toSorted((a, b) => a.startPosition - b.startPosition)) {
    if (item === range || item.ends !== undefined || item.endPosition < startPosition) continue;
    if (item.startPosition > range.endPosition) break;
    stretches.push({ startPosition, endPosition: item.startPosition - 1 });
    startPosition = item.endPosition + 1;
  }
  stretches.push({ startPosition, endPosition: range.endPosition });
  return stretches
    .flatMap((one) =>
      within.map((other) => ({
        startPosition: Math.max(one.startPosition, other.startPosition),
        endPosition: Math.min(one.endPosition, other.endPosition),
      })),
    )
    .filter((one) => one.startPosition <= one.endPosition);
}

function close(
  scene: Scene,
  mode: Choice["mode"],
  items: readonly ChosenItem[],
  stableItems: number,
  anchorTokens: number | null,
): Choice {
  let tokens = 0;
  let messages = 0;
  for (const item of items) {
    tokens += item.tokens;
    messages += item.messages;
  }
  return {
    mode,
    items,
    tokens,
    calibratedTokens: applyFactor(tokens, scene.factor),
    messages,
    stableItems,
    anchorTokens,
    wanted: [],
    leastTokens: 0,
  };
}
