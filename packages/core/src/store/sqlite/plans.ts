/**
 * Runs plans on SQLite: questions are answered at once inside BEGIN IMMEDIATE, and the change set is written in the same transaction. A
 * transaction that is repeated, because another process held the lock, begins the plan anew.
 */
import { answerAll } from "../../archive/plan.ts";
import type { Plan } from "../../archive/plan.ts";
import type { Changes } from "../../archive/changes.ts";
import type { StoreContext } from "./context.ts";
import { PlanReads } from "./plan-reads.ts";

export function writePlan<T>(context: StoreContext, plan: () => Plan<T>): T {
  return context.connection.write(() => {
    const { value, asks } = answerAll(plan(), new PlanReads(context.connection));
    applyChanges(context, value.changes);
    context.onPlan?.(asks);
    return value.result;
  });
}

/** Inside the caller's transaction. */
export function applyChanges({ connection, index }: StoreContext, changes: Changes): void {
  connection.writeChanges(changes);
  for (const { kind: _, ...summary } of changes.index) index.addSummary(summary);
}
