/**
 * The entry point of the import fast path: messages are prepared on the importing thread and passed to the engine's thread in columns. The
 * engine appends them by the same rules as any other message, into the same rows. Other folders import only this file.
 */
export { createPreparer } from "./prepare-ahead.ts";
export type { BatchPreparer, PrepareAhead } from "./prepare-ahead.ts";
export { listBuffers, PreparedBatch } from "./prepared-batch.ts";
export type { PackedPrepared } from "./prepared-batch.ts";
