/**
 * Runs plans on PostgreSQL: one round trip for each set of reads, and one for the change set with the COMMIT. A plan that met a conflict, lost
 * against another transaction, or whose COMMIT was not answered, runs again; it recognises what it has already stored.
 */
import { Conflict } from "@lossless/core/adapter";
import type { Asking } from "@lossless/core/adapter";
import { answerLater } from "@lossless/core/ports";
import type { Changes, Plan } from "@lossless/core/ports";
import type { Sql, WriteOptions, WriteSql } from "./connection.ts";
import { PlanReads } from "./plan-reads.ts";
import { noteSealed } from "./seals.ts";
import type { StoreContext } from "./store-context.ts";
import { renderChanges } from "./write-rows.ts";

/** For a transaction around a plan that would not recognise what it has already stored. */
export const CONFLICTING: WriteOptions = { isConflict: (error) => error instanceof Conflict };

const REPEATED: WriteOptions = { ...CONFLICTING, isRepeatable: true };

export const writePlan = <T>(context: StoreContext, plan: () => Plan<T>): Promise<T> =>
  context.sql.write((sql) => runPlan(context, sql, plan()), REPEATED);

/** A plan over rows that belong to no conversation: no head is locked for them. */
export const writeAlone = <T>(context: StoreContext, plan: () => Plan<T>): Promise<T> =>
  context.sql.write((sql) => runPlan(context, sql, plan()), { ...REPEATED, isSerializable: true });

async function runPlan<T>(context: StoreContext, sql: WriteSql, plan: Plan<T>): Promise<T> {
  const apply = (changes: Changes): void => applyChanges(context, sql, changes);
  const { value, asks } = await answerLater(plan, new PlanReads(sql, context.files, true), apply);
  apply(value.changes);
  context.onPlan?.(asks);
  return value.result;
}

const refuse = (): never => {
  throw new Error("what only reads has nothing to write");
};

/** A plan that writes nothing, on one snapshot of the archive. */
export const readPlan = <T>(context: StoreContext, plan: () => Asking<T>): Promise<T> =>
  context.sql.read((sql) => answerNow(context, sql, plan()));

/** A part of a plan for a verb that is not one itself, in the transaction of the caller. */
export async function answerNow<T>(
  { files }: Pick<StoreContext, "files">,
  sql: Sql,
  part: Asking<T>,
): Promise<T> {
  return (await answerLater(part, new PlanReads(sql, files, false), refuse)).value;
}

/** Not awaited: pipelined with the next read, or with the COMMIT. */
function applyChanges({ files, index }: StoreContext, sql: WriteSql, changes: Changes): void {
  noteSealed(sql, changes);
  sql.post(...renderChanges(changes), ...index.render(changes.index));
  // After the rows: the server only lets a role store what belongs to a conversation that it sees.
  for (const { blob, content } of changes.files) files.put(sql, blob, content);
  if (changes.index.length > 0) sql.afterCommit(() => index.noteCommitted(changes.index));
}
