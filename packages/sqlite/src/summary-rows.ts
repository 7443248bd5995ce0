/** Writing a summary that is transplanted. What is made here comes from plans. */
import { addSummary, Changes, describeMoved } from "@lossless/core/adapter";
import type { StoreContext } from "./context.ts";
import { applyChanges } from "./plans.ts";

/** Inside the caller's transaction. Sources in order: messages by their number in this database, summaries by their id. */
export function writeSummary(
  context: StoreContext,
  facts: Parameters<typeof describeMoved>[0],
  sources: readonly (number | string)[],
): void {
  const changes = new Changes();
  addSummary(changes, describeMoved(facts), sources);
  applyChanges(context, changes);
}
