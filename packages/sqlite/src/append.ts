/** Storing events. Long work is done before taking the lock, for events that look new; the rules are in `archive/append.ts`. */
import { planAppend, planFindNew } from "@lossless/core/adapter";
import type { AppendPlanResult } from "@lossless/core/adapter";
import type { AppendBatch, AppendEvent, AppendResult, Plan, PreparedMessage } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import { readPlan, writePlan } from "./plans.ts";

/** A turn is nearly always new: checking first costs more than the occasional wasted prepare. */
const FEW_EVENTS = 16;

export function append(context: StoreContext, batch: AppendBatch): AppendResult {
  const prepared = new Map<AppendEvent, PreparedMessage>();
  const prepare = (events: readonly AppendEvent[]): void => {
    for (const event of events) if (!prepared.has(event)) prepared.set(event, event.prepare());
  };
  prepare(findNew(context, batch));
  let isRepeated = false;
  const plan = (): Plan<AppendPlanResult> => {
    if (isRepeated) prepare(batch.events);
    isRepeated = true;
    const events = batch.events.map((event) => ({ event, prepared: prepared.get(event) ?? null }));
    return planAppend({ ...batch, events, derive: context.derive });
  };
  const result = writePlan(context, plan);
  return { ...result, indexProblem: result.duplicateTurn ? null : context.index.notedProblem() };
}

/** The events to prepare now: those that look new, and those that are already prepared. */
function findNew(context: StoreContext, batch: AppendBatch): readonly AppendEvent[] {
  const events = batch.events.filter((event) => !event.isPrepared);
  if (events.length <= FEW_EVENTS) return batch.events;
  const isNew = new Set(readPlan(context, () => planFindNew({ ...batch, events })));
  return batch.events.filter((event) => event.isPrepared || isNew.has(event));
}
