/** The cost of models: each call, and sums. */
import { UNCAPPED_PURPOSE } from "@lossless/core/adapter";
import type { SpendGroup, SpendRecord, Store } from "@lossless/core/ports";
import { statement } from "./connection.ts";
import type { Statement } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";

const INSERT_SPEND = `
  INSERT INTO spend (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, duration_ms, outcome)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`;
/** In the order of those columns. */
const SPEND_FIELDS = [
  "at",
  "conversationId",
  "purpose",
  "provider",
  "model",
  "inputTokens",
  "outputTokens",
  "durationMs",
  "outcome",
] as const;
/** $2 is the offset of the reader's clock from UTC. */
const SPEND_KEYS = {
  day: "to_char(to_timestamp((at + $2::bigint) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
  conversation: "coalesce(conversation_id::text, '-')",
  model: "provider || '/' || model",
  purpose: "purpose",
  all: "'all'::text",
} as const;
/** Embedding makes many small calls; they have a cap in tokens and must not use up the calls of the summariser. */
const COUNT_CALLS = "SELECT count(*) AS n FROM spend WHERE at >= $1 AND purpose <> $2";
export const recordSpend = ({ sql }: StoreContext, record: SpendRecord): Promise<void> =>
  sql.write(async (own) => own.post(addSpend(record)));

export const addSpend = (record: SpendRecord): Statement =>
  statement(INSERT_SPEND, ...SPEND_FIELDS.map((field) => record[field]));

export async function sumSpend(
  { sql }: StoreContext,
  { since, by, timeZoneOffsetMs = 0 }: Parameters<Store["sumSpend"]>[0],
): Promise<SpendGroup[]> {
  const rows = await sql.all<{ key: string; calls: number; input: number; output: number }>(
    `SELECT (${SPEND_KEYS[by]}) COLLATE "C" AS key, count(*) AS calls, sum(input_tokens) AS input, sum(output_tokens) AS output
     FROM spend WHERE at >= $1 AND $2::bigint IS NOT NULL GROUP BY 1 ORDER BY 1`,
    since,
    timeZoneOffsetMs,
  );
  return rows.map((row) => ({
    key: row.key,
    calls: row.calls,
    inputTokens: row.input,
    outputTokens: row.output,
  }));
}

export async function countSpendCalls({ sql }: StoreContext, since: number): Promise<number> {
  return (await sql.get<{ n: number }>(COUNT_CALLS, since, UNCAPPED_PURPOSE))?.n ?? 0;
}
