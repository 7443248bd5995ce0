/** Opens an engine on an archive by its address, in this thread or in a worker that opens stores the same way. */
import { makeOpenEngine } from "@lossless/core/ports";
import { openStore } from "./open-store.ts";

/** Beside this file: TypeScript when run from source, JavaScript when bundled. */
const workerUrl = new URL(import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js", import.meta.url);

/**
 * Opens an engine.
 *
 * @example
 * const engine = await openEngine({ database: "/state/lcm.db" });
 */
export const openEngine = makeOpenEngine({ openStore, workerUrl });
