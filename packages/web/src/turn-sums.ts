/** The sizes of turns: from one user request to the next, the number of messages and tokens, and the duration. */
import type { Outline } from "@lossless/core";
import type { TurnSum } from "./api-types.ts";

/** The turns that begin with one of these messages, by number from 0. */
export function sumTurns(outline: Outline, first: number, count: number): TurnSum[] {
  const { roles, tokens, createdAts, messageIds } = outline;
  const user = outline.roleNames.indexOf("user");
  const begins = (at: number): boolean => roles[at] === user && (tokens[at] ?? 0) > 0;
  const turns: TurnSum[] = [];
  for (let at = first; at < Math.min(roles.length, first + count); at++) {
    if (!begins(at)) continue;
    let [end, sum, last] = [at, 0, createdAts[at] ?? 0];
    do {
      sum += tokens[end] ?? 0;
      // Rows that add nothing may have been written later, outside the turn.
      if ((tokens[end] ?? 0) > 0) last = createdAts[end] ?? last;
      end += 1;
    } while (end < roles.length && !begins(end));
    turns.push({
      messageId: messageIds[at] ?? 0,
      messages: end - at,
      tokens: sum,
      tookMs: Math.max(0, last - (createdAts[at] ?? 0)),
    });
  }
  return turns;
}
