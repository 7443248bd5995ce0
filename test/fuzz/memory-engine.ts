/** An engine without a database, for probes: it opens at once, and proves its content by the same rules as any other. */
import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { createLocalEngine, deriveMessage } from "@lossless/core/testing";
import { openMemoryStore } from "@lossless/testkit/memory-store.ts";
import { hold } from "./target.ts";

const { settings } = resolveSettings({ env: {}, config: { databasePath: "/nowhere/lcm.db" } });

export const openMemoryEngine = (): Engine =>
  createLocalEngine({ store: openMemoryStore(deriveMessage), settings });

/** Accepted input must be proven. */
export async function prove(engine: Engine): Promise<void> {
  const { problems } = await engine.verify();
  hold(problems.length === 0, "what was accepted does not verify", problems);
}
