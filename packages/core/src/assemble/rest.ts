/**
 * Uses the room that a choice should not have left: for what was left out, newest first, then for stubbed results, then for the sources of
 * the shown summaries, newest first. A summary with some of its sources shown represents the others; one with all of them shown is dropped.
 *
 * Invariants: the tokens stay within the capacity; every message is in one pick, the finest that shows it; and unless sources are unknown,
 * either the choice has its minimum, or nothing that was left out and no source of a summary that can be opened fits in the rest.
 */
import type { CoverItem } from "../model/cover.ts";
import { groupItems } from "../model/tool-groups.ts";
import {
  countMissing,
  endOf,
  listMissing,
  orderPicks,
  pickStubbed,
  pickWhole,
  startOf,
  sumTokens,
  type Front,
  type Pick,
} from "./picks.ts";
import { isBulky, makePiece, pieceOf, type Piece } from "./pieces.ts";

interface Rest {
  readonly picks: readonly Pick[];
  /** Summaries whose sources are needed, newest first. */
  readonly wanted: readonly string[];
}

/** What a wider stub leaves free for the words that repairs add, and the minimum gain that makes it worthwhile. */
const KEPT_FREE_TOKENS = 24;
const MIN_WIDER_TOKENS = 40;
const OPENED = "opened: there is room";
/** How many summaries are opened at a time: each costs a read, and the newest ones usually suffice. */
const OPENED_AT_ONCE = 4;

export function useRest(front: Front, picks: readonly Pick[]): Rest {
  const room = new Room(front, picks);
  if (!room.isEnough()) {
    for (const piece of listLeftOut(front, picks)) room.take(piece, "there is room left");
    room.unstub();
  }
  const wanted = room.isEnough() ? [] : openSources(front, room);
  room.widenStubs();
  return { picks: room.picks, wanted };
}

/** What is in no pick, newest first: pieces, and summaries beyond them. */
function listLeftOut(front: Front, picks: readonly Pick[]): Piece[] {
  const read = listMissing(front.pieces, orderPicks(picks)).flatMap(({ piece }) =>
    piece.kind === "range" ? [] : [piece],
  );
  const first = front.pieces[0]?.startPosition ?? 0;
  const beyond = [...(front.summariesBefore?.(first) ?? [])].filter(
    (item) =>
      item.hidden === 0 &&
      item.endPosition < first &&
      !picks.some((pick) => startOf(pick) <= item.startPosition && item.endPosition <= endOf(pick)),
  );
  return [...read.reverse(), ...beyond.map((item) => pieceOf(item, front.costs))];
}

/** Shows sources of what is shown, newest first, as long as some fit. Returns the summaries it would open next. */
function openSources(front: Front, room: Room): string[] {
  const shown = new Set<string>();
  for (let hasOpened = true; hasOpened;) {
    hasOpened = false;
    for (const { parent, piece } of listSources(front, room.picks)) {
      const name = nameOf(piece);
      if (shown.has(name) || !room.takeUnder(parent, piece)) continue;
      shown.add(name);
      hasOpened = true;
    }
  }
  if (room.isEnough()) return [];
  const unknown = newestFirst(room.picks).flatMap((pick) => summaryIdOf(pick) ?? []);
  return unknown.filter((id) => !front.sources.has(id)).slice(0, OPENED_AT_ONCE);
}

function listSources(front: Front, picks: readonly Pick[]): { parent: string; piece: Piece }[] {
  return newestFirst(picks).flatMap((pick) => {
    const parent = summaryIdOf(pick);
    const sources = parent === null ? undefined : front.sources.get(parent);
    if (parent === null || sources === undefined) return [];
    return groupItems(sources)
      .reverse()
      .map((group) => ({ parent, piece: makePiece(group, front.costs) }));
  });
}

const newestFirst = (picks: readonly Pick[]): Pick[] => picks.toSorted((a, b) => endOf(b) - endOf(a));

const nameOf = ({ items: [first] }: Piece): string => first?.summaryId ?? `msg ${first?.messageId}`;

/** The summary that can be opened. The sources of one that lacks messages lack them too, and do not count what it stands for. */
function summaryIdOf(pick: Pick): string | null {
  if (pick.kind === "reserve") return pick.lacks === null ? pick.reserve.summaryId : null;
  return pick.piece.items[0]?.summaryId ?? null;
}

const isPartOf = (pick: Pick, { items }: Piece): boolean =>
  pick.kind === "piece" &&
  pick.piece.kind === "messages" &&
  pick.piece.items.every(({ messageId }) => items.some((item) => item.messageId === messageId));

/** The picks so far, and the room that is left. */
class Room {
  readonly picks: Pick[];
  readonly #front: Front;
  /** Tokens of the picks, and messages in none of them: counted once, because hundreds of pieces are tried. */
  #spent: number;
  #missing: number;

  constructor(front: Front, picks: readonly Pick[]) {
    this.#front = front;
    this.picks = [...picks];
    this.#spent = sumTokens(picks);
    this.#missing = countMissing(front, picks);
  }

  isEnough(): boolean {
    return this.#tokens() >= this.#front.leastTokens;
  }

  /**
   * Whole, or with its bulky results and calls as stubs. The newest user message may be shown by itself already, out of the tool group it
   * lies in.
   */
  take(piece: Piece, reason: string): boolean {
    const { user } = this.#front;
    const holdsUser = user !== null && piece.items.some(({ messageId }) => messageId === user.messageId);
    const parts = holdsUser ? this.picks.filter((pick) => isPartOf(pick, piece)) : [];
    return this.#replace(parts, [pickWhole(piece, reason)]) || this.#takeStubbed(parts, piece, reason);
  }

  /**
   * Shows a source of a summary, which then represents that much less. The last source may be shown with stubs: a summary beside all of its
   * sources but a bulky one repeats what is shown.
   */
  takeUnder(summaryId: string, piece: Piece): boolean {
    const parent = this.picks.find((pick) => summaryIdOf(pick) === summaryId);
    if (parent === undefined) return false;
    const messages = parent.messages - piece.messages;
    const whole = pickWhole(piece, OPENED);
    if (messages > 0) return this.#replace([parent], [{ ...parent, messages }, whole]);
    return this.#replace([parent], [whole]) || this.#takeStubbed([parent], piece, OPENED);
  }

  #takeStubbed(old: readonly Pick[], piece: Piece, reason: string): boolean {
    if (piece.stubbedTokens === piece.tokens) return false;
    const { costs } = this.#front;
    const bulky = new Set(piece.items.filter((item) => isBulky(item, costs)));
    return this.#replace(old, [pickStubbed(piece, bulky, costs, reason)]);
  }

  /** Shows stubbed results whole, newest first. */
  unstub(): void {
    for (const pick of newestFirst(this.picks)) {
      if (pick.kind !== "piece" || pick.stubbed.size === 0) continue;
      let current = pick;
      for (const item of pick.piece.items.toReversed()) {
        const stubTokens = current.stubbed.get(item);
        if (stubTokens === undefined) continue;
        const stubbed = new Map([...current.stubbed].filter(([one]) => one !== item));
        const whole = { ...current, stubbed, tokens: current.tokens + item.tokens - stubTokens };
        if (this.#replace([current], [whole])) current = whole;
      }
    }
  }

  /** The last of the room goes to the newest stub, which then shows the beginning of its result. */
  widenStubs(): void {
    const free = this.#front.capacityTokens - this.#tokens() - KEPT_FREE_TOKENS;
    if (free < MIN_WIDER_TOKENS) return;
    const pick = newestFirst(this.picks).find((one) => one.kind === "piece" && one.stubbed.size > 0);
    if (pick?.kind !== "piece") return;
    const [item, tokens] = [...pick.stubbed].at(-1) as [CoverItem, number];
    const more = Math.min(free, item.tokens - tokens);
    const stubbed = new Map(pick.stubbed).set(item, tokens + more);
    this.#replace([pick], [{ ...pick, stubbed, tokens: pick.tokens + more }]);
  }

  /** Shows some picks instead of others if they fit. */
  #replace(old: readonly Pick[], more: readonly Pick[]): boolean {
    const spent = this.#spent + sumTokens(more) - sumTokens(old);
    const missing = this.#missing + countMessages(old) - countMessages(more);
    if (this.#price(spent, missing) > this.#front.capacityTokens) return false;
    for (const pick of old) this.picks.splice(this.picks.indexOf(pick), 1);
    this.picks.push(...more);
    this.#spent = spent;
    this.#missing = missing;
    return true;
  }

  #tokens(): number {
    return this.#price(this.#spent, this.#missing);
  }

  #price(tokens: number, missing: number): number {
    return tokens + (missing > 0 ? this.#front.costs.rangeTokens : 0);
  }
}

const countMessages = (picks: readonly Pick[]): number =>
  picks.reduce((sum, { messages }) => sum + messages, 0);
