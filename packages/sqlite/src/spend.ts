/** What models cost: each call, and sums of them. */
import { UNCAPPED_PURPOSE } from "@lossless/core/adapter";
import type { SpendGroup, SpendRecord } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const INSERT_SPEND = `
  INSERT INTO spend (at, conversation_id, purpose, provider, model, input_tokens, output_tokens, duration_ms, outcome)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SPEND_KEYS = {
  day: "date((at + ?2) / 1000, 'unixepoch')",
  conversation: "coalesce(cast(conversation_id AS TEXT), '-')",
  model: "provider || '/' || model",
  purpose: "purpose",
  all: "'all'",
} as const;
/** Embedding takes many small calls; they have a cap in tokens and must not use up the summariser's calls. */
const COUNT_CALLS = "SELECT count(*) AS n FROM spend WHERE at >= ? AND purpose <> ?";
export function recordSpend({ connection }: Pick<StoreContext, "connection">, record: SpendRecord): void {
  const { at, conversationId, purpose, provider, model, inputTokens, outputTokens, durationMs, outcome } =
    record;
  connection.write(() =>
    connection.run(
      INSERT_SPEND,
      at,
      conversationId,
      purpose,
      provider,
      model,
      inputTokens,
      outputTokens,
      durationMs,
      outcome,
    ),
  );
}

export function sumSpend(
  { connection }: StoreContext,
  request: { since: number; by: keyof typeof SPEND_KEYS; timeZoneOffsetMs?: number },
): SpendGroup[] {
  const sql = `
    SELECT ${SPEND_KEYS[request.by]} AS key, count(*) AS calls, sum(input_tokens) AS input, sum(output_tokens) AS output
    FROM spend WHERE at >= ?1 AND ?2 IS NOT NULL GROUP BY key ORDER BY key`;
  return connection
    .all<{ key: string; calls: number; input: number; output: number }>(
      sql,
      request.since,
      request.timeZoneOffsetMs ?? 0,
    )
    .map(({ key, calls, input, output }) => ({ key, calls, inputTokens: input, outputTokens: output }));
}

export function countSpendCalls({ connection }: StoreContext, since: number): number {
  return connection.get<{ n: number }>(COUNT_CALLS, since, UNCAPPED_PURPOSE)?.n ?? 0;
}
