/** What folding owes and costs: compaction debt, model calls, guards that outlive a restart, and reported cache usage. */
import { must, toDebt } from "@lossless/core/adapter";
import type { Debt, Guard, Row, SpendGroup, SpendRecord } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import { PlanReads } from "./plan-reads.ts";

const ADD_DEBT = `
  INSERT INTO compaction_debt (conversation_id, reason, budget_tokens, requested_at, next_attempt_at) VALUES (?1, 'threshold', ?2, ?3, ?3)
  ON CONFLICT DO UPDATE SET reason = excluded.reason, budget_tokens = excluded.budget_tokens`;
const SELECT_DEBT = "SELECT * FROM compaction_debt WHERE conversation_id = ? AND reason = 'threshold'";
const DUE_DEBT = `
  SELECT * FROM compaction_debt
  WHERE reason = 'threshold' AND (?1 IS NULL OR conversation_id = ?1) AND (?4 = 1 OR next_attempt_at <= ?2)
    AND (lease_until IS NULL OR lease_until <= ?2 OR lease_holder = ?3)
  ORDER BY requested_at LIMIT 1`;
/** Upkeep borrows the row, so that there is one lease for all work on a conversation; nothing is owed by it. */
const CLAIM_UPKEEP = `
  INSERT INTO compaction_debt (conversation_id, reason, budget_tokens, requested_at, next_attempt_at, lease_holder, lease_until)
  VALUES (?1, 'upkeep', 0, ?3, ?3, ?2, ?4)
  ON CONFLICT DO UPDATE SET lease_holder = excluded.lease_holder, lease_until = excluded.lease_until
  WHERE lease_until IS NULL OR lease_until <= ?3 OR lease_holder = ?2`;
const END_UPKEEP =
  "DELETE FROM compaction_debt WHERE conversation_id = ? AND lease_holder = ? AND reason = 'upkeep'";
const END_LEASE = `
  UPDATE compaction_debt SET lease_holder = NULL, lease_until = NULL WHERE conversation_id = ? AND lease_holder = ?`;
const LEASE_DEBT =
  "UPDATE compaction_debt SET lease_holder = ?, lease_until = ?, attempts = attempts + 1 WHERE conversation_id = ?";
const RENEW_DEBT =
  "UPDATE compaction_debt SET lease_until = ? WHERE conversation_id = ? AND lease_holder = ?";
const PAY_DEBT = "DELETE FROM compaction_debt WHERE conversation_id = ? AND lease_holder = ?";
const POSTPONE_DEBT = `
  UPDATE compaction_debt SET lease_holder = NULL, lease_until = NULL, last_failure = ?, next_attempt_at = ?
  WHERE conversation_id = ? AND lease_holder = ?`;
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
/** Embedding takes many small calls; they have a cap in tokens and must not use up the calls of the summariser. */
const COUNT_CALLS = "SELECT count(*) AS n FROM spend WHERE at >= ? AND purpose <> 'embed'";
const SELECT_GUARDS = "SELECT name, failures, open_until, reason FROM guards ORDER BY name";
const SAVE_GUARD = `
  INSERT INTO guards (name, failures, open_until, reason) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET failures = excluded.failures, open_until = excluded.open_until, reason = excluded.reason`;
const SELECT_CACHE_USAGE =
  "SELECT requests, prompt_tokens, cached_tokens FROM cache_usage WHERE conversation_id = ?";

export function addDebt(
  { connection }: StoreContext,
  debt: { conversationId: number; budgetTokens: number; now: number },
): void {
  connection.write(() => connection.run(ADD_DEBT, debt.conversationId, debt.budgetTokens, debt.now));
}

export function readDebt({ connection }: StoreContext, conversationId: number): Debt | null {
  const row = connection.get<DebtRow>(SELECT_DEBT, conversationId);
  return row ? toDebt(row) : null;
}

export function claimDebt(
  { connection }: StoreContext,
  request: { conversationId: number | null; holder: string; now: number; leaseMs: number; force?: boolean },
): Debt | null {
  const { conversationId, holder, now, leaseMs } = request;
  return connection.write(() => {
    const row = connection.get<DebtRow>(DUE_DEBT, conversationId, now, holder, request.force ? 1 : 0);
    if (!row) return null;
    connection.run(LEASE_DEBT, holder, now + leaseMs, row.conversation_id);
    return toDebt(must(connection.get<DebtRow>(SELECT_DEBT, row.conversation_id), "the debt"));
  });
}

export function renewDebt(
  { connection }: StoreContext,
  request: { conversationId: number; holder: string; until: number },
): boolean {
  return connection.write(
    () => connection.change(RENEW_DEBT, request.until, request.conversationId, request.holder) > 0,
  );
}

export function claimUpkeep(
  { connection }: StoreContext,
  request: { conversationId: number; holder: string; now: number; leaseMs: number },
): boolean {
  const { conversationId, holder, now, leaseMs } = request;
  return connection.write(
    () => connection.change(CLAIM_UPKEEP, conversationId, holder, now, now + leaseMs) > 0,
  );
}

export function releaseUpkeep(
  { connection }: StoreContext,
  request: { conversationId: number; holder: string },
): void {
  const { conversationId, holder } = request;
  connection.write(() => {
    connection.run(END_UPKEEP, conversationId, holder);
    connection.run(END_LEASE, conversationId, holder);
  });
}

export function settleDebt(
  { connection }: StoreContext,
  request: {
    conversationId: number;
    holder: string;
    now: number;
    failure: string | null;
    retryAt: number | null;
  },
): void {
  const { conversationId, holder, failure, retryAt } = request;
  connection.write(() => {
    if (failure === null) connection.run(PAY_DEBT, conversationId, holder);
    else connection.run(POSTPONE_DEBT, failure, retryAt ?? request.now, conversationId, holder);
  });
}

type DebtRow = Row<"compaction_debt">;

export function recordSpend({ connection }: StoreContext, record: SpendRecord): void {
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
  return connection.get<{ n: number }>(COUNT_CALLS, since)?.n ?? 0;
}

export function readGuards({ connection }: StoreContext): Guard[] {
  return connection
    .all<{ name: string; failures: number; open_until: number; reason: string }>(SELECT_GUARDS)
    .map(({ name, failures, open_until: openUntil, reason }) => ({ name, failures, openUntil, reason }));
}

export function saveGuard({ connection }: StoreContext, guard: Guard): void {
  connection.write(() =>
    connection.run(SAVE_GUARD, guard.name, guard.failures, guard.openUntil, guard.reason),
  );
}

export function readCacheUsage(
  { connection }: StoreContext,
  conversationId: number,
): { requests: number; promptTokens: number; cachedTokens: number } | null {
  const row = connection.get<{ requests: number; prompt_tokens: number; cached_tokens: number }>(
    SELECT_CACHE_USAGE,
    conversationId,
  );
  return row
    ? { requests: row.requests, promptTokens: row.prompt_tokens, cachedTokens: row.cached_tokens }
    : null;
}

/** What is known of how a model counts tokens; null for one nobody has reported on. */
export function readCalibration(
  { connection }: StoreContext,
  model: string,
): { factor: number; samples: number } | null {
  const [row] = new PlanReads(connection).calibrations([model]);
  return row ? { factor: row.factor, samples: row.samples } : null;
}
