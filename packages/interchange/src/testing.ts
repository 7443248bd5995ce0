/** Internals that tests of other packages need. No program uses them. */
export { exportArchive } from "./archive/export-archive.ts";
export { importArchive } from "./archive/import-archive.ts";
