/** The engine's worker, which first writes down how long it was told to wait for a lock. */
import { appendFileSync } from "node:fs";
import { workerData } from "node:worker_threads";

const { store } = workerData as { store: { path: string; busyLimitMs?: number } };
appendFileSync(`${store.path}.limits`, `${store.busyLimitMs}\n`);
await import(new URL("../../core/src/engine/worker.ts", import.meta.url).href);
