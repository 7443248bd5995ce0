/** A lock between processes that ends with its holder, for files that are no database. */
export { withFileLock } from "@lossless/sqlite/file-lock";
