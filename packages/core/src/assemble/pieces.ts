/**
 * Pieces: what a choice takes or leaves as a whole (a tool group, a summary, a range in the cover), with its cost in tokens when sent.
 * Pieces are pulled from the cover newest first and only as far as the choice needs them.
 */
import type { CoverItem } from "../model/cover.ts";
import { MESSAGE_OVERHEAD_TOKENS } from "../text/tokens.ts";
import { must } from "../model/errors.ts";
import { Pulled } from "../model/pulled.ts";
import {
  groupItems,
  groupNewestFirst,
  isMessageItem,
  isSummaryItem,
  type ItemGroup,
} from "../model/tool-groups.ts";

export interface Piece {
  readonly kind: "messages" | "summary" | "range";
  /** Oldest first. */
  readonly items: readonly CoverItem[];
  readonly startPosition: number;
  readonly endPosition: number;
  /** Stored count of its items: how much the conversation's running count grew. */
  readonly storedTokens: number;
  /** Sent whole, with the words that explain a missing half of a tool group. */
  readonly tokens: number;
  /** Sent with its bulky tool results and calls as stubs. */
  readonly stubbedTokens: number;
  readonly messages: number;
  readonly hasTools: boolean;
}

/** Upper bounds, in uncalibrated tokens, of the lines the assembler writes itself. */
export interface LineCosts {
  readonly rangeTokens: number;
  /** A message with tool results or calls when each of them is a stub. */
  stubTokens(item: CoverItem): number;
}

/** The tokens needed to say what a stand-in lacks. */
export const LACKS_TOKENS = 16;
const RANGE_LINE_TOKENS = 120;
export const STUB_TOKENS = 72;
/** A stub that says only how much was left out and how to read it. */
export const BRIEF_STUB_TOKENS = 36;
/** The tokens of a stubbed tool call, and of the text beside the calls of its message. */
export const CALL_STUB_TOKENS = 112;
export const CALL_TEXT_TOKENS = 64;
/** The tokens needed to say that a call has no result, or a result no call. */
export const MISSING_HALF_TOKENS = 32;
/** A tool result or a message with tool calls is bulky from this size, and only if its stub is at most a third of it. */
const BULKY_TOKENS = 400;

const makeLineCosts = (resultTokens: number): LineCosts => ({
  rangeTokens: RANGE_LINE_TOKENS,
  stubTokens: ({ toolResults, toolCalls }) =>
    MESSAGE_OVERHEAD_TOKENS +
    toolResults.length * resultTokens +
    (toolCalls.length === 0 ? 0 : CALL_TEXT_TOKENS + toolCalls.length * CALL_STUB_TOKENS),
});

export const DEFAULT_LINE_COSTS = makeLineCosts(STUB_TOKENS);
export const BRIEF_LINE_COSTS = makeLineCosts(BRIEF_STUB_TOKENS);

export function isBulky(item: CoverItem, costs: LineCosts): boolean {
  return (
    item.toolResults.length + item.toolCalls.length > 0 &&
    item.tokens >= Math.max(BULKY_TOKENS, 3 * costs.stubTokens(item))
  );
}

/** Pieces of a cover, newest first. */
export type Pieces = Pulled<Piece>;

export const readPieces = (newestFirst: Iterable<CoverItem>, costs: LineCosts): Pieces =>
  new Pulled(makePieces(groupNewestFirst(newestFirst), costs));

function* makePieces(groups: Iterable<ItemGroup>, costs: LineCosts): Generator<Piece, void> {
  for (const group of groups) yield makePiece(group, costs);
}

/** The same pieces with other costs, grouped and read only once. */
export const withCosts = (pieces: Pieces, costs: LineCosts): Pieces => new Pulled(priceAgain(pieces, costs));

function* priceAgain(pieces: Pieces, costs: LineCosts): Generator<Piece, void> {
  for (let index = 0, piece = pieces.at(0); piece !== undefined; piece = pieces.at(++index))
    yield piece.hasTools ? { ...piece, stubbedTokens: priceStubbed(piece, costs) } : piece;
}

export const pieceOf = (item: CoverItem, costs: LineCosts): Piece =>
  makePiece(must(groupItems([item])[0], "group of one item"), costs);

export function makePiece(group: ItemGroup, costs: LineCosts): Piece {
  const first = group.items[0];
  const last = group.items.at(-1);
  const { items } = group;
  const tokens = group.tokens + group.unpaired * MISSING_HALF_TOKENS;
  return {
    kind: first && isMessageItem(first) ? "messages" : first && isSummaryItem(first) ? "summary" : "range",
    items,
    startPosition: first?.startPosition ?? 0,
    endPosition: last?.endPosition ?? 0,
    storedTokens: group.tokens,
    tokens,
    stubbedTokens: priceStubbed({ items, tokens }, costs),
    messages: group.messages,
    hasTools: group.hasTools,
  };
}

/** The cost with each bulky result and call as a stub. */
function priceStubbed({ items, tokens }: Pick<Piece, "items" | "tokens">, costs: LineCosts): number {
  let saved = 0;
  for (const item of items) if (isBulky(item, costs)) saved += item.tokens - costs.stubTokens(item);
  return tokens - saved;
}
