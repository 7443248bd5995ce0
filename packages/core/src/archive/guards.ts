/** Guards of models, stored so that they survive a restart. */
import type { Guard } from "../store/folding.ts";
import { Changes } from "./changes.ts";
import { readRows } from "./pages.ts";
import type { Plan } from "./plan.ts";

export function* planSaveGuard({ name, failures, openUntil, reason }: Guard): Plan<null> {
  const changes = new Changes();
  const known = yield* readRows("guards", ["name"], { column: "name", keys: [name] });
  const state = { failures, open_until: openUntil, reason };
  if (known.length > 0) changes.update("guards", { name }, state);
  else changes.insert("guards", { name, ...state });
  return changes.done(null);
}
