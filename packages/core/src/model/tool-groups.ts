/**
 * Tool groups: a tool call with its results. Folding and choosing cut a conversation only between groups, so that a call is never separated
 * from an existing answer. Used by the planner and by the assembler, which may not import each other.
 *
 * A result belongs to the nearest earlier call with the same id. That makes reused ids harmless and lets groups be found newest first,
 * reading no further back than the call.
 */
import type { CoverItem } from "./cover.ts";
import { Pulled } from "./pulled.ts";

/**
 * How many messages that answer nothing may be between a call and its result. Beyond it the result counts as orphaned: otherwise one answer
 * that came days late would join everything in between into a single piece.
 */
export const MAX_INTERVENING_MESSAGES = 64;

export interface ItemGroup {
  /** Shown items, oldest first, neighbours in the cover; one item unless tools are involved. */
  readonly items: readonly CoverItem[];
  readonly tokens: number;
  readonly messages: number;
  /** The group makes or answers a tool call. */
  readonly hasTools: boolean;
  /** Calls without a result and results without a call: each costs a few words of explanation when sent. */
  readonly unpaired: number;
}

export const isMessageItem = (item: CoverItem): boolean => item.messageId !== null;
export const isSummaryItem = (item: CoverItem): boolean => item.summaryId !== null;

/** A message a person wrote: in several formats tool results come back under the user's role. */
export const isUserMessage = (item: CoverItem): boolean =>
  item.messageId !== null && item.role === "user" && item.toolResults.length === 0;

/** Groups shown items, newest group first, reading the source only as far as the caller pulls. */
export function* groupNewestFirst(newestFirst: Iterable<CoverItem>): Generator<ItemGroup, void> {
  const source = new Pulled(listShown(newestFirst));
  for (let from = 0; source.at(from) !== undefined;) {
    let last = from;
    for (let index = from; index <= last; index++) last = Math.max(last, findOldestCall(source, index));
    yield makeGroup(source.slice(from, last + 1).reverse());
    from = last + 1;
  }
}

function* listShown(items: Iterable<CoverItem>): Generator<CoverItem, void> {
  for (const item of items) if (item.hidden === 0) yield item;
}

/** Groups a list that is given oldest first; hidden items belong to no group. */
export function groupItems(oldestFirst: readonly CoverItem[]): ItemGroup[] {
  return [...groupNewestFirst(oldestFirst.toReversed())].reverse();
}

/** Index of the oldest call that the item at `index` answers, or `index` itself. Older items have greater indexes. */
function findOldestCall(source: Pulled<CoverItem>, index: number): number {
  const item = source.at(index);
  if (item === undefined || item.toolResults.length === 0) return index;
  const wanted = new Set(item.toolResults);
  for (const id of item.toolCalls) wanted.delete(id);
  let oldest = index;
  let intervening = 0;
  for (let at = index + 1; wanted.size > 0 && intervening <= MAX_INTERVENING_MESSAGES; at++) {
    const older = source.at(at);
    if (older === undefined || !isMessageItem(older)) break;
    for (const id of older.toolCalls) if (wanted.delete(id)) oldest = at;
    if (older.toolResults.length === 0) intervening++;
  }
  return oldest;
}

function makeGroup(items: readonly CoverItem[]): ItemGroup {
  let tokens = 0;
  let messages = 0;
  let hasTools = false;
  for (const item of items) {
    tokens += item.tokens;
    messages += item.messages;
    hasTools ||= item.toolCalls.length > 0 || item.toolResults.length > 0;
  }
  return { items, tokens, messages, hasTools, unpaired: hasTools ? countUnpaired(items) : 0 };
}

function countUnpaired(items: readonly CoverItem[]): number {
  const open = new Map<string, number>();
  let orphans = 0;
  for (const item of items) {
    for (const id of item.toolCalls) open.set(id, (open.get(id) ?? 0) + 1);
    for (const id of item.toolResults) {
      const calls = open.get(id) ?? 0;
      if (calls === 0) orphans++;
      else open.set(id, calls - 1);
    }
  }
  return open.values().reduce((sum, calls) => sum + calls, orphans);
}
