/**
 * The fresh tail: the newest messages, which compaction never folds and assembly sends verbatim as long as the budget allows.
 * There is one rule, here, for both.
 *
 * Invariant: the tail begins at the edge of a tool group, consists of messages that follow the newest summary, and holds the
 * newest user message unless that turn alone is longer than `turnMaxTokens`; then the message is pinned instead.
 */
import type { CoverItem } from "./cover.ts";
import { groupItems, isMessageItem, isUserMessage, type ItemGroup } from "./tool-groups.ts";

export interface TailPolicy {
  /** At most this many messages, unless the newest turn is longer. */
  readonly freshTailCount: number;
  /** At most this many tokens, unless the newest turn is longer. Unset: no limit. */
  readonly freshTailMaxTokens?: number | undefined;
  /**
   * A turn longer than this may be folded while it runs: an agent that works for hours on one prompt would otherwise keep its
   * whole history in the tail. Unset: the newest turn is always whole.
   */
  readonly turnMaxTokens?: number | undefined;
}

/** Half-open. */
export interface IndexRange {
  readonly startIndex: number;
  readonly endIndex: number;
}

export interface FreshTail {
  /** Index of the tail's first item; the length of the list when nothing is protected. */
  readonly startIndex: number;
  readonly messages: number;
  readonly tokens: number;
  /** The newest user message, with its tool group if it stands in one, when it lies before the tail: it is not folded. */
  readonly pinned: IndexRange | null;
}

/** Finds the tail of a cover given oldest first. `isShown` leaves out what the caller knows to be hidden. */
export function findFreshTail(
  items: readonly CoverItem[],
  policy: TailPolicy,
  isShown: (item: CoverItem) => boolean = (item) => item.hidden === 0,
): FreshTail {
  const trailing = readTrailingMessages(items, isShown);
  const groups = groupItems(trailing.map(({ item }) => item)).reverse();
  const turnGroups = countTurnGroups(groups);
  const bounded = measureTail(groups, policy, 0);
  const whole = turnGroups === null ? bounded : measureTail(groups, policy, turnGroups);
  const limit = policy.turnMaxTokens;
  const tail = limit !== undefined && whole.tokens > limit ? bounded : whole;
  const startIndex = trailing[trailing.length - tail.messages]?.index ?? items.length;
  return { startIndex, ...tail, pinned: findPinned(items, isShown, startIndex) };
}

interface Placed {
  readonly item: CoverItem;
  readonly index: number;
}

/** The shown messages after the newest summary of a list, oldest first: older ones are never part of a tail. */
function readTrailingMessages(items: readonly CoverItem[], isShown: (item: CoverItem) => boolean): Placed[] {
  const trailing: Placed[] = [];
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (item === undefined || !isShown(item)) continue;
    if (!isMessageItem(item)) break;
    trailing.push({ item, index });
  }
  return trailing.reverse();
}

/** How many of the newest groups reach back to the newest user message; null when there is none. */
function countTurnGroups(newestFirst: readonly ItemGroup[]): number | null {
  const found = newestFirst.findIndex((group) => group.items.some(isUserMessage));
  return found < 0 ? null : found + 1;
}

function measureTail(newestFirst: readonly ItemGroup[], policy: TailPolicy, atLeastGroups: number) {
  const maxTokens = policy.freshTailMaxTokens ?? Number.POSITIVE_INFINITY;
  let messages = 0;
  let tokens = 0;
  for (const [taken, group] of newestFirst.entries()) {
    const fits = messages + group.items.length <= policy.freshTailCount && tokens + group.tokens <= maxTokens;
    if (taken > 0 && taken >= atLeastGroups && !fits) break;
    messages += group.items.length;
    tokens += group.tokens;
  }
  return { messages, tokens };
}

function findPinned(
  items: readonly CoverItem[],
  isShown: (item: CoverItem) => boolean,
  tailStart: number,
): IndexRange | null {
  const newest = items.findLastIndex((item) => isShown(item) && isUserMessage(item));
  const user = items[newest];
  if (user === undefined || newest >= tailStart) return null;
  const after = items.findIndex((item, index) => index > newest && isShown(item) && !isMessageItem(item));
  const around = readTrailingMessages(after < 0 ? items : items.slice(0, after), isShown);
  const group = groupItems(around.map(({ item }) => item)).find((candidate) =>
    candidate.items.includes(user),
  );
  const members = around.filter(({ item }) => group?.items.includes(item));
  return { startIndex: members[0]?.index ?? newest, endIndex: (members.at(-1)?.index ?? newest) + 1 };
}
