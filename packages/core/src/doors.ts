/**
 * What the programs in front of the engine share (command line, terminal, web, plugin), so that none writes it again: files that survive
 * a crash, the nearest known word, days of a time zone, keys. Small, and quick to load.
 */

// Files
export { openVault } from "./ingest/vault.ts";
export { writeNewFile } from "./maintain/new-file.ts";
export { serializeExact } from "./message/json-text.ts";
export { toWriteError } from "./model/errors.ts";
export { flushPath } from "./store/flush-path.ts";
export { withFileLock } from "./store/sqlite/file-lock.ts";
export { needsAdoption, removeLeftovers } from "./transfer/documented/need.ts";

// Threads
export { deserializeError, serializeError } from "./engine/thread-messages.ts";
export type { SerializedError } from "./engine/thread-messages.ts";

// Words
export { findNearest } from "./model/nearest.ts";
export { isObject } from "./model/setting-types.ts";
export { findDay } from "./summarize/time-of-day.ts";
