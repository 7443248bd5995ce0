/** An archive in a SQLite file: the store port of the engine on `node:sqlite`, which no other part of the engine imports. */
export { claimAlone } from "./claim-alone.ts";
export { SqliteStore } from "./sqlite-store.ts";
export type { SqliteStoreOptions } from "./sqlite-store.ts";
