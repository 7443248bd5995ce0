/** An archive in a PostgreSQL database: the store port of the engine on `pg`, which no other part of the engine imports. */
export { openPostgresStore } from "./postgres-store.ts";
export type { PostgresStore, PostgresStoreOptions } from "./postgres-store.ts";
export { addRole, listRoles, removeRole } from "./roles.ts";
