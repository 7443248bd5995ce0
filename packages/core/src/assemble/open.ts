/**
 * Opens the summaries of a cover that was folded for a smaller window: if it takes little of the budget, they are opened into their
 * sources, newest first, and those into theirs. Decided at the anchor from cover and budget alone and not stored: it is the first thing
 * dropped when the conversation needs the room.
 *
 * Invariants: everything is still shown exactly once, in order; until the anchor moves or a fold is published, the same summaries are
 * opened.
 */
import type { CoverItem } from "../model/cover.ts";
import { groupItems } from "../model/tool-groups.ts";
import { makePiece, type LineCosts, type Piece } from "./pieces.ts";

/** A cover with less than this share of the budget is opened. */
const OPEN_BELOW = 0.35;
/** Up to this share. */
const OPEN_TO = 0.5;
/** How many summaries are requested at a time: each costs a read. */
const ASKED_AT_ONCE = 4;

export interface OpenedPiece {
  readonly piece: Piece;
  readonly isOpened: boolean;
}

export interface Opened {
  /** Oldest first. */
  readonly pieces: readonly OpenedPiece[];
  /** Summaries that would be opened next, if their sources were known. */
  readonly wanted: readonly string[];
}

export function openSummaries(
  pieces: readonly Piece[],
  sources: ReadonlyMap<string, readonly CoverItem[]>,
  { anchor, budget, costs }: { anchor: number; budget: number; costs: LineCosts },
): Opened {
  const closed = pieces.map((piece) => ({ piece, isOpened: false }));
  const folded = pieces.reduce((sum, { kind, tokens }) => sum + (kind === "summary" ? tokens : 0), 0);
  // The messages after the anchor do not count: the set of opened summaries must not change with each of them.
  const known = Math.max(anchor, folded);
  // From the first anchor on nothing is opened: the next anchor would close it again, and the front would change each time. In a window of
  // 64,000 tokens that reduced the shared prefix from 93.1 to 91.3 % (`npm run bench -- prefix --windows 64000 --turns 160`).
  if (folded === 0 || anchor > 0 || known >= OPEN_BELOW * budget) return { pieces: closed, wanted: [] };
  let room = OPEN_TO * budget - known;
  const wanted: string[] = [];
  const open = (piece: Piece, isOpened: boolean): OpenedPiece[] => {
    const id = piece.kind === "summary" ? (piece.items[0]?.summaryId ?? null) : null;
    const inner = id === null ? undefined : sources.get(id);
    if (id !== null && inner === undefined && room > 0 && wanted.length < ASKED_AT_ONCE) wanted.push(id);
    if (inner === undefined || room <= 0 || wanted.length > 0) return [{ piece, isOpened }];
    const under = groupItems(inner).map((group) => makePiece(group, costs));
    const more = under.reduce((sum, { tokens }) => sum + tokens, 0) - piece.tokens;
    const messages = under.reduce((sum, one) => sum + one.messages, 0);
    // Stop at the first that does not fit: everything before it stays as it is.
    if (messages !== piece.messages || more > room) {
      room = 0;
      return [{ piece, isOpened }];
    }
    room -= more;
    return openNewestFirst(under, (one) => open(one, true));
  };
  const opened = openNewestFirst(pieces, (piece) => open(piece, false));
  return { pieces: opened, wanted };
}

function openNewestFirst(
  pieces: readonly Piece[],
  open: (piece: Piece) => readonly OpenedPiece[],
): OpenedPiece[] {
  return pieces.toReversed().map(open).reverse().flat();
}
