/**
 * The fresh tail: the newest messages, which compaction never folds and assembly sends verbatim as long as the budget allows. Both use the
 * one rule here.
 *
 * Invariant: the tail begins at the edge of a tool group, consists of messages after the newest summary, and includes the newest user
 * message unless that turn alone is longer than `turnMaxTokens`; then the message is pinned instead.
 */
import type { CoverItem } from "./cover.ts";
import { Pulled } from "./pulled.ts";
import { groupItems, groupNewestFirst, isMessageItem, isUserMessage, type ItemGroup } from "./tool-groups.ts";

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
  const trailing = new Pulled(walkTrailingMessages(items, isShown));
  const { messages, tokens } = measureFreshTail(groupNewestFirst(itemsOf(trailing)), policy);
  const startIndex = trailing.at(messages - 1)?.index ?? items.length;
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
  const older = new Pulled(walkTrailingMessages(items.slice(0, startIndex), (item) => item.hidden === 0));
  const [next] = groupNewestFirst(itemsOf(older));
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
export function measureFreshTail(newestFirst: Iterable<TailGroup>, policy: TailPolicy): TailMeasure {
  const groups = new Pulled(newestFirst);
  const turnGroups = countTurnGroups(groups);
  const bounded = measureTail(groups, policy, 0);
  const whole = turnGroups === null ? bounded : measureTail(groups, policy, turnGroups);
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

/** The shown messages after the newest summary of a list, newest first: older ones are never part of a tail. */
function* walkTrailingMessages(
  items: readonly CoverItem[],
  isShown: (item: CoverItem) => boolean,
): Generator<Placed, void> {
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (item === undefined || !isShown(item)) continue;
    if (!isMessageItem(item)) return;
    yield { item, index };
  }
}

function* itemsOf(placed: Pulled<Placed>): Generator<CoverItem, void> {
  for (let at = 0, one = placed.at(0); one !== undefined; one = placed.at(++at)) yield one.item;
}

/** How many of the newest groups reach back to the newest user message; null when there is none. */
function countTurnGroups(groups: Pulled<TailGroup>): number | null {
  for (let at = 0, group = groups.at(0); group !== undefined; group = groups.at(++at))
    if (group.items.some(isUserMessage)) return at + 1;
  return null;
}

function measureTail(newestFirst: Pulled<TailGroup>, policy: TailPolicy, atLeastGroups: number): TailMeasure {
  const maxTokens = policy.freshTailMaxTokens ?? Number.POSITIVE_INFINITY;
  let messages = 0;
  let tokens = 0;
  let groups = 0;
  for (let group = newestFirst.at(0); group !== undefined; group = newestFirst.at(groups)) {
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
  const around = [...walkTrailingMessages(after < 0 ? items : items.slice(0, after), isShown)].reverse();
  const group = groupItems(around.map(({ item }) => item)).find((candidate) =>
    candidate.items.includes(user),
  );
  const members = around.filter(({ item }) => group?.items.includes(item));
  return { startIndex: members[0]?.index ?? newest, endIndex: (members.at(-1)?.index ?? newest) + 1 };
}
