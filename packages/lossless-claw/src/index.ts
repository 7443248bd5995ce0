/**
 * Public API: the engine with its databases. Everything of `@lossless/core`, and opening an engine or a store by address. Loading this file
 * loads neither an engine nor a database.
 */
export * from "@lossless/core";
export { openEngine } from "./open-engine.ts";
export { openStore } from "./open-store.ts";
