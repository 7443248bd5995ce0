/**
 * Reading the cover. Choosing a context reads it from the newest end and folding from the oldest, each only as far as necessary; counters
 * provide the rest.
 */
import {
  countHeld,
  countPrefix,
  countShown,
  findFloor,
  HeadTaker,
  HIDDEN,
  isHiddenByBoundary,
  keepApart,
  listGaps,
  MAX_SUMMARIES_BEFORE,
  isUsable,
  must,
  readTools,
  takeNewest,
  toBoundary,
  toReserve,
} from "@lossless/core/adapter";
import type {
  Boundary,
  CoverItem,
  ReserveColumns,
  ReserveSummary,
  ShownCounters,
  SpanColumns,
} from "@lossless/core/adapter";
import type { CoverCounters, CoverHead, CoverTail, Row, Store, Stretch } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Items are read in pages: fetching them one by one would cost half as much again. After the first one the size is estimated, so that a large
 * window takes few pages and a small one hardly reads more than it needs. There is a statement for each size.
 */
const PAGE_ITEMS = [32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1_024, 2_048] as const;
/** Pages are this much larger than estimated: another one costs more than a few items. */
const PAGE_MARGIN = 1.1;

/**
 * The tool calls and results of a message are returned as JSON: another statement for each item would cost more than the item. Their order
 * is not significant.
 */
const ITEM_COLUMNS = `
  i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden, m.role,
  coalesce(m.created_at, s.latest_at), CASE WHEN m.role <> 'system' THEN (
    SELECT json_group_array(json_array(p.type, p.tool_call_id)) FROM message_parts p
    WHERE p.message_id = coalesce(m.newest, m.message_id) AND p.tool_call_id IS NOT NULL
  ) END`;

type ItemRow = readonly [
  startPosition: number,
  seq: number,
  endPosition: number,
  messageId: number | null,
  summaryId: string | null,
  tokens: number,
  messages: number,
  depth: number,
  hidden: number,
  role: string | null,
  createdAt: number,
  tools: string | null,
];

/** The index contains the time of a summary; its condition is repeated here. */
const ITEM_JOINS = `
  LEFT JOIN messages m ON m.message_id = i.message_id
  LEFT JOIN summaries s INDEXED BY summary_times ON s.summary_id = i.summary_id AND s.depth >= 0`;
const ITEM_SOURCE = `FROM context_items i ${ITEM_JOINS}`;
/** A text for each limit: SQLite prepares a statement with a bound limit again at every run. */
const itemsNewestFirst = (limit: number): string => `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = ? AND i.hidden = 0 AND i.start_pos >= ? AND (i.start_pos, i.seq) < (?, ?)
  ORDER BY i.start_pos DESC, i.seq DESC LIMIT ${limit}`;
const ITEMS_OLDEST_FIRST = `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE} WHERE i.conversation_id = ? AND i.start_pos >= ? ORDER BY i.start_pos, i.seq`;
/** Uses the index of summaries: there may be a million messages between them. */
const FIRST_BETWEEN = `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = ? AND i.hidden = 0 AND i.start_pos > ? AND i.start_pos < ? ORDER BY i.start_pos, i.seq LIMIT 1`;
const SUMMARIES_BEFORE = `
  SELECT ${ITEM_COLUMNS} FROM context_items i INDEXED BY items_by_depth ${ITEM_JOINS}
  WHERE i.conversation_id = ? AND i.summary_id IS NOT NULL AND i.hidden = 0 AND i.start_pos < ? ORDER BY i.start_pos DESC`;
/** Several formats write tool results under the user's role; a person did not write those. */
const USER_BEFORE = `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = ?1 AND i.hidden = 0 AND (i.start_pos, i.seq) < (?2, ?3) AND m.role = 'user'
    AND NOT EXISTS (
      SELECT 1 FROM message_parts p
      WHERE p.message_id = coalesce(m.newest, m.message_id) AND p.type <> 'tool_call' AND p.tool_call_id IS NOT NULL)
  ORDER BY i.start_pos DESC, i.seq DESC LIMIT 1`;
const CONVERSATION =
  "SELECT fold_revision, epoch_seq, shown_messages, shown_tokens, first_at FROM conversations WHERE conversation_id = ?";
const BOUNDARIES = `
  SELECT position, retain_depth FROM boundaries
  WHERE conversation_id = ? AND undone_at IS NULL AND reason = 'new' ORDER BY position`;
const SHOWN_FROM = `
  SELECT coalesce(sum(messages), 0) AS messages, coalesce(sum(tokens), 0) AS tokens FROM context_items
  WHERE conversation_id = ? AND hidden = 0 AND start_pos >= ?`;
const RESERVE = `
  SELECT summary_id, start_pos, end_pos, messages, tokens, depth, is_root, made_at_seq, stale FROM summaries
  WHERE conversation_id = ? AND state IN ('reserve', 'prepared') ORDER BY start_pos`;
const STORED_LEAVES = `
  SELECT start_pos, end_pos FROM summaries
  WHERE conversation_id = ? AND state IN ('reserve', 'prepared') AND stale = 0 AND depth = 0 ORDER BY start_pos`;
const SUMMARY_SPANS = `
  SELECT start_pos, end_pos, tokens, messages, depth FROM context_items INDEXED BY items_by_depth
  WHERE conversation_id = ? AND summary_id IS NOT NULL AND hidden = 0 ORDER BY start_pos`;
const SHOWN_WITHIN = `
  SELECT start_pos, end_pos, tokens, messages, depth FROM context_items
  WHERE conversation_id = ? AND hidden = 0 AND start_pos >= ? AND start_pos <= ?`;
const END_BEFORE = `
  SELECT end_pos FROM context_items WHERE conversation_id = ? AND start_pos < ? ORDER BY start_pos DESC, seq DESC LIMIT 1`;

export function readCoverTail(
  { connection }: StoreContext,
  request: { conversationId: number; maxTokens: number; maxMessages: number; withSummaries?: boolean },
): CoverTail | null {
  const { conversationId } = request;
  return connection.read(() => {
    const conversation = connection.get<CoveredRow>(CONVERSATION, conversationId);
    if (!conversation) return null;
    const boundaries = readBoundaries(connection, conversationId);
    const items = takeNewest(
      walkNewestFirst(connection, conversationId, boundaries, request.maxTokens),
      request,
    );
    const oldest = items.at(-1);
    const before = oldest?.startPosition ?? Number.MAX_SAFE_INTEGER;
    return {
      conversationId,
      foldRevision: conversation.fold_revision,
      items,
      counters: countLeft(connection, conversationId, conversation, boundaries),
      boundaries,
      reserve: readReserve(connection, conversationId, conversation.epoch_seq, boundaries),
      summariesBefore: [
        ...takeFirst(
          walkSummariesBefore(connection, conversationId, before, boundaries),
          request.withSummaries ? MAX_SUMMARIES_BEFORE : 0,
        ),
      ],
      newestUser: oldest ? readUserBefore(connection, conversationId, oldest, boundaries) : null,
    };
  });
}

/** `maxTokens`: about how much will be taken. */
function* walkNewestFirst(
  connection: Connection,
  conversationId: number,
  boundaries: readonly Boundary[],
  maxTokens: number,
): Generator<CoverItem, void> {
  const floor = findFloor(boundaries);
  let before: readonly [position: number, seq: number] = [Number.MAX_SAFE_INTEGER, 0];
  let isLast = false;
  let tokens = 0;
  let items = 0;
  for (let limit: number = PAGE_ITEMS[0]; !isLast;) {
    const page = connection.list<ItemRow>(itemsNewestFirst(limit), conversationId, floor, ...before);
    for (const row of page) {
      const item = toItem(row);
      tokens += item.tokens;
      yield item;
    }
    items += page.length;
    const last = page.at(-1);
    isLast = last === undefined || page.length < limit;
    before = [last?.[0] ?? 0, last?.[1] ?? 0];
    limit = sizePage(((maxTokens - tokens) * items) / Math.max(1, tokens));
  }
  if (floor > 0) yield* walkSummariesBefore(connection, conversationId, floor, boundaries);
}

const sizePage = (items: number): number =>
  PAGE_ITEMS.find((size) => size >= PAGE_MARGIN * items) ?? Math.max(...PAGE_ITEMS);

function* walkSummariesBefore(
  connection: Connection,
  conversationId: number,
  before: number,
  boundaries: readonly Boundary[],
): Generator<CoverItem, void> {
  for (const row of connection.walk<ItemRow>(SUMMARIES_BEFORE, conversationId, before)) {
    const item = toItem(row);
    if (!isHiddenByBoundary(item, boundaries)) yield item;
  }
}

function* takeFirst<T>(items: Iterable<T>, count: number): Generator<T, void> {
  let taken = 0;
  if (count <= 0) return;
  for (const item of items) {
    yield item;
    if (++taken >= count) return;
  }
}

function readUserBefore(
  connection: Connection,
  conversationId: number,
  oldest: CoverItem,
  boundaries: readonly Boundary[],
): CoverItem | null {
  const [row] = connection.walk<ItemRow>(USER_BEFORE, conversationId, oldest.startPosition, oldest.seq);
  const item = row ? toItem(row) : null;
  return item && !isHiddenByBoundary(item, boundaries) ? item : null;
}

const readBoundaries = (connection: Connection, conversationId: number): Boundary[] =>
  connection.all<{ position: number; retain_depth: number }>(BOUNDARIES, conversationId).map(toBoundary);

/** What the context of a conversation represents. */
type CoveredRow = ShownCounters & Pick<Row<"conversations">, "fold_revision" | "epoch_seq">;

export const readShownCounters = (
  connection: Connection,
  conversationId: number,
  conversation: ShownCounters,
): CoverCounters =>
  countLeft(connection, conversationId, conversation, readBoundaries(connection, conversationId));

function countLeft(
  connection: Connection,
  conversationId: number,
  conversation: ShownCounters,
  boundaries: readonly Boundary[],
): CoverCounters {
  const floor = findFloor(boundaries);
  if (floor === 0) return countShown(conversation, null);
  const after = connection.get<{ messages: number; tokens: number }>(SHOWN_FROM, conversationId, floor);
  return countShown(conversation, {
    after: must(after, "a sum"),
    retained: walkSummariesBefore(connection, conversationId, floor, boundaries),
  });
}

function readReserve(
  connection: Connection,
  conversationId: number,
  epochSeq: number,
  boundaries: readonly Boundary[],
): ReserveSummary[] {
  return connection
    .all<ReserveColumns>(RESERVE, conversationId)
    .filter((row) => isUsable(row, boundaries))
    .map((row) =>
      toReserve(
        row,
        epochSeq,
        row.is_root === 1 ? readHeld(connection, conversationId, row, boundaries) : undefined,
      ),
    );
}

function readHeld(
  connection: Connection,
  conversationId: number,
  reserve: ReserveColumns,
  boundaries: readonly Boundary[],
): number | undefined {
  const { start_pos: start, end_pos: end } = reserve;
  const before = connection.get<{ end_pos: number }>(END_BEFORE, conversationId, start);
  const within = connection.all<SpanColumns>(SHOWN_WITHIN, conversationId, start, end);
  return countHeld(reserve, before?.end_pos ?? null, within, boundaries);
}

const SOURCES = `
  SELECT m.position, m.seq, m.position, m.message_id, NULL, coalesce(n.tokens, m.tokens), 1, -1, m.hidden_now, m.role, m.created_at,
    CASE WHEN m.role <> 'system' THEN (
      SELECT json_group_array(json_array(p.type, p.tool_call_id)) FROM message_parts p
      WHERE p.message_id = coalesce(m.newest, m.message_id) AND p.tool_call_id IS NOT NULL
    ) END, 0
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest WHERE l.summary_id = ?1
  UNION ALL
  SELECT s.start_pos, s.start_seq, s.end_pos, NULL, s.summary_id, s.tokens, s.messages, s.depth,
    CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, NULL, s.latest_at, NULL, s.state = 'retired'
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?1
  ORDER BY 1, 2`;

type SourceRow = readonly [...ItemRow, isRetired: number];

/** The sources of a summary, as items of a cover; empty if one of them is no longer in force. */
export function readSourceItems(
  { connection }: StoreContext,
  summaryIds: readonly string[],
): Map<string, CoverItem[]> {
  return connection.read(
    () =>
      new Map(
        summaryIds.map((id) => {
          const rows = connection.list<SourceRow>(SOURCES, id);
          const isInForce = rows.every((row) => row[12] === 0);
          return [id, isInForce ? rows.map((row) => toItem(row)) : []];
        }),
      ),
  );
}

const endOf = (order: "ASC" | "DESC"): string => `
  SELECT message_id AS id FROM messages
  WHERE conversation_id = ? AND position >= ? AND position <= ? AND revises IS NULL AND hidden_now = 0
  ORDER BY position ${order}, seq ${order} LIMIT 1`;
const FIRST_MESSAGE = endOf("ASC");
const LAST_MESSAGE = endOf("DESC");

export function findEnds(
  { connection }: StoreContext,
  { conversationId, stretches }: Parameters<Store["findEnds"]>[0],
): { first: number | null; last: number | null } {
  const find = (sql: string, ordered: readonly Stretch[]): number | null => {
    for (const { startPosition, endPosition } of ordered) {
      const found = connection.get<{ id: number }>(sql, conversationId, startPosition, endPosition);
      if (found !== undefined) return found.id;
    }
    return null;
  };
  return connection.read(() => ({
    first: find(FIRST_MESSAGE, stretches),
    last: find(LAST_MESSAGE, stretches.toReversed()),
  }));
}

export function readCoverHead(
  { connection }: StoreContext,
  request: { conversationId: number; maxMessageTokens: number },
): CoverHead {
  const { conversationId, maxMessageTokens } = request;
  return connection.read(() => {
    const boundaries = readBoundaries(connection, conversationId);
    const floor = findFloor(boundaries);
    const retained = floor > 0 ? readRetained(connection, conversationId, floor, boundaries) : [];
    const stored = connection.all<{ start_pos: number; end_pos: number }>(STORED_LEAVES, conversationId);
    const head = new HeadTaker(retained, stored, maxMessageTokens);
    let isWhole = true;
    for (const row of connection.walk<ItemRow>(ITEMS_OLDEST_FIRST, conversationId, floor)) {
      isWhole = head.take(toItem(row));
      if (!isWhole) break;
    }
    const spans = connection.all<SpanColumns & { tokens: number }>(SUMMARY_SPANS, conversationId);
    return head.finish(isWhole, countPrefix(spans, boundaries));
  });
}

/** What stays visible before a boundary, oldest first. */
function readRetained(
  connection: Connection,
  conversationId: number,
  floor: number,
  boundaries: readonly Boundary[],
): CoverItem[] {
  const summaries = [...walkSummariesBefore(connection, conversationId, floor, boundaries)].reverse();
  const inGaps = listGaps(summaries, floor).map(({ after, before }) => {
    const [first] = connection.walk<ItemRow>(FIRST_BETWEEN, conversationId, after, before);
    return first ? toItem(first) : null;
  });
  return keepApart(summaries, inGaps);
}

function toItem(row: readonly [...ItemRow, ...rest: unknown[]]): CoverItem {
  const [
    startPosition,
    seq,
    endPosition,
    messageId,
    summaryId,
    tokens,
    messages,
    depth,
    hidden,
    role,
    createdAt,
    tools,
  ] = row;
  const place = { startPosition, endPosition, seq, messageId, summaryId };
  return { ...place, tokens, messages, depth, hidden, role, createdAt, ...readTools(tools) };
}
