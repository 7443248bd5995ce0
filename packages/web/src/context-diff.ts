/**
 * The difference between two contexts of one conversation. Pure; the server and the page both use it. The shared front is what a provider's
 * cache can keep.
 */
import type { ExplainedItem } from "./api-types.ts";

export interface ContextDiff {
  readonly added: number;
  readonly removed: number;
  readonly kept: number;
  /** For each item after: whether it is new. */
  readonly isNew: readonly boolean[];
  /** Tokens of the items at the front that are the same, in the same order. */
  readonly sharedTokens: number;
}

type Item = Pick<ExplainedItem, "kind" | "ids" | "tokens">;

const keyOf = ({ kind, ids }: Item): string => `${kind} ${ids.join(" ")}`;

export function compareContexts(before: readonly Item[], after: readonly Item[]): ContextDiff {
  const known = new Set(before.map(keyOf));
  const isNew = after.map((item) => !known.has(keyOf(item)));
  const added = isNew.filter(Boolean).length;
  const kept = after.length - added;
  const firstChange = after.findIndex(
    (item, index) => keyOf(item) !== keyOf(before[index] ?? { kind: "range", ids: ["none"], tokens: 0 }),
  );
  const front = firstChange < 0 ? after : after.slice(0, firstChange);
  return {
    added,
    removed: before.length - kept,
    kept,
    isNew,
    sharedTokens: front.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}
