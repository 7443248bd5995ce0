/** Storing events. Long work on events that look new is done before the lock is taken; the rules are in `archive/append.ts`. */
import { planAppend, planFindNew } from "@lossless/core/adapter";
import type { AppendBatch, AppendEvent, AppendResult, PreparedMessage } from "@lossless/core/ports";
import { readPlan, writePlan } from "./plans.ts";
import type { StoreContext } from "./store-context.ts";

/** A turn is nearly always new: checking first costs a round trip, more than the occasional wasted prepare. */
const FEW_EVENTS = 16;

export async function append(context: StoreContext, batch: AppendBatch): Promise<AppendResult> {
  const prepared = new Map<AppendEvent, PreparedMessage>();
  const prepare = (events: readonly AppendEvent[]): void => {
    for (const event of events) if (!prepared.has(event)) prepared.set(event, event.prepare());
  };
  prepare(await findNew(context, batch));
  let isRepeated = false;
  const result = await writePlan(context, () => {
    if (isRepeated) prepare(batch.events);
    isRepeated = true;
    const events = batch.events.map((event) => ({ event, prepared: prepared.get(event) ?? null }));
    return planAppend({ ...batch, events, derive: context.derive });
  });
  // The index is notified by a pending row: that cannot fail unless the whole transaction does.
  return { ...result, indexProblem: null };
}

/** The events to prepare now: those that look new, and those already prepared. */
async function findNew(context: StoreContext, batch: AppendBatch): Promise<readonly AppendEvent[]> {
  const events = batch.events.filter((event) => !event.isPrepared);
  if (events.length <= FEW_EVENTS) return batch.events;
  const isNew = new Set(await readPlan(context, () => planFindNew({ ...batch, events })));
  return batch.events.filter((event) => event.isPrepared || isNew.has(event));
}
