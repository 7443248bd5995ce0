/**
 * The contexts of the last turns, each compared with the one before: what a turn added, what it pushed out, and for how many tokens the front
 * stayed the same. Uses today's fold: if a turn was followed by a fold, its front is that of today.
 */
import type { Outline } from "@lossless/core";
import { findLastTurns } from "@lossless/core/doors";
import type { ContextTurn, ExplainedItem } from "./api-types.ts";
import { compareContexts } from "./context-diff.ts";

const TURNS = 12;
/** The maximum number of new items of the last turn that are listed. */
const MAX_NEW_IDS = 5_000;

/** `read` returns the items of the context before a position, or the current ones for null. */
export async function readTurns(
  outline: Outline,
  read: (endBefore: number | null) => Promise<readonly ExplainedItem[]>,
): Promise<ContextTurn[]> {
  const begins = findLastTurns(outline, TURNS);
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
