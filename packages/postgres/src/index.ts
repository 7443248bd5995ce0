/** An archive in a PostgreSQL database: the store port of the engine on `pg`, which no other part of the engine imports. */
export { Connection } from "./connection.ts";
export { migrate } from "./migrate.ts";
