/**
 * The contexts of the last turns, each compared with the one before: what a turn added, what it pushed out, and for how many tokens the front
 * stayed the same. Uses today's fold: if a turn was followed by a fold, its front is that of today.
 */
import type { Outline } from "@lossless/core";
import type { ContextTurn, ExplainedItem, OutlineRow } from "./api-types.ts";
import { compareContexts } from "./context-diff.ts";
import { rowAt } from "./outline.ts";

const TURNS = 12;
/** The maximum number of new items of the last turn that are listed. */
const MAX_NEW_IDS = 5_000;

/** `read` returns the items of the context before a position, or the current ones for null. */
export async function readTurns(
  outline: Outline,
  read: (endBefore: number | null) => Promise<readonly ExplainedItem[]>,
): Promise<ContextTurn[]> {
  const begins = findBegins(outline);
  const turns: ContextTurn[] = [];
  let before = begins[0] === undefined ? [] : await read(begins[0].position);
  for (const [index, { messageId, createdAt }] of begins.entries()) {
    const next = begins[index + 1];
    const after = await read(next?.position ?? null);
    const { added, removed, sharedTokens, isNew } = compareContexts(before, after);
    turns.push({
      messageId,
      at: createdAt,
      tokens: after.reduce((sum, { tokens }) => sum + tokens, 0),
      added,
      removed,
      sharedTokens,
      newIds:
        next === undefined
          ? after
              .filter((_, at) => isNew[at])
              .flatMap(({ ids }) => ids)
              .slice(0, MAX_NEW_IDS)
          : [],
    });
    before = after;
  }
  return turns;
}

/** The messages that began the last turns, in order. */
function findBegins(outline: Outline): OutlineRow[] {
  const user = outline.roleNames.indexOf("user");
  const begins: OutlineRow[] = [];
  for (let at = outline.roles.length - 1; at >= 0 && begins.length < TURNS; at--) {
    if (outline.roles[at] === user && (outline.tokens[at] ?? 0) > 0) begins.push(rowAt(outline, at));
  }
  return begins.reverse();
}
