/** Turns, found in the outline of a conversation: where they begin, how many messages and tokens they have, and how long they took. Pure. */
import type { Outline } from "../store/rows.ts";
import { findFrom, rowAt, type OutlineRow } from "./outline.ts";

/** A request of the user and everything up to the next. */
export interface TurnSum {
  readonly messageId: number;
  /** Without lines that add nothing to the conversation: housekeeping, and revisions. */
  readonly messages: number;
  readonly tokens: number;
  readonly tookMs: number;
}

/** What begins a turn: a request that is part of the conversation. */
export const beginsTurn = ({ role, tokens }: Pick<OutlineRow, "role" | "tokens">): boolean =>
  role === "user" && tokens > 0;

/** The same for a message of an outline, without making a row of it. */
function findBegin(outline: Outline): (at: number) => boolean {
  const user = outline.roleNames.indexOf("user");
  return (at) => outline.roles[at] === user && (outline.tokens[at] ?? 0) > 0;
}

/** The turns that begin with one of these messages, by number from 0. */
export function sumTurns(outline: Outline, first = 0, count = Number.POSITIVE_INFINITY): TurnSum[] {
  const { roles, tokens, createdAts, messageIds } = outline;
  const begins = findBegin(outline);
  const turns: TurnSum[] = [];
  for (let at = first; at < Math.min(roles.length, first + count); at++) {
    if (!begins(at)) continue;
    let [end, messages, sum, last] = [at, 0, 0, createdAts[at] ?? 0];
    do {
      const added = tokens[end] ?? 0;
      sum += added;
      // Rows that add nothing may have been written later, outside the turn.
      if (added > 0) [messages, last] = [messages + 1, createdAts[end] ?? last];
      end += 1;
    } while (end < roles.length && !begins(end));
    turns.push({
      messageId: messageIds[at] ?? 0,
      messages,
      tokens: sum,
      tookMs: Math.max(0, last - (createdAts[at] ?? 0)),
    });
  }
  return turns;
}

/** The messages that began the last turns, in order. */
export function findLastTurns(outline: Outline, count: number): OutlineRow[] {
  const begins = findBegin(outline);
  const found: OutlineRow[] = [];
  for (let at = outline.roles.length - 1; at >= 0 && found.length < count; at--)
    if (begins(at)) found.push(rowAt(outline, at));
  return found.reverse();
}

/** The beginning of the next turn after a place, or of the last one before it; null if there is none. */
export function findTurnFrom(
  outline: Outline,
  { position, seq }: Pick<OutlineRow, "position" | "seq">,
  by: 1 | -1,
): OutlineRow | null {
  const begins = findBegin(outline);
  const isFurther = (at: number): boolean => {
    const further = (outline.positions[at] ?? 0) - position || (outline.seqs[at] ?? 0) - seq;
    return by * further > 0;
  };
  // Revisions have the position of the first version.
  let at = findFrom(outline.positions, by > 0 ? position : position + 1);
  for (at -= by > 0 ? 0 : 1; at >= 0 && at < outline.roles.length; at += by)
    if (begins(at) && isFurther(at)) return rowAt(outline, at);
  return null;
}
