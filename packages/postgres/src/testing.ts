/** Internals for test tools and benchmarks. No program uses them; they change without notice. */
export { BareClient } from "./bare-client.ts";
export { databaseFiles } from "./blobs.ts";
export { Connection, statement } from "./connection.ts";
export type { Sql, Statement, WriteSql } from "./connection.ts";
export { FullTextIndex } from "./full-text-index.ts";
export { IndexQueue } from "./index-queue.ts";
export { migrate, SCHEMA_VERSION } from "./migrate.ts";
export type { StoreContext } from "./store-context.ts";
export { VERBS } from "./verbs.ts";
export { renderPart } from "./write-rows.ts";
