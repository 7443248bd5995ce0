/**
 * A process of a simulation: an engine on the archive that its orders name, which does what its parent calls, and kills itself at the moment
 * that the parent has drawn.
 */
import { makeRandom } from "@lossless/testkit";
import { openStore } from "lossless-claw";

import { EngineError } from "../../src/index.ts";
import type { Engine } from "../../src/index.ts";
import { deriveMessage } from "../../src/ingest/prepare.ts";
import { openSimulatedEngine } from "./simulated-process.ts";
import type { RealOrders, SentAnswer, SentCall } from "./simulated-process.ts";

let fuse: number | null = null;
let skewMs = 0;

function burn(): void {
  if (fuse !== null && --fuse <= 0) process.kill(process.pid, "SIGKILL");
}

async function open(orders: RealOrders): Promise<Engine> {
  const { address, filesDir } = orders.location;
  const store = await openStore(address, { readOnly: false, create: true, derive: deriveMessage, filesDir });
  const random = makeRandom(orders.seed + 2 + 1_000 * orders.number);
  return openSimulatedEngine(store, orders, { burn, random, skewMs: () => skewMs });
}

const engine = open(JSON.parse(process.argv[2] ?? "{}") as RealOrders);

async function answer({ id, skewMs: skew, asked }: SentCall): Promise<SentAnswer> {
  // Opening burns nothing.
  const opened = await engine;
  skewMs = skew;
  try {
    if (asked.kind === "call") {
      const run = opened[asked.verb as keyof Engine] as (request: unknown) => Promise<unknown>;
      return { id, result: await run(asked.request) };
    }
    fuse = asked.fuse;
    return { id };
  } catch (error) {
    const code = error instanceof EngineError ? { code: error.code } : {};
    return { id, error: error instanceof Error ? error : new Error(String(error)), ...code };
  }
}

process.on("message", (call: SentCall) => void answer(call).then((told) => process.send?.(told)));
process.on("disconnect", () => process.exit(0));
