/**
 * Measures how long our code blocks the host's thread: `node packages/openclaw/live/thread-hold.ts`. Makes the calls of a host on a long
 * transcript with the engine in its own thread, as in the host, and prints the longest time the event loop was blocked during each kind of call.
 * Goal: 20 ms, on an otherwise idle machine: the load is printed with the figures.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { resolveSettings } from "@lossless/core";
import { leaseEngine } from "../src/host/shared-engine.ts";
import { makeEngine } from "../test/engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "../test/fake-transcript.ts";

const ROWS = 5_000;
const TURNS = 30;
const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };

const folder = mkdtempSync(join(tmpdir(), "lossless-hold-"));
const { settings } = resolveSettings({ config: {}, configSource: "bench", stateDir: folder });
const lease = leaseEngine({
  settings,
  workerUrl: new URL("../../lossless-claw/src/worker.ts", import.meta.url),
  onEvent: () => undefined,
});
const transcript = new FakeTranscript();
transcript.pageSize = 200;
const words = "the crane at the harbour was moved to the second pier before noon ".repeat(12);
for (let row = 0; row < ROWS; row++) transcript.say(row % 2 === 0 ? "user" : "assistant", `${row} ${words}`);
const engine = makeEngine({ settings, folder, open: () => lease.open(), transcript, memory: lease.memory });

console.log(
  `load of the machine: ${loadavg()
    .map((load) => load.toFixed(1))
    .join(", ")} on ${cpus().length} cores`,
);
try {
  // Loading modules and starting threads belongs to the host's start, not to a turn.
  await lease.open();
  await report(`bootstrap of ${ROWS} rows`, async () => {
    await engine.bootstrap(session);
    // The older rows follow in the background; that is measured too.
    while (lease.memory.importing.size > 0) await setTimeout(1);
  });
  await report(`${TURNS} turns: assemble, commit, maintain`, async () => {
    for (let turn = 0; turn < TURNS; turn++) await playTurn(turn);
  });
} finally {
  await lease.release();
  rmSync(folder, { recursive: true, force: true });
}

async function playTurn(turn: number): Promise<void> {
  await engine.bootstrap(session);
  await engine.assemble({
    ...session,
    messages: [],
    tokenBudget: 60_000,
    prompt: `where is the crane, ${turn}?`,
  });
  const first = transcript.say("user", `where is the crane, ${turn}?`);
  const last = transcript.say("assistant", `at the second pier. ${words}`);
  await engine.commitTurn(transcript.turn(first, last));
  await engine.maintain({ ...session, runtimeContext: { allowDeferredCompactionExecution: true } });
}

async function report(name: string, run: () => Promise<void>): Promise<void> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedAt = performance.now();
  await run();
  await setTimeout(5);
  delay.disable();
  const tookMs = performance.now() - startedAt;
  const [longest, most] = [delay.max, delay.percentile(99)].map((ns) => (ns / 1e6).toFixed(1));
  console.log(
    `${name}: ${(tookMs / 1000).toFixed(1)} s, thread held at most ${longest} ms (99 %: ${most} ms)`,
  );
}
