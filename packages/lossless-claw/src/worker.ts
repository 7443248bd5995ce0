/** The entry file of the engine's thread: the engine of core, with its databases. */
import { serveEngine } from "@lossless/core/thread";
import { openStore } from "./open-store.ts";

await serveEngine(openStore);
