/** Reads the runs that summaries are made from, with their texts: one round trip for the run, one for all its texts. */
import { must, planNextStale, toRunItem, toSummary } from "@lossless/core/adapter";
import type { ItemPoint, Row, RunItem, RunRow, StaleSummary } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import { PlanReads } from "./plan-reads.ts";
import { answerNow } from "./plans.ts";
import { restoreAll } from "./read.ts";
import type { StoreContext } from "./store-context.ts";

const MESSAGES =
  "SELECT message_id, body, encoding, arrival_bytes FROM messages WHERE message_id = ANY($1::bigint[])";
const SUMMARIES = "SELECT * FROM summaries WHERE summary_id = ANY($1::text[])";
const ANY_STALE = `
  SELECT 1 AS found FROM summaries WHERE conversation_id = $1 AND state = 'cover' AND stale = 1 LIMIT 1`;

export async function readRun(
  { sql, files }: StoreContext,
  conversationId: number,
  keys: readonly ItemPoint[],
  withTexts = true,
): Promise<RunItem[]> {
  const first = keys[0];
  const last = keys.at(-1);
  if (!first || !last) return [];
  return sql.read(async (own) => {
    const rows = await new PlanReads(own, files, false).run(conversationId, first, last);
    return toRunItems(files, own, rows, withTexts);
  });
}

export const readSources = ({ sql, files }: StoreContext, summaryId: string): Promise<RunItem[]> =>
  sql.read(async (own) => {
    const rows = await new PlanReads(own, files, false).currentSources(summaryId);
    return toRunItems(files, own, rows);
  });

export async function hasStale({ sql }: StoreContext, conversationId: number): Promise<boolean> {
  return (await sql.get(ANY_STALE, conversationId)) !== undefined;
}

/** The next summaries to remake; the rules are in `archive/remake.ts`. */
export const readStale = (context: StoreContext, conversationId: number): Promise<StaleSummary | null> =>
  context.sql.read(async (own) => {
    const next = await answerNow(context, own, planNextStale(conversationId));
    if (next === null) return null;
    const [[stale], run] = await Promise.all([
      own.all<Row<"summaries">>(SUMMARIES, [next.summaryId]),
      toRunItems(context.files, own, next.sources),
    ]);
    return { summary: toSummary(must(stale, "a stale summary")), run };
  });

async function toRunItems(
  files: StoreContext["files"],
  sql: Sql,
  rows: readonly RunRow[],
  withTexts = true,
): Promise<RunItem[]> {
  const isRead = (row: RunRow): boolean => withTexts && row.hidden === 0;
  const [texts, summaries] = await Promise.all([
    readTexts(
      files,
      sql,
      rows.filter(isRead).flatMap((row) => row.version_id ?? []),
    ),
    readSummaries(
      sql,
      rows.flatMap((row) => row.summary_id ?? []),
    ),
  ]);
  return rows.map((row) =>
    toRunItem(row, {
      bytes: row.version_id === null || !isRead(row) ? null : (texts.get(row.version_id) ?? null),
      summary: row.summary_id === null ? null : must(summaries.get(row.summary_id), "a summary"),
    }),
  );
}

async function readTexts(
  files: StoreContext["files"],
  sql: Sql,
  messageIds: readonly number[],
): Promise<ReadonlyMap<number, Uint8Array>> {
  if (messageIds.length === 0) return new Map();
  const rows = await sql.all<Parameters<typeof restoreAll>[2][number]>(MESSAGES, [...messageIds]);
  const bytes = await restoreAll(files, sql, rows);
  return new Map(rows.map((row, at) => [row.message_id, must(bytes[at], "a body")]));
}

async function readSummaries(
  sql: Sql,
  summaryIds: readonly string[],
): Promise<ReadonlyMap<string, ReturnType<typeof toSummary>>> {
  if (summaryIds.length === 0) return new Map();
  const rows = await sql.all<Row<"summaries">>(SUMMARIES, [...summaryIds]);
  return new Map(rows.map((row) => [row.summary_id, toSummary(row)]));
}
