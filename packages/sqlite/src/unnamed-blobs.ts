/**
 * Removes large files that no row names. Only inside a write transaction, while nobody can store one of them: otherwise another program
 * could find the file, keep it, and name it in a row just before it is removed.
 */
import type { Blobs } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";

const HAS_BLOB = "SELECT 1 FROM large_files WHERE storage_path = ?";

/** The names of those that were removed. */
export const removeUnnamed = (connection: Connection, blobs: Blobs, names: Iterable<string>): string[] =>
  [...names].filter((name) => !connection.get(HAS_BLOB, name) && blobs.remove(name));
