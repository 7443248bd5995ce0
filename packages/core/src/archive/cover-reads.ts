/**
 * Rules for reading the items of a cover: how far a reader from either end has to go, what boundaries leave of it, and what stands in for a
 * part. An adapter reads rows in pages of any size; these rules say when it has enough.
 */
import { findFloor, isHiddenByBoundary } from "../model/boundaries.ts";
import type { Boundary } from "../model/boundaries.ts";
import type { CoverItem } from "../model/cover.ts";
import type { ReserveSummary } from "../model/reserve.ts";
import type { CoverCounters, CoverHead } from "../store/folding.ts";
import type { Row } from "./tables.ts";

export const toBoundary = (row: Pick<Row<"boundaries">, "position" | "retain_depth">): Boundary => ({
  position: row.position,
  retainDepth: row.retain_depth,
});

/** A person's words. Several formats write tool results under the user's role. */
export const isSpoken = ({ role, toolResults }: Pick<CoverItem, "role" | "toolResults">): boolean =>
  role === "user" && toolResults.length === 0;

/** The gaps after the summaries that stay visible before a boundary: positions between which the first shown item is needed. */
export const listGaps = (
  retained: readonly CoverItem[],
  floor: number,
): { readonly after: number; readonly before: number }[] =>
  retained.map(({ startPosition }, at) => ({
    after: startPosition,
    before: retained[at + 1]?.startPosition ?? floor,
  }));

/** Those summaries, each with the first shown item after it, which keeps two of them apart. */
export const keepApart = (
  retained: readonly CoverItem[],
  inGaps: readonly (CoverItem | null | undefined)[],
): CoverItem[] => retained.flatMap((summary, at) => [summary, ...(inGaps[at] ? [inGaps[at]] : [])]);

type Tools = Pick<CoverItem, "toolCalls" | "toolResults">;

const NO_TOOLS: Tools = { toolCalls: [], toolResults: [] };

/** The calls and results of a message, from a JSON list of the type and the call of each part that has one. */
export function readTools(json: string | null): Tools {
  if (json === null || json === "[]") return NO_TOOLS;
  const toolCalls: string[] = [];
  const toolResults: string[] = [];
  for (const [type, id] of JSON.parse(json) as [string, string][])
    (type === "tool_call" ? toolCalls : toolResults).push(id);
  return { toolCalls, toolResults };
}

/** An item of a cover with columns of its message, and the time of that, or of the end of its summary. */
export interface CoverItemColumns extends Omit<Row<"context_items">, "conversation_id"> {
  readonly role: string | null;
  readonly created_at: number;
  /** For {@link readTools}. */
  readonly tools: string | null;
}

export const toCoverItem = (row: CoverItemColumns): CoverItem => ({
  startPosition: row.start_pos,
  endPosition: row.end_pos,
  seq: row.seq,
  messageId: row.message_id,
  summaryId: row.summary_id,
  tokens: row.tokens,
  messages: row.messages,
  depth: row.depth,
  hidden: row.hidden,
  role: row.role,
  createdAt: row.created_at,
  ...readTools(row.tools),
});

/** The newest items until both limits are exceeded; `items` are newest first. */
export function takeNewest(
  items: Iterable<CoverItem>,
  { maxTokens, maxMessages }: { readonly maxTokens: number; readonly maxMessages: number },
): CoverItem[] {
  const taken: CoverItem[] = [];
  let tokens = 0;
  let messages = 0;
  for (const item of items) {
    taken.push(item);
    tokens += item.tokens;
    messages += item.depth < 0 ? 1 : 0;
    if (tokens > maxTokens && messages >= maxMessages) break;
  }
  return taken;
}

/** A conversation's counters of its context. */
export type ShownCounters = Pick<Row<"conversations">, "shown_messages" | "shown_tokens" | "first_at">;

/** If a boundary hides something, the rest is counted: it is little compared with what may be before a boundary. */
export function countShown(
  conversation: ShownCounters,
  left: {
    readonly after: { readonly messages: number; readonly tokens: number };
    readonly retained: Iterable<Pick<CoverItem, "messages" | "tokens">>;
  } | null,
): CoverCounters {
  const { shown_messages, shown_tokens, first_at: firstAt } = conversation;
  if (left === null) return { shownMessages: shown_messages, shownTokens: shown_tokens, firstAt };
  let { messages: shownMessages, tokens: shownTokens } = left.after;
  for (const item of left.retained) {
    shownMessages += item.messages;
    shownTokens += item.tokens;
  }
  return { shownMessages, shownTokens, firstAt };
}

export type ReserveColumns = Pick<
  Row<"summaries">,
  | "summary_id"
  | "start_pos"
  | "end_pos"
  | "messages"
  | "tokens"
  | "depth"
  | "is_root"
  | "stale"
  | "made_at_seq"
>;

/** Usable stand-ins: stale ones too, except those before a boundary, because they may mention what it hides. */
export const isUsable = (
  row: Pick<ReserveColumns, "stale" | "start_pos">,
  boundaries: readonly Boundary[],
): boolean => row.stale === 0 || row.start_pos >= findFloor(boundaries);

/** A stand-in; one made since the epoch began is marked, because a context begun before it must not change. */
export const toReserve = (
  row: ReserveColumns,
  epochSeq: number,
  held: number | undefined,
): ReserveSummary => ({
  summaryId: row.summary_id,
  startPosition: row.start_pos,
  endPosition: row.end_pos,
  messages: row.messages,
  tokens: row.tokens,
  depth: row.depth,
  isRoot: row.is_root === 1,
  isStale: row.stale === 1,
  held,
  madeAtSeq: row.made_at_seq >= epochSeq ? row.made_at_seq : undefined,
});

/** Where an item of a cover ends, and what it represents. */
export type SpanColumns = Pick<Row<"context_items">, "end_pos" | "messages" | "depth">;

const isHidden = (row: Pick<SpanColumns, "end_pos" | "depth">, boundaries: readonly Boundary[]): boolean =>
  isHiddenByBoundary({ endPosition: row.end_pos, depth: row.depth }, boundaries);

/**
 * The shown messages between the ends of a stand-in; undefined if those are not item edges. `endBefore` is the end of the last item that
 * begins before it.
 */
export function countHeld(
  reserve: Pick<ReserveColumns, "start_pos" | "end_pos">,
  endBefore: number | null,
  within: readonly SpanColumns[],
  boundaries: readonly Boundary[],
): number | undefined {
  if (endBefore !== null && endBefore >= reserve.start_pos) return undefined;
  if (within.some((row) => row.end_pos > reserve.end_pos || isHidden(row, boundaries))) return undefined;
  return within.reduce((sum, row) => sum + row.messages, 0);
}

/** Tokens of the cover's summaries that no boundary hides. */
export const countPrefix = (
  spans: readonly Pick<Row<"context_items">, "end_pos" | "depth" | "tokens">[],
  boundaries: readonly Boundary[],
): number => spans.reduce((sum, row) => sum + (isHidden(row, boundaries) ? 0 : row.tokens), 0);

/** Takes items from the oldest on, until the messages that are neither hidden nor stored in a leaf exceed a limit. */
export class HeadTaker {
  readonly items: CoverItem[];
  readonly #stored: readonly { readonly start_pos: number; readonly end_pos: number }[];
  readonly #maxTokens: number;
  #next = 0;
  #tokens = 0;

  /** `retained` stays visible before a boundary; `stored` are the spans of leaves that were made ahead, in order. */
  constructor(
    retained: readonly CoverItem[],
    stored: readonly { readonly start_pos: number; readonly end_pos: number }[],
    maxMessageTokens: number,
  ) {
    this.items = [...retained];
    this.#stored = stored;
    this.#maxTokens = maxMessageTokens;
  }

  /** False when that was enough. */
  take(item: CoverItem): boolean {
    this.items.push(item);
    while ((this.#stored[this.#next]?.end_pos ?? Number.MAX_SAFE_INTEGER) < item.startPosition) this.#next++;
    const isStored = (this.#stored[this.#next]?.start_pos ?? Number.MAX_SAFE_INTEGER) <= item.startPosition;
    if (item.depth < 0 && item.hidden === 0 && !isStored) this.#tokens += item.tokens;
    return this.#tokens <= this.#maxTokens;
  }

  finish(isWhole: boolean, prefixTokens: number): CoverHead {
    return { items: this.items, isWhole, prefixTokens };
  }
}
