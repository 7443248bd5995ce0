/**
 * The fresh tail: the newest messages, which compaction never folds and assembly sends verbatim as long as the budget allows. Both use the
 * one rule here.
 *
 * Invariant: the tail begins at the edge of a tool group, consists of messages after the newest summary, and includes the newest user
 * message unless that turn alone is longer than `turnMaxTokens`; then the message is pinned instead.
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
  /** The newest user message, with its tool group if it has one, when it is before the tail: it is not folded. */
  readonly pinned: IndexRange | null;
}

/** Finds the tail of a cover given oldest first. `isShown` excludes items that the caller knows to be hidden. */
export function findFreshTail(
  items: readonly CoverItem[],
  policy: TailPolicy,
  isShown: (item: CoverItem) => boolean = (item) => item.hidden === 0,
): FreshTail {
  const trailing = readTrailingMessages(items, isShown);
  const groups = groupItems(trailing.map(({ item }) => item)).reverse();
  const { messages, tokens } = measureFreshTail(groups, policy);
  const startIndex = trailing[trailing.length - messages]?.index ?? items.length;
  return { startIndex, messages, tokens, pinned: findPinned(items, isShown, startIndex) };
}

/** What folds leave alone, and which limit ends it. */
export interface TailLimit {
  readonly messages: number;
  readonly tokens: number;
  /** The limits: how many messages, and how many tokens if those are limited. */
  readonly maxMessages: number;
  readonly maxTokens: number | null;
  /** What ends it: the number of messages, the tokens, or that everything before it is folded or does not exist. */
  readonly endedBy: "messages" | "tokens" | "start";
}

/** The tail of a cover given oldest first, with the limit that the next older tool group would exceed. */
export function explainFreshTail(items: readonly CoverItem[], policy: TailPolicy): TailLimit {
  const { startIndex, messages, tokens } = findFreshTail(items, policy);
  const older = readTrailingMessages(items.slice(0, startIndex), (item) => item.hidden === 0);
  const next = groupItems(older.map(({ item }) => item)).at(-1);
  const isFull = next !== undefined && messages + next.items.length > policy.freshTailCount;
  return {
    messages,
    tokens,
    maxMessages: policy.freshTailCount,
    maxTokens: policy.freshTailMaxTokens ?? null,
    endedBy: next === undefined ? "start" : isFull ? "messages" : "tokens",
  };
}

/** The properties of a tool group that determine the tail. */
export type TailGroup = Pick<ItemGroup, "items" | "tokens">;

/** How much of the groups after the newest summary, newest first, is the tail. */
export function measureFreshTail(newestFirst: readonly TailGroup[], policy: TailPolicy): TailMeasure {
  const turnGroups = countTurnGroups(newestFirst);
  const bounded = measureTail(newestFirst, policy, 0);
  const whole = turnGroups === null ? bounded : measureTail(newestFirst, policy, turnGroups);
  const limit = policy.turnMaxTokens;
  return limit !== undefined && whole.tokens > limit ? bounded : whole;
}

export interface TailMeasure {
  readonly groups: number;
  readonly messages: number;
  readonly tokens: number;
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
function countTurnGroups(newestFirst: readonly TailGroup[]): number | null {
  const found = newestFirst.findIndex((group) => group.items.some(isUserMessage));
  return found < 0 ? null : found + 1;
}

function measureTail(
  newestFirst: readonly TailGroup[],
  policy: TailPolicy,
  atLeastGroups: number,
): TailMeasure {
  const maxTokens = policy.freshTailMaxTokens ?? Number.POSITIVE_INFINITY;
  let messages = 0;
  let tokens = 0;
  let groups = 0;
  for (const group of newestFirst) {
    const fits = messages + group.items.length <= policy.freshTailCount && tokens + group.tokens <= maxTokens;
    if (groups > 0 && groups >= atLeastGroups && !fits) break;
    groups++;
    messages += group.items.length;
    tokens += group.tokens;
  }
  return { groups, messages, tokens };
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
