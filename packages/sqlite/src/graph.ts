/** Reading the summary graph: one summary with its neighbours, and lists of them. */
import { makePage, parseCursor, toSummary, toSummaryOutline } from "@lossless/core/adapter";
import type { SummaryColumns } from "@lossless/core/adapter";
import type {
  Page,
  Row,
  ShownSummary,
  SummaryGraph,
  SummaryNode,
  SummaryRow,
  SummaryState,
} from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const SELECT_SUMMARY = `
  SELECT s.* FROM summaries s JOIN conversations c USING (conversation_id)
  WHERE s.summary_id = ?1 AND (?2 IS NULL OR c.owner = ?2)`;
const SOURCES = "SELECT parent_summary_id AS id FROM summary_parents WHERE summary_id = ? ORDER BY ordinal";
const MESSAGES = "SELECT message_id AS id FROM summary_messages WHERE summary_id = ? ORDER BY ordinal";
const DERIVED =
  "SELECT summary_id AS id FROM summary_parents WHERE parent_summary_id = ? ORDER BY summary_id";
const FILES = `
  SELECT DISTINCT p.file_id AS id FROM summary_messages l JOIN message_parts p USING (message_id)
  WHERE l.summary_id = ? AND p.file_id IS NOT NULL ORDER BY p.file_id`;
const LIST = `
  SELECT s.* FROM summaries s JOIN conversations c USING (conversation_id)
  WHERE s.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2) AND (?3 IS NULL OR s.state = ?3)
    AND (s.start_pos, s.depth, s.summary_id) > (?4, ?5, ?6)
  ORDER BY s.start_pos, s.depth, s.summary_id LIMIT ?7`;
/** The index contains this and the counts; its condition is repeated here. */
const OUTLINES = `
  SELECT s.summary_id, s.conversation_id, s.kind, s.depth, s.state, s.start_pos, s.end_pos, s.messages, s.descendant_count, s.tokens,
         s.source_tokens, s.earliest_at, s.latest_at, s.model, s.level, s.stale, s.is_root, s.published_seq, s.created_at
  FROM summaries s INDEXED BY summary_outlines JOIN conversations c USING (conversation_id)
  WHERE s.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2) AND s.depth >= 0
  ORDER BY s.start_pos, s.depth, s.summary_id`;
const EDGES = `
  SELECT p.summary_id, p.parent_summary_id FROM summaries s
  JOIN conversations c USING (conversation_id) JOIN summary_parents p ON p.summary_id = s.summary_id
  WHERE s.conversation_id = ?1 AND (?2 IS NULL OR c.owner = ?2)
  ORDER BY p.summary_id, p.ordinal`;
const COUNTS = `
  SELECT count(*) FILTER (WHERE state = 'cover') AS cover, count(*) FILTER (WHERE state = 'reserve') AS reserve,
         count(*) FILTER (WHERE state = 'prepared') AS prepared, count(*) FILTER (WHERE stale = 1 AND state = 'cover') AS stale,
         count(*) FILTER (WHERE level = 'extractive' AND state = 'cover') AS extractive
  FROM summaries INDEXED BY summary_outlines WHERE conversation_id = ? AND depth >= 0`;

export function readSummary(
  { connection }: StoreContext,
  summaryId: string,
  owner?: string,
): SummaryNode | null {
  return connection.read(() => {
    const row = connection.get<Row<"summaries">>(SELECT_SUMMARY, summaryId, owner ?? null);
    if (!row) return null;
    const ids = <T>(sql: string): T[] => connection.all<{ id: T }>(sql, summaryId).map(({ id }) => id);
    return {
      ...toSummary(row),
      sourceIds: ids<string>(SOURCES),
      messageIds: ids<number>(MESSAGES),
      derivedIds: ids<string>(DERIVED),
      fileIds: ids<string>(FILES),
    };
  });
}

const SELECT_SHOWN = `
  SELECT s.*, (
    SELECT json_group_array(id) FROM (
      SELECT parent_summary_id AS id FROM summary_parents p WHERE p.summary_id = s.summary_id ORDER BY ordinal)) AS source_ids
  FROM json_each(?1) j CROSS JOIN summaries s ON s.summary_id = j.value ORDER BY j.key`;

export function readShownSummaries(
  { connection }: StoreContext,
  summaryIds: readonly string[],
): ShownSummary[] {
  if (summaryIds.length === 0) return [];
  const rows = connection.all<Row<"summaries"> & { source_ids: string }>(
    SELECT_SHOWN,
    JSON.stringify(summaryIds),
  );
  return rows.map((row) => ({
    ...toSummary(row),
    sourceIds: row.kind === "leaf" ? [] : (JSON.parse(row.source_ids) as string[]),
  }));
}

export function listSummaries(
  { connection }: StoreContext,
  request: {
    conversationId: number;
    after: string | null;
    limit: number;
    owner?: string;
    state?: SummaryState;
  },
): Page<SummaryRow> {
  const [place, id] = request.after === null ? ["-1.-1", ""] : request.after.split("@");
  const from = [...parseCursor(place ?? "", 2), id ?? ""];
  const rows = connection
    .all<Row<"summaries">>(
      LIST,
      request.conversationId,
      request.owner ?? null,
      request.state ?? null,
      ...from,
      request.limit + 1,
    )
    .map(toSummary);
  return makePage(rows, request.limit, (row) => `${row.startPosition}.${row.depth}@${row.summaryId}`);
}

export function readGraph(
  { connection }: StoreContext,
  request: { conversationId: number; owner?: string },
): SummaryGraph {
  const bound = [request.conversationId, request.owner ?? null];
  return connection.read(() => ({
    nodes: connection.all<SummaryColumns>(OUTLINES, ...bound).map(toSummaryOutline),
    edges: connection.list<[summary: string, source: string]>(EDGES, ...bound),
  }));
}

export function countSummaries(
  { connection }: StoreContext,
  conversationId: number,
): { cover: number; reserve: number; prepared: number; stale: number; extractive: number } {
  const row = connection.get<Record<string, number>>(COUNTS, conversationId) ?? {};
  const { cover = 0, reserve = 0, prepared = 0, stale = 0, extractive = 0 } = row;
  return { cover, reserve, prepared, stale, extractive };
}
