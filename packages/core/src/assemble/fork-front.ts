/**
 * What a fork shows of its parent, before its own messages. Chosen once when the fork began, so it is the same at every turn; if the room
 * is too small for it, one line represents all of it.
 */
import type { ForkItem } from "../store/forks.ts";
import { applyFactor } from "../text/tokens.ts";
import type { Store } from "../store/store.ts";
import type { Choice, ChosenItem } from "./choose.ts";
import { formatMessageId } from "../model/ids.ts";
import { DEFAULT_LINE_COSTS } from "./pieces.ts";

export interface ForkFront {
  readonly items: readonly ChosenItem[];
  /** With the model's factor. */
  readonly tokens: number;
}

const NO_FRONT: ForkFront = { items: [], tokens: 0 };
/** A front that would take more than this share of the budget is replaced by one line. */
const MAX_SHARE = 0.5;

export async function readForkFront(
  store: Store,
  options: { conversationId: number; budgetTokens: number; tokenFactor: number },
): Promise<ForkFront> {
  const stored = await store.readForkItems(options.conversationId);
  if (stored.length === 0) return NO_FRONT;
  const count = (items: readonly ChosenItem[]): number =>
    applyFactor(
      items.reduce((sum, item) => sum + item.tokens, 0),
      options.tokenFactor,
    );
  const items = stored.map(toChosen);
  const tokens = count(items);
  if (tokens <= MAX_SHARE * options.budgetTokens) return { items, tokens };
  const line = [toChosen(joinItems(stored))];
  return { items: line, tokens: count(line) };
}

/** A choice with the parent's part in front, which never changes. */
export function addFront(choice: Choice, { items }: ForkFront): Choice {
  if (items.length === 0) return choice;
  return { ...choice, items: [...items, ...choice.items], stableItems: choice.stableItems + items.length };
}

/** A summary that extends beyond the fork point becomes a range line. */
export const isStoredAsRange = ({ kind, ends, endPosition }: ChosenItem, endBefore: number): boolean =>
  kind === "range" || (ends === undefined && endPosition >= endBefore);

/** Converts what was chosen for a fork into what is stored. */
export function toForkItems(
  items: readonly ChosenItem[],
  endBefore: number,
  endsOf: (item: ChosenItem) => { first: number | null; last: number | null },
): ForkItem[] {
  return items.map((item) => {
    const isOwn = item.ends === undefined;
    const kind = isStoredAsRange(item, endBefore) ? "range" : item.kind;
    const ends = kind === "range" ? (item.ends ?? endsOf(item)) : { first: null, last: null };
    return {
      kind,
      messageId: kind === "range" ? null : item.messageId,
      summaryId: kind === "range" ? null : item.summaryId,
      firstId: ends.first,
      lastId: ends.last,
      startPosition: item.startPosition,
      endPosition: isOwn ? Math.min(item.endPosition, endBefore - 1) : item.endPosition,
      tokens: kind === "range" ? DEFAULT_LINE_COSTS.rangeTokens : item.tokens,
      messages: item.messages,
      depth: kind === "range" ? -1 : item.depth,
      earliestAt: item.earliestAt,
      latestAt: item.latestAt,
    };
  });
}

function joinItems(items: readonly ForkItem[]): ForkItem {
  const [first] = items;
  const last = items.at(-1);
  return {
    kind: "range",
    messageId: null,
    summaryId: null,
    firstId: first?.firstId ?? first?.messageId ?? null,
    lastId: last?.lastId ?? last?.messageId ?? null,
    startPosition: first?.startPosition ?? 0,
    endPosition: last?.endPosition ?? 0,
    tokens: DEFAULT_LINE_COSTS.rangeTokens,
    messages: items.reduce((sum, item) => sum + item.messages, 0),
    depth: -1,
    earliestAt: first?.earliestAt ?? null,
    latestAt: last?.latestAt ?? null,
  };
}

function toChosen(item: ForkItem): ChosenItem {
  const { messageId, summaryId, firstId, lastId, ...rest } = item;
  const id = messageId === null ? summaryId : formatMessageId(messageId);
  return {
    ...rest,
    messageId,
    summaryId,
    ids: id === null ? [] : [id],
    seq: null,
    ends: { first: firstId, last: lastId },
    reason: "what the session was forked from",
  };
}
