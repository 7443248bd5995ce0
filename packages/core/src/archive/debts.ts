/**
 * Folding debt, and who works on a conversation. One row has both: the debt, and the lease under which one process at a time folds. Upkeep
 * uses the same row for its lease, without a debt.
 *
 * Invariant: nobody gets a lease while another process holds one that has not ended. The head of the conversation is locked first, so that
 * of two concurrent requests one waits for what the other writes.
 */
import type { Debt, FoldingStore } from "../store/folding.ts";
import { Changes } from "./changes.ts";
import { toDebt } from "./nouns.ts";
import { Pages, readRows } from "./pages.ts";
import { read } from "./plan.ts";
import type { Asking, Plan } from "./plan.ts";
import { tables } from "./tables.ts";
import type { Row } from "./tables.ts";

type DebtRow = Row<"compaction_debt">;
type Request<V extends keyof FoldingStore> = Parameters<FoldingStore[V]>[0];

const COLUMNS = Object.keys(tables.compaction_debt.columns) as (keyof DebtRow)[];
const OWED = "threshold";
const UPKEEP = "upkeep";

function* readDebtOf(conversationId: number): Asking<DebtRow | null> {
  const by = { column: "conversation_id", keys: [conversationId] } as const;
  return (yield* readRows("compaction_debt", COLUMNS, by))[0] ?? null;
}

function* lockDebtOf(conversationId: number, onlyFree = false): Asking<DebtRow | null> {
  const [head] = yield* read.lockHeads([conversationId], onlyFree);
  return head || !onlyFree ? yield* readDebtOf(conversationId) : null;
}

/** Nobody takes a lease for so long: the clock was set back since, and whoever holds it may be gone. */
const LONGEST_LEASE_MS = 24 * 3_600_000;

/** Whether this holder may have a lease. */
export const isLeaseFree = (
  { lease_holder, lease_until }: Pick<DebtRow, "lease_holder" | "lease_until">,
  holder: string,
  now: number,
): boolean =>
  lease_until === null ||
  lease_until <= now ||
  lease_until > now + LONGEST_LEASE_MS ||
  lease_holder === holder;

export function* planReadDebt(conversationId: number): Asking<Debt | null> {
  const row = yield* readDebtOf(conversationId);
  return row?.reason === OWED ? toDebt(row) : null;
}

export function* planAddDebt({ conversationId, budgetTokens, now }: Request<"addDebt">): Plan<null> {
  const changes = new Changes();
  const known = yield* lockDebtOf(conversationId);
  const owed = { reason: OWED, budget_tokens: budgetTokens };
  if (known) changes.update("compaction_debt", { conversation_id: conversationId }, owed);
  else changes.insert("compaction_debt", { ...describe(conversationId, now), ...owed });
  return changes.done(null);
}

const describe = (conversationId: number, now: number): DebtRow => ({
  conversation_id: conversationId,
  reason: UPKEEP,
  budget_tokens: 0,
  requested_at: now,
  attempts: 0,
  next_attempt_at: now,
  lease_holder: null,
  lease_until: null,
  last_failure: null,
});

/**
 * Of the debts that are due, the oldest that nobody is working on. This waits for nobody: a conversation that is being written is skipped,
 * and found the next time.
 */
export function* planClaimDebt(request: Request<"claimDebt">): Plan<Debt | null> {
  const { conversationId, holder, now, leaseMs, force = false } = request;
  const changes = new Changes();
  const isDue = (row: DebtRow): boolean =>
    row.reason === OWED && (force || row.next_attempt_at <= now) && isLeaseFree(row, holder, now);
  for (const id of conversationId === null ? yield* listOwing(isDue) : [conversationId]) {
    const row = yield* lockDebtOf(id, conversationId === null);
    if (!row || !isDue(row)) continue;
    const lease = { lease_holder: holder, lease_until: now + leaseMs, attempts: row.attempts + 1 };
    changes.update("compaction_debt", { conversation_id: id }, lease);
    return changes.done(toDebt({ ...row, ...lease }));
  }
  return changes.done(null);
}

function* listOwing(isDue: (row: DebtRow) => boolean): Asking<number[]> {
  const pages = new Pages("compaction_debt", {
    columns: COLUMNS,
    order: ["requested_at", "conversation_id"],
    where: { reason: OWED },
  });
  const ids: number[] = [];
  for (let page; (page = yield* pages.next()).length > 0;)
    ids.push(...page.filter(isDue).map((row) => row.conversation_id));
  return ids;
}

export function* planRenewDebt({ conversationId, holder, until }: Request<"renewDebt">): Plan<boolean> {
  const changes = new Changes();
  const isHeld = (yield* lockDebtOf(conversationId))?.lease_holder === holder;
  if (isHeld) changes.update("compaction_debt", { conversation_id: conversationId }, { lease_until: until });
  return changes.done(isHeld);
}

export function* planClaimUpkeep(request: Request<"claimUpkeep">): Plan<boolean> {
  const { conversationId, holder, now, leaseMs } = request;
  const changes = new Changes();
  const known = yield* lockDebtOf(conversationId);
  if (known && !isLeaseFree(known, holder, now)) return changes.done(false);
  const lease = { lease_holder: holder, lease_until: now + leaseMs };
  if (known) changes.update("compaction_debt", { conversation_id: conversationId }, lease);
  else changes.insert("compaction_debt", { ...describe(conversationId, now), ...lease });
  return changes.done(true);
}

const FREE = { lease_holder: null, lease_until: null };

export function* planReleaseUpkeep({ conversationId, holder }: Request<"releaseUpkeep">): Plan<null> {
  const changes = new Changes();
  const known = yield* lockDebtOf(conversationId);
  const key = { conversation_id: conversationId };
  if (known?.lease_holder !== holder) return changes.done(null);
  if (known.reason === UPKEEP) changes.delete("compaction_debt", key);
  else changes.update("compaction_debt", key, FREE);
  return changes.done(null);
}

/** Paid if nothing failed; otherwise due again later. */
export function* planSettleDebt(request: Request<"settleDebt">): Plan<null> {
  const { conversationId, holder, now, failure, retryAt } = request;
  const changes = new Changes();
  const key = { conversation_id: conversationId };
  if ((yield* lockDebtOf(conversationId))?.lease_holder !== holder) return changes.done(null);
  const later = { ...FREE, last_failure: failure, next_attempt_at: retryAt ?? now };
  if (failure === null) changes.delete("compaction_debt", key);
  else changes.update("compaction_debt", key, later);
  return changes.done(null);
}

/** A conversation that has ended has no debt. */
export function* planCloseDebt(conversationId: number): Plan<boolean> {
  const changes = new Changes();
  const [head] = yield* read.lockHeads([conversationId]);
  const isOwed = (head?.archived_at ?? null) !== null && (yield* readDebtOf(conversationId)) !== null;
  if (isOwed) changes.delete("compaction_debt", { conversation_id: conversationId });
  return changes.done(isOwed);
}

/** Neither has one of which everything was forgotten. */
export function* dropVainDebts(changes: Changes, conversationIds: Iterable<number>): Asking<void> {
  const order = ["seq"] as const;
  for (const conversation_id of new Set(conversationIds)) {
    const where = { conversation_id, forgotten_at: null };
    const left = yield* new Pages("messages", { columns: order, order, where, limit: 1 }).next();
    if (left.length === 0) changes.delete("compaction_debt", { conversation_id });
  }
}
