/** The file of the engine's thread: the engine of core, with the databases it can store in. */
import { serveEngine } from "@lossless/core/thread";
import { openStore } from "./open-store.ts";

await serveEngine(openStore);
