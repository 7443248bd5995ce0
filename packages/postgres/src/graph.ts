/** Reading the summary graph: one summary with its neighbours, and lists of them. */
import { makePage, parseCursor, toSummary, toSummaryOutline } from "@lossless/core/adapter";
import type { SummaryColumns } from "@lossless/core/adapter";
import type {
  Page,
  Row,
  ShownSummary,
  Store,
  SummaryGraph,
  SummaryNode,
  SummaryRow,
} from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const IS_OWNED = "($2::text IS NULL OR c.owner = $2)";
/** The neighbours of a summary, each kind as a list of ids in order. */
const listOf = (column: string, order: string, source: string): string =>
  `coalesce((SELECT jsonb_agg(${column} ORDER BY ${order}) FROM ${source}), '[]')`;
const SELECT_SUMMARY = `
  SELECT s.*, ${listOf("p.parent_summary_id", "p.ordinal", "summary_parents p WHERE p.summary_id = $1")} AS source_ids,
    ${listOf("l.message_id", "l.ordinal", "summary_messages l WHERE l.summary_id = $1")} AS message_ids,
    ${listOf("p.summary_id", "p.summary_id", "summary_parents p WHERE p.parent_summary_id = $1")} AS derived_ids,
    ${listOf(
      "DISTINCT p.file_id",
      "p.file_id",
      "summary_messages l JOIN message_parts p USING (message_id) WHERE l.summary_id = $1 AND p.file_id IS NOT NULL",
    )} AS file_ids
  FROM summaries s JOIN conversations c USING (conversation_id) WHERE s.summary_id = $1 AND ${IS_OWNED}`;
const SELECT_SHOWN = `
  SELECT s.*, ${listOf("p.parent_summary_id", "p.ordinal", "summary_parents p WHERE p.summary_id = s.summary_id")} AS source_ids
  FROM unnest($1::text[]) WITH ORDINALITY j (id, at) JOIN summaries s ON s.summary_id = j.id ORDER BY j.at`;
const LIST = `
  SELECT s.* FROM summaries s JOIN conversations c USING (conversation_id)
  WHERE s.conversation_id = $1 AND ${IS_OWNED} AND ($3::text IS NULL OR s.state = $3)
    AND (s.start_pos, s.depth, s.summary_id) > ($4, $5, $6) ORDER BY s.start_pos, s.depth, s.summary_id LIMIT $7`;
const OUTLINES = `
  SELECT s.summary_id, s.conversation_id, s.kind, s.depth, s.state, s.start_pos, s.end_pos, s.messages, s.descendant_count, s.tokens,
    s.source_tokens, s.earliest_at, s.latest_at, s.model, s.level, s.stale, s.is_root, s.published_seq, s.created_at
  FROM summaries s JOIN conversations c USING (conversation_id) WHERE s.conversation_id = $1 AND ${IS_OWNED}
  ORDER BY s.start_pos, s.depth, s.summary_id`;
const EDGES = `
  SELECT p.summary_id, p.parent_summary_id FROM summaries s JOIN conversations c USING (conversation_id)
  JOIN summary_parents p ON p.summary_id = s.summary_id WHERE s.conversation_id = $1 AND ${IS_OWNED} ORDER BY p.summary_id, p.ordinal`;
const COUNTS = `
  SELECT count(*) FILTER (WHERE state = 'cover') AS cover, count(*) FILTER (WHERE state = 'reserve') AS reserve,
    count(*) FILTER (WHERE state = 'prepared') AS prepared, count(*) FILTER (WHERE stale = 1 AND state = 'cover') AS stale,
    count(*) FILTER (WHERE level = 'extractive' AND state = 'cover') AS extractive
  FROM summaries WHERE conversation_id = $1`;

interface NodeRow extends Row<"summaries"> {
  readonly source_ids: string[];
  readonly message_ids: number[];
  readonly derived_ids: string[];
  readonly file_ids: string[];
}

export async function readSummary(
  { sql }: StoreContext,
  summaryId: string,
  owner?: string,
): Promise<SummaryNode | null> {
  const row = await sql.get<NodeRow>(SELECT_SUMMARY, summaryId, owner ?? null);
  if (!row) return null;
  const { source_ids: sourceIds, message_ids: messageIds, derived_ids: derivedIds, file_ids: fileIds } = row;
  return { ...toSummary(row), sourceIds, messageIds, derivedIds, fileIds };
}

export async function readShownSummaries(
  { sql }: StoreContext,
  summaryIds: readonly string[],
): Promise<ShownSummary[]> {
  if (summaryIds.length === 0) return [];
  const rows = await sql.all<Pick<NodeRow, "source_ids"> & Row<"summaries">>(SELECT_SHOWN, [...summaryIds]);
  return rows.map((row) => ({ ...toSummary(row), sourceIds: row.kind === "leaf" ? [] : row.source_ids }));
}

export async function listSummaries(
  { sql }: StoreContext,
  { conversationId, owner, state, after, limit }: Parameters<Store["listSummaries"]>[0],
): Promise<Page<SummaryRow>> {
  const [place = "", id = ""] = after === null ? ["-1.-1"] : after.split("@");
  const from = [...parseCursor(place, 2), id];
  const rows = await sql.all<Row<"summaries">>(
    LIST,
    conversationId,
    owner ?? null,
    state ?? null,
    ...from,
    limit + 1,
  );
  return makePage(rows.map(toSummary), limit, (row) => `${row.startPosition}.${row.depth}@${row.summaryId}`);
}

export function readGraph(
  { sql }: StoreContext,
  { conversationId, owner = null }: { conversationId: number; owner?: string | null },
): Promise<SummaryGraph> {
  return sql.read(async (own) => {
    const [nodes, edges] = await Promise.all([
      own.all<SummaryColumns>(OUTLINES, conversationId, owner),
      own.all<Row<"summary_parents">>(EDGES, conversationId, owner),
    ]);
    return {
      nodes: nodes.map(toSummaryOutline),
      edges: edges.map((edge) => [edge.summary_id, edge.parent_summary_id]),
    };
  });
}

type Counts = Awaited<ReturnType<Store["countSummaries"]>>;

export async function countSummaries({ sql }: StoreContext, conversationId: number): Promise<Counts> {
  const none: Counts = { cover: 0, reserve: 0, prepared: 0, stale: 0, extractive: 0 };
  return (await sql.get<Counts>(COUNTS, conversationId)) ?? none;
}
