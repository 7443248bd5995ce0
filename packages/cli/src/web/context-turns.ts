/**
 * The context as it was at the last turns, each against the one before: what a turn added, what it pushed out, and for how many tokens the
 * front stayed the same. With today's fold: where a turn was followed by a fold, its front is the one of today.
 */
import type { ContextTurn, ExplainedItem, OutlineRow } from "./answers.ts";
import { compareContexts } from "./context-diff.ts";

const TURNS = 12;
/** New items of the last turn that are named. */
const MAX_NEW_IDS = 5_000;

/** `read` gives the items of the context before a position, or of now for null. */
export async function readTurns(
  outline: readonly OutlineRow[],
  read: (endBefore: number | null) => Promise<readonly ExplainedItem[]>,
): Promise<ContextTurn[]> {
  const begins = outline.filter(({ role, tokens }) => role === "user" && tokens > 0).slice(-TURNS);
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
