/** A lock between processes that ends with its holder, for files that are not databases. */
export { withFileLock } from "@lossless/sqlite/file-lock";
