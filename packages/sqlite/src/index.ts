/** An archive in a SQLite file: the engine's store port on `node:sqlite`, which no other part of the engine imports. */
export { claimAlone } from "./claim-alone.ts";
export { SqliteStore } from "./sqlite-store.ts";
export type { SqliteStoreOptions } from "./sqlite-store.ts";
