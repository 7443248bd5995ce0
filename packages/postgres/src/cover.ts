/**
 * Reading the cover. Choosing a context reads it from the newest end and folding from the oldest, each only as far as it needs. Everything that
 * a context needs of a cover takes one round trip: the server walks in pages until the limits are passed, and the excess is cut off here.
 */
import {
  countHeld,
  countPrefix,
  countShown,
  findFloor,
  HeadTaker,
  HIDDEN,
  isHiddenByBoundary,
  isSpoken,
  isUsable,
  keepApart,
  listGaps,
  MAX_SUMMARIES_BEFORE,
  must,
  takeNewest,
  toBoundary,
  toCoverItem,
  toReserve,
} from "@lossless/core/adapter";
import type {
  Boundary,
  CoverItem,
  CoverItemColumns,
  ReserveColumns,
  ShownCounters,
  SpanColumns,
} from "@lossless/core/adapter";
import type { CoverHead, CoverTail, Row, Store } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";

/** How far the server walks before it checks the limits. */
const WALK_ITEMS = 64;
/** Items that folding reads at once: a step needs a few hundred. */
const PAGE_ITEMS = 1_000;

/** The tool calls of a message and the results in it are included as JSON. Their order does not matter. */
const toolsOf = (message: string): string => `
  CASE WHEN ${message}.role <> 'system' THEN (
    SELECT json_agg(json_build_array(p.type, p.tool_call_id))::text FROM message_parts p
    WHERE p.message_id = coalesce(${message}.newest, ${message}.message_id) AND p.tool_call_id IS NOT NULL) END`;
const ITEM_COLUMNS = `
  i.start_pos, i.seq, i.end_pos, i.message_id, i.summary_id, i.tokens, i.messages, i.depth, i.hidden, m.role,
  coalesce(m.created_at, s.latest_at) AS created_at, ${toolsOf("m")} AS tools`;
/** A cover has messages of its own conversation. Stating that lets a server with partitions choose the right one. */
const ITEM_JOINS = `
  LEFT JOIN messages m ON m.message_id = i.message_id AND m.conversation_id = i.conversation_id LEFT JOIN summaries s ON s.summary_id = i.summary_id`;
const ITEM_SOURCE = `FROM context_items i ${ITEM_JOINS}`;

/** Before it a boundary hides all but deep summaries. */
const FLOOR = `
  SELECT coalesce(max(position), 0) AS position FROM boundaries
  WHERE conversation_id = $1 AND undone_at IS NULL AND reason = 'new' AND retain_depth >= 0`;
/**
 * The position down to which the newest items are needed: page by page, until those before it have passed both limits ($2 tokens, $3 messages).
 */
const LOWEST = `
  WITH RECURSIVE lowest AS (SELECT position FROM (${FLOOR}) f),
  pages AS (
    SELECT ${Number.MAX_SAFE_INTEGER}::bigint AS start_pos, 0::bigint AS seq, 0::numeric AS tokens, 0::numeric AS messages,
      ${WALK_ITEMS}::bigint AS items
    UNION ALL
    SELECT p.start_pos, p.seq, pages.tokens + p.tokens, pages.messages + p.messages, p.items
    FROM pages CROSS JOIN LATERAL (
      SELECT (array_agg(w.start_pos ORDER BY w.start_pos, w.seq))[1] AS start_pos,
        (array_agg(w.seq ORDER BY w.start_pos, w.seq))[1] AS seq,
        coalesce(sum(w.tokens), 0) AS tokens, count(*) FILTER (WHERE w.depth < 0)::numeric AS messages, count(*) AS items
      FROM (
        SELECT i.start_pos, i.seq, i.tokens, i.depth FROM context_items i
        WHERE i.conversation_id = $1 AND i.hidden = 0 AND i.start_pos >= (SELECT position FROM lowest)
          AND (i.start_pos, i.seq) < (pages.start_pos, pages.seq)
        ORDER BY i.start_pos DESC, i.seq DESC LIMIT ${WALK_ITEMS}) w) p
    WHERE pages.items = ${WALK_ITEMS} AND NOT (pages.tokens > $2 AND pages.messages >= $3) AND p.items > 0),
  low AS (SELECT start_pos, seq FROM pages ORDER BY start_pos, seq LIMIT 1)`;
const NEWEST = `
  ${LOWEST}
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = $1 AND i.hidden = 0 AND (i.start_pos, i.seq) >= (SELECT start_pos, seq FROM low)
  ORDER BY i.start_pos DESC, i.seq DESC`;
/** If a boundary hides some of them, all are returned: hiding is not decided here. */
const SUMMARIES_BEFORE = `
  ${LOWEST}
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = $1 AND i.summary_id IS NOT NULL AND i.hidden = 0 AND i.start_pos < (SELECT start_pos FROM low)
  ORDER BY i.start_pos DESC
  LIMIT (SELECT CASE WHEN position > 0 THEN NULL ELSE ${MAX_SUMMARIES_BEFORE} END FROM lowest)`;
/** Several formats store tool results under the user's role; those are not words of a person. */
const USER_BEFORE = `
  ${LOWEST}
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE}
  WHERE i.conversation_id = $1 AND i.hidden = 0 AND (i.start_pos, i.seq) < (SELECT start_pos, seq FROM low) AND m.role = 'user'
    AND NOT EXISTS (
      SELECT 1 FROM message_parts p
      WHERE p.message_id = coalesce(m.newest, m.message_id) AND p.type <> 'tool_call' AND p.tool_call_id IS NOT NULL)
  ORDER BY i.start_pos DESC, i.seq DESC LIMIT 1`;
const CONVERSATION = `
  SELECT fold_revision, epoch_seq, shown_messages, shown_tokens, first_at FROM conversations WHERE conversation_id = $1`;
const BOUNDARIES = `
  SELECT conversation_id, position, retain_depth FROM boundaries
  WHERE conversation_id = ANY($1::bigint[]) AND undone_at IS NULL AND reason = 'new' ORDER BY position`;
/** Nothing is counted if no boundary hides anything: the conversation has the sums. */
const SHOWN_FROM = `
  SELECT coalesce(sum(messages), 0) AS messages, coalesce(sum(tokens), 0) AS tokens
  FROM context_items i CROSS JOIN (${FLOOR}) f
  WHERE i.conversation_id = $1 AND i.hidden = 0 AND f.position > 0 AND i.start_pos >= f.position`;
const RESERVE = `
  SELECT s.summary_id, s.start_pos, s.end_pos, s.messages, s.tokens, s.depth, s.is_root, s.made_at_seq, s.stale, (
    SELECT i.end_pos FROM context_items i WHERE s.is_root = 1 AND i.conversation_id = $1 AND i.start_pos < s.start_pos
    ORDER BY i.start_pos DESC, i.seq DESC LIMIT 1) AS end_before
  FROM summaries s WHERE s.conversation_id = $1 AND s.state IN ('reserve', 'prepared') ORDER BY s.start_pos`;
const SHOWN_WITHIN = `
  SELECT s.summary_id, i.end_pos, i.messages, i.depth FROM summaries s JOIN context_items i
    ON i.conversation_id = $1 AND i.hidden = 0 AND i.start_pos BETWEEN s.start_pos AND s.end_pos
  WHERE s.conversation_id = $1 AND s.state IN ('reserve', 'prepared') AND s.is_root = 1`;

type CoveredRow = ShownCounters & Pick<Row<"conversations">, "fold_revision" | "epoch_seq">;

export function readCoverTail(
  { sql }: StoreContext,
  request: { conversationId: number; maxTokens: number; maxMessages: number; withSummaries?: boolean },
): Promise<CoverTail | null> {
  const { conversationId } = request;
  const limits = [conversationId, request.maxTokens, request.maxMessages] as const;
  return sql.read(async (own) => {
    const [conversation, boundaries, newest, before, user, after, reserve, within] = await Promise.all([
      own.get<CoveredRow>(CONVERSATION, conversationId),
      readBoundaries(own, conversationId),
      own.all<CoverItemColumns>(NEWEST, ...limits),
      own.all<CoverItemColumns>(SUMMARIES_BEFORE, ...limits),
      own.all<CoverItemColumns>(USER_BEFORE, ...limits),
      own.get<{ messages: number; tokens: number }>(SHOWN_FROM, conversationId),
      own.all<ReserveRow>(RESERVE, conversationId),
      own.all<WithinRow>(SHOWN_WITHIN, conversationId),
    ]);
    if (!conversation) return null;
    const floor = findFloor(boundaries);
    const isShown = (item: CoverItem): boolean => !isHiddenByBoundary(item, boundaries);
    const walked = newest.map(toCoverItem);
    const earlier = before.map(toCoverItem).filter(isShown);
    const retained = earlier.filter((item) => item.startPosition < floor);
    const items = takeNewest([...walked, ...retained], request);
    const oldest = items.at(-1);
    const rest = walked.slice(items.length);
    const isBefore = (item: CoverItem): boolean =>
      item.startPosition < (oldest?.startPosition ?? Number.MAX_SAFE_INTEGER);
    const summaries = [...rest.filter(({ summaryId }) => summaryId !== null), ...earlier].filter(isBefore);
    return {
      conversationId,
      foldRevision: conversation.fold_revision,
      items,
      counters: countShown(conversation, floor === 0 ? null : { after: must(after, "a sum"), retained }),
      boundaries,
      reserve: toReserves(reserve, within, conversation.epoch_seq, boundaries),
      summariesBefore: request.withSummaries ? summaries.slice(0, MAX_SUMMARIES_BEFORE) : [],
      newestUser: oldest
        ? ([...rest.filter(isSpoken), ...user.map(toCoverItem)].filter(isShown)[0] ?? null)
        : null,
    };
  });
}

type ReserveRow = ReserveColumns & { readonly end_before: number | null };
type WithinRow = SpanColumns & { readonly summary_id: string };

function toReserves(
  rows: readonly ReserveRow[],
  within: readonly WithinRow[],
  epochSeq: number,
  boundaries: readonly Boundary[],
): CoverTail["reserve"] {
  const spans = Map.groupBy(within, ({ summary_id }) => summary_id);
  const countIn = (row: ReserveRow): number | undefined =>
    countHeld(row, row.end_before, spans.get(row.summary_id) ?? [], boundaries);
  return rows
    .filter((row) => isUsable(row, boundaries))
    .map((row) => toReserve(row, epochSeq, row.is_root === 1 ? countIn(row) : undefined));
}

async function readBoundaries(sql: Sql, conversationId: number): Promise<Boundary[]> {
  return (await sql.all<BoundaryRow>(BOUNDARIES, [conversationId])).map(toBoundary);
}

type BoundaryRow = Pick<Row<"boundaries">, "conversation_id" | "position" | "retain_depth">;

/** Summaries before the position of a boundary. */
const RETAINED = `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE} CROSS JOIN (${FLOOR}) f
  WHERE i.conversation_id = $1 AND i.summary_id IS NOT NULL AND i.hidden = 0 AND i.start_pos < f.position ORDER BY i.start_pos`;
/** $2 and $3 are the bounds of the search for the first shown item. */
const FIRST_BETWEEN = `
  SELECT b.at, ${ITEM_COLUMNS} FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY b (after, before, at)
  CROSS JOIN LATERAL (
    SELECT * FROM context_items o
    WHERE o.conversation_id = $1 AND o.hidden = 0 AND o.start_pos > b.after AND o.start_pos < b.before
    ORDER BY o.start_pos, o.seq LIMIT 1) i ${ITEM_JOINS}`;
const STORED_LEAVES = `
  SELECT start_pos, end_pos FROM summaries
  WHERE conversation_id = $1 AND state IN ('reserve', 'prepared') AND stale = 0 AND depth = 0 ORDER BY start_pos`;
const SUMMARY_SPANS = `
  SELECT end_pos, tokens, messages, depth FROM context_items
  WHERE conversation_id = $1 AND summary_id IS NOT NULL AND hidden = 0`;
const OLDEST = `
  SELECT ${ITEM_COLUMNS} ${ITEM_SOURCE} WHERE i.conversation_id = $1 AND i.start_pos >= (${FLOOR}) AND (i.start_pos, i.seq) > ($2, $3)
  ORDER BY i.start_pos, i.seq LIMIT ${PAGE_ITEMS}`;

export function readCoverHead(
  { sql }: StoreContext,
  { conversationId, maxMessageTokens }: { conversationId: number; maxMessageTokens: number },
): Promise<CoverHead> {
  return sql.read(async (own) => {
    const readPage = (position: number, seq: number): Promise<CoverItemColumns[]> =>
      own.all<CoverItemColumns>(OLDEST, conversationId, position, seq);
    const [boundaries, retained, stored, spans, first] = await Promise.all([
      readBoundaries(own, conversationId),
      own.all<CoverItemColumns>(RETAINED, conversationId),
      own.all<{ start_pos: number; end_pos: number }>(STORED_LEAVES, conversationId),
      own.all<SpanColumns & { tokens: number }>(SUMMARY_SPANS, conversationId),
      readPage(Number.MIN_SAFE_INTEGER, 0),
    ]);
    const summaries = retained.map(toCoverItem).filter((item) => !isHiddenByBoundary(item, boundaries));
    const inGaps = await readGaps(own, conversationId, listGaps(summaries, findFloor(boundaries)));
    const head = new HeadTaker(keepApart(summaries, inGaps), stored, maxMessageTokens);
    let isWhole = true;
    for (let page = first; page.length > 0 && isWhole;) {
      isWhole = page.every((row) => head.take(toCoverItem(row)));
      const last = page.at(-1);
      page = last === undefined || page.length < PAGE_ITEMS ? [] : await readPage(last.start_pos, last.seq);
    }
    return head.finish(isWhole, countPrefix(spans, boundaries));
  });
}

async function readGaps(
  sql: Sql,
  conversationId: number,
  gaps: ReturnType<typeof listGaps>,
): Promise<(CoverItem | undefined)[]> {
  if (gaps.length === 0) return [];
  const rows = await sql.all<CoverItemColumns & { readonly at: number }>(
    FIRST_BETWEEN,
    conversationId,
    gaps.map(({ after }) => after),
    gaps.map(({ before }) => before),
  );
  const between = new Map(rows.map((row) => [row.at - 1, toCoverItem(row)]));
  return gaps.map((_gap, at) => between.get(at));
}

const SOURCES = `
  SELECT l.summary_id AS of_summary, m.position AS start_pos, m.seq, m.position AS end_pos, m.message_id, NULL AS summary_id,
    coalesce(n.tokens, m.tokens) AS tokens, 1 AS messages, -1 AS depth, m.hidden_now AS hidden, m.role, m.created_at,
    ${toolsOf("m")} AS tools, FALSE AS is_retired
  FROM summary_messages l JOIN messages m USING (message_id) LEFT JOIN messages n ON n.message_id = m.newest
  WHERE l.summary_id = ANY($1::text[])
  UNION ALL
  SELECT p.summary_id, s.start_pos, s.start_seq, s.end_pos, NULL, s.summary_id, s.tokens, s.messages, s.depth,
    CASE WHEN s.messages = 0 THEN ${HIDDEN.branch} ELSE 0 END, NULL, s.latest_at, NULL, s.state = 'retired'
  FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ANY($1::text[])
  ORDER BY 2, 3`;

type SourceRow = CoverItemColumns & { readonly of_summary: string; readonly is_retired: boolean };

/** The sources of a summary, as items of a cover; empty if one of them is no longer current. */
export async function readSourceItems(
  { sql }: StoreContext,
  summaryIds: readonly string[],
): Promise<Map<string, CoverItem[]>> {
  const rows = await sql.all<SourceRow>(SOURCES, [...summaryIds]);
  const sources = Map.groupBy(rows, ({ of_summary }) => of_summary);
  return new Map(
    summaryIds.map((id) => {
      const own = sources.get(id) ?? [];
      return [id, own.some(({ is_retired }) => is_retired) ? [] : own.map(toCoverItem)];
    }),
  );
}

const endOf = (order: "ASC" | "DESC"): string => `
  SELECT message_id FROM messages
  WHERE conversation_id = $1 AND position >= s.start AND position <= s.ending AND revises IS NULL AND hidden_now = 0
  ORDER BY position ${order}, seq ${order} LIMIT 1`;
const ENDS = `
  SELECT (${endOf("ASC")}) AS first, (${endOf("DESC")}) AS last
  FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY s (start, ending, nth) ORDER BY s.nth`;

export async function findEnds(
  { sql }: StoreContext,
  { conversationId, stretches }: Parameters<Store["findEnds"]>[0],
): Promise<{ first: number | null; last: number | null }> {
  const ends = await sql.all<{ first: number | null; last: number | null }>(
    ENDS,
    conversationId,
    stretches.map(({ startPosition }) => startPosition),
    stretches.map(({ endPosition }) => endPosition),
  );
  return {
    first: ends.find(({ first }) => first !== null)?.first ?? null,
    last: ends.findLast(({ last }) => last !== null)?.last ?? null,
  };
}

const LEFT_AFTER = `
  SELECT i.conversation_id, coalesce(sum(i.messages), 0) AS messages, coalesce(sum(i.tokens), 0) AS tokens
  FROM unnest($1::bigint[], $2::bigint[]) f (id, position) JOIN context_items i
    ON i.conversation_id = f.id AND i.start_pos >= f.position AND i.hidden = 0 GROUP BY i.conversation_id`;
const LEFT_BEFORE = `
  SELECT i.conversation_id, i.end_pos, i.depth, i.messages, i.tokens
  FROM unnest($1::bigint[], $2::bigint[]) f (id, position) JOIN context_items i
    ON i.conversation_id = f.id AND i.start_pos < f.position AND i.hidden = 0 AND i.summary_id IS NOT NULL`;

type CountedRow = ShownCounters & Pick<Row<"conversations">, "conversation_id">;
type LeftRow = Pick<Row<"context_items">, "conversation_id" | "messages" | "tokens">;

/** How many messages the contexts of conversations represent. */
export async function countShownMessages(
  sql: Sql,
  conversations: readonly CountedRow[],
): Promise<ReadonlyMap<number, number>> {
  const ids = conversations.map(({ conversation_id }) => conversation_id);
  const found = Map.groupBy(await sql.all<BoundaryRow>(BOUNDARIES, ids), (row) => row.conversation_id);
  const boundaries = new Map(Array.from(found, ([id, rows]) => [id, rows.map(toBoundary)]));
  const cut = Array.from(boundaries, ([id, own]) => ({ id, floor: findFloor(own) })).filter(
    ({ floor }) => floor > 0,
  );
  const floors = [cut.map(({ id }) => id), cut.map(({ floor }) => floor)];
  const [after, before] =
    cut.length === 0
      ? [[], []]
      : await Promise.all([
          sql.all<LeftRow>(LEFT_AFTER, ...floors),
          sql.all<LeftRow & SpanColumns>(LEFT_BEFORE, ...floors),
        ]);
  return new Map(
    conversations.map((conversation) => {
      const { conversation_id: id } = conversation;
      if (!cut.some((one) => one.id === id)) return [id, conversation.shown_messages];
      const left = after.find((row) => row.conversation_id === id) ?? { messages: 0, tokens: 0 };
      const retained = before.filter(
        ({ conversation_id, end_pos: endPosition, depth }) =>
          conversation_id === id && !isHiddenByBoundary({ endPosition, depth }, boundaries.get(id) ?? []),
      );
      return [id, countShown(conversation, { after: left, retained }).shownMessages];
    }),
  );
}
