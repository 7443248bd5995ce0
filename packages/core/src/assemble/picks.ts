/**
 * The parts of a choice for the front of a context: the front as it was read, the picks, and what is in none of them.
 *
 * Invariant: a pick counts the messages that it shows or represents and that no other pick does.
 */
import type { CoverItem } from "../model/cover.ts";
import type { ReserveSummary } from "../model/reserve.ts";
import type { LineCosts, Piece } from "./pieces.ts";

export interface Front {
  /** Oldest first, as far as they were read. */
  readonly pieces: readonly Piece[];
  /** Shown messages older than the first piece. */
  readonly unreadMessages: number;
  readonly capacityTokens: number;
  /** The minimum: below it, the rest goes to what was left out and to sources of summaries. */
  readonly leastTokens: number;
  /** Index of the first piece of the fresh tail. */
  readonly tailStart: number;
  /** The newest user message up to the anchor; it may be older than the pieces. */
  readonly user: CoverItem | null;
  readonly reserve: readonly ReserveSummary[];
  /** The cover's summaries before a position, newest first, found without reading the messages between. */
  readonly summariesBefore: ((position: number) => Iterable<CoverItem>) | null;
  /** Ids of summaries that get room before others, the most important first. */
  readonly preferred: readonly string[];
  /** The sources of summaries, as far as they were read. */
  readonly sources: ReadonlyMap<string, readonly CoverItem[]>;
  readonly costs: LineCosts;
}

export type Stubs = ReadonlyMap<CoverItem, number>;

export interface PiecePick {
  readonly kind: "piece";
  readonly piece: Piece;
  /** Items sent with their tool results and calls as stubs, and the token limit of each. */
  readonly stubbed: Stubs;
  readonly tokens: number;
  /** Messages it represents; for a summary, without those shown beside it. */
  readonly messages: number;
  readonly reason: string;
}

export interface ReservePick {
  readonly kind: "reserve";
  readonly reserve: ReserveSummary;
  readonly tokens: number;
  readonly messages: number;
  /** What it lacks of what it represents; null: nothing. */
  readonly lacks: Lack | null;
  readonly reason: string;
}

/** Messages that were added or removed after a stand-in was made; zero: only the text changed. */
export interface Lack {
  readonly messages: number;
}

export type Pick = PiecePick | ReservePick;

const NO_STUBS: Stubs = new Map();

export const sumTokens = (picks: readonly Pick[]): number =>
  picks.reduce((sum, pick) => sum + pick.tokens, 0);

export const pickWhole = (piece: Piece, reason: string): PiecePick => ({
  kind: "piece",
  piece,
  stubbed: NO_STUBS,
  tokens: piece.tokens,
  messages: piece.messages,
  reason,
});

/** A piece with the tool results and calls of some of its items as stubs. */
export function pickStubbed(
  piece: Piece,
  among: ReadonlySet<CoverItem>,
  costs: LineCosts,
  reason: string,
): PiecePick {
  const items = piece.items.filter((item) => among.has(item));
  if (items.length === 0) return pickWhole(piece, reason);
  const stubbed = new Map(items.map((item) => [item, costs.stubTokens(item)]));
  return { ...pickWhole(piece, reason), stubbed, tokens: priceOf(piece, among, costs) };
}

export function priceOf(piece: Piece, stubbed: ReadonlySet<CoverItem>, costs: LineCosts): number {
  let tokens = piece.tokens;
  for (const item of piece.items) if (stubbed.has(item)) tokens -= item.tokens - costs.stubTokens(item);
  return tokens;
}

export const startOf = (pick: Pick): number =>
  pick.kind === "piece" ? pick.piece.startPosition : pick.reserve.startPosition;
export const endOf = (pick: Pick): number =>
  pick.kind === "piece" ? pick.piece.endPosition : pick.reserve.endPosition;

/** Oldest first. If a summary and something below it begin at the same position, the summary comes first. */
export const orderPicks = (picks: readonly Pick[]): Pick[] =>
  picks.toSorted((a, b) => startOf(a) - startOf(b) || endOf(b) - endOf(a));

/** Messages up to the anchor that are in no pick. */
export const countMissing = (front: Front, picks: readonly Pick[]): number =>
  front.pieces.reduce((sum, piece) => sum + piece.messages, front.unreadMessages) -
  picks.reduce((sum, pick) => sum + pick.messages, 0);

/** A piece of which some messages are in no pick. */
export interface MissingPiece {
  readonly piece: Piece;
  /** How many. */
  readonly messages: number;
}

/** Pieces that are in no pick and not shown by picks inside them; both lists are in order. */
export function listMissing(pieces: readonly Piece[], picks: readonly Pick[]): MissingPiece[] {
  let next = 0;
  return pieces.flatMap((piece) => {
    const isInside = (pick: Pick | undefined): pick is Pick =>
      pick !== undefined && startOf(pick) >= piece.startPosition && endOf(pick) <= piece.endPosition;
    let { messages } = piece;
    let pick = picks[next];
    for (; pick !== undefined && endOf(pick) < piece.endPosition; pick = picks[++next])
      if (isInside(pick)) messages -= pick.messages;
    if (pick !== undefined && startOf(pick) <= piece.startPosition) return [];
    for (let at = next; isInside(pick); pick = picks[++at]) messages -= pick.messages;
    return messages > 0 ? [{ piece, messages }] : [];
  });
}
