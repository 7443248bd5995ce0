/** Importing and exporting: transcripts of agents, archives, databases of other programs. */

// Detecting what a file is
export { detectFormat, isDocumentName, listTranscripts, openTranscript } from "./transcript/detect.ts";
export { isOpenCodeDatabase } from "./formats/opencode-database.ts";
export { holdsSessionLines } from "./transcript/import-documents.ts";

// Transcripts
export { importPaths, importTranscript } from "./transcript/import.ts";
export type { ImportResult, ImportTarget } from "./transcript/import.ts";
export type { ExcludeSession } from "./transcript/identity.ts";
export { findProject } from "./transcript/project.ts";
export { createDryTarget } from "./transcript/dry-run.ts";
export { createPreparer } from "@lossless/core/formats";
export type { PrepareAhead } from "@lossless/core/formats";

// Whole histories and archives
export {
  copyForTrial,
  detectHistory,
  exportConversations,
  importHistory,
  migrate,
  writeSnapshot,
} from "./history.ts";
export type {
  ArchiveLocation,
  ExportRequest,
  HistoryKind,
  HistoryResult,
  HistoryRequest,
  MigrateRequest,
} from "./history.ts";
export type { MigrateProgress, MigrateResult } from "./archive/migrate.ts";
export type { ExportResult } from "./archive/export-archive.ts";
export type { PageResult } from "./page/export-page.ts";

// Session files of hosts
export { rotateSessionFile } from "./transcript/rotate.ts";
export type { RotateOptions, RotateResult } from "./transcript/rotate.ts";
export { findSessionFiles, sweepSessionFiles } from "./transcript/sweep-files.ts";
export type { SweepOptions, SweepTally } from "./transcript/sweep-files.ts";

// Databases of the documented schema
export { adoptDocumentedDatabase, isDocumentedDatabase } from "./documented/adopt.ts";
export type { Adoption, AdoptOptions } from "./documented/adopt.ts";
