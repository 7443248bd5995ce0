/** The engine's worker, which first writes down how long it was told to wait for a lock. */
import { appendFileSync } from "node:fs";
import { workerData } from "node:worker_threads";

const { store } = workerData as { store: { address: string; busyLimitMs?: number } };
appendFileSync(`${store.address}.limits`, `${store.busyLimitMs}\n`);
await import(new URL("../../lossless-claw/src/worker.ts", import.meta.url).href);
