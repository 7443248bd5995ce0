/** Importing and exporting: transcripts of agents, archives, databases of other programs. */

// Finding out what a file is
export { detectFormat, isDocumentName, listTranscripts, openTranscript } from "./detect.ts";
export { holdsSessionLines } from "./import-documents.ts";

// Transcripts
export { importPaths, importTranscript } from "./import.ts";
export type { ImportReport, ImportTarget } from "./import.ts";
export { createDryTarget } from "./dry-run.ts";
export { createPreparer } from "../bulk/index.ts";
export type { PrepareAhead } from "../bulk/index.ts";

// Whole histories and archives
export { copyForTrial, detectHistory, exportConversations, importHistory } from "./move.ts";
export type { ExportRequest, HistoryKind, HistoryReport, HistoryRequest } from "./move.ts";
export type { ExportReport } from "./export-archive.ts";

// Databases of the documented schema
export { adoptDocumentedDatabase, isDocumentedDatabase } from "./documented/adopt.ts";
export type { Adoption } from "./documented/adopt.ts";
