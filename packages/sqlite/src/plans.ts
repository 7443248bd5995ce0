/**
 * Runs plans on SQLite: questions are answered directly inside BEGIN IMMEDIATE, and the change set is written in the same transaction. When
 * a transaction is retried, because another process held the lock or the plan met a conflict, the plan starts again.
 */
import { Conflict } from "@lossless/core/adapter";
import type { Asking } from "@lossless/core/adapter";
import { answerAll } from "@lossless/core/ports";
import type { Changes, Plan } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import type { IndexDocument } from "./full-text-index.ts";
import { PlanReads } from "./plan-reads.ts";

/** Nobody else writes meanwhile: a conflict comes from a guess made before taking the lock, and the guess is not repeated. */
const ATTEMPTS = 2;

export function writePlan<T>(context: StoreContext, plan: () => Plan<T>): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return context.connection.write(() => runPlan(context, plan()));
    } catch (error) {
      if (!(error instanceof Conflict) || attempt === ATTEMPTS) throw error;
    }
  }
}

function runPlan<T>(context: StoreContext, plan: Plan<T>): T {
  const apply = (changes: Changes): void => applyChanges(context, changes);
  const { connection, files, reserved } = context;
  const { value, asks } = answerAll(plan, new PlanReads(connection, files, reserved), apply);
  applyChanges(context, value.changes);
  context.onPlan?.(asks);
  return value.result;
}

const refuse = (): never => {
  throw new Error("what only reads has nothing to write");
};

/** A plan that writes nothing, in one read transaction. */
export const readPlan = <T>(context: StoreContext, plan: () => Asking<T>): T =>
  context.connection.read(() => answerNow(context, plan()));

/** Part of a plan for a verb that is not a plan: its questions are answered now, inside the caller's transaction. */
export const answerNow = <T>(
  { connection, files }: Pick<StoreContext, "connection"> & Partial<Pick<StoreContext, "files">>,
  part: Asking<T>,
): T => answerAll(part, new PlanReads(connection, files), refuse).value;

/** Inside the caller's transaction. */
function applyChanges({ connection, files, index }: StoreContext, changes: Changes): void {
  for (const { blob, content, isNew } of changes.files) {
    files.put(blob, content);
    if (isNew) connection.afterRollback(() => files.remove(blob));
  }
  connection.writeChanges(changes);
  const added: IndexDocument[] = [];
  const removed: number[] = [];
  for (const work of changes.index) {
    if (work.kind === "add-message") added.push(work);
    else if (work.kind === "remove-message") removed.push(work.messageId);
    else if (work.kind === "add-summary") index.addSummary(work);
    else index.removeSummary(work.summaryId);
  }
  index.remove(removed);
  index.add(added);
}
