/** The options and the result of an import. */
import type { ImportMark, PrepareAhead } from "@lossless/core/formats";
import type { FormatName } from "../formats/names.ts";
import type { Housekeeping } from "./housekeeping.ts";
import type { SessionChoice } from "./identity.ts";
import type { ImportTarget } from "./import-target.ts";

export interface ImportProgress {
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly lines: number;
}

export interface ImportSettings extends SessionChoice {
  readonly engine: ImportTarget;
  readonly format?: FormatName | "auto" | undefined;
  readonly owner?: string | undefined;
  /** Files that are imported together share an id; generated per file when absent. */
  readonly importId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  readonly batchBytes?: number | undefined;
  readonly batchLines?: number | undefined;
  readonly maxLineBytes?: number | undefined;
  /** Prepares messages for storing, as far as that needs no database, while the previous batch is being stored; see `bulk/`. */
  readonly prepareAhead?: PrepareAhead | undefined;
}

export interface ImportOptions extends ImportSettings {
  readonly path: string;
  /** `<format>:<session id>` when absent. */
  readonly sessionKey?: string | undefined;
}

/** A running import; the rows it stores are marked with its id. */
export interface MarkedImport extends ImportOptions {
  readonly mark: ImportMark;
}

/**
 * `unreadable_line`: kept, hidden. `incomplete_line`: the last one, not stored until its writer has finished it. `refused_file`: a file found in
 * a directory that is not a transcript. `not_stored`: because of the settings. `left_out`: the caller asked for other sessions only. `conflict`:
 * the archive has something else in its place. `more_problems`: the list was cut.
 */
export type ImportProblemCode =
  | "unreadable_line"
  | "incomplete_line"
  | "refused_file"
  | "not_stored"
  | "left_out"
  | "conflict"
  | "more_problems";

export interface ImportProblem {
  readonly code: ImportProblemCode;
  readonly line: number;
  readonly message: string;
}

export interface ImportResult {
  readonly path: string;
  /** `null`, like the two ids below, when the file has no finished line yet. */
  readonly format: FormatName | null;
  readonly sessionId: string | null;
  readonly conversationId: number | null;
  /** All conversations, for a source that holds several sessions. */
  readonly conversationIds?: readonly number[];
  readonly imported: number;
  /** Lines that were already stored, whether they were read again or not. */
  readonly skipped: number;
  /** Lines whose event id was already stored with other bytes. */
  readonly revisions: number;
  readonly problems: readonly ImportProblem[];
  /** How far into the file lines are stored. */
  readonly bytes: number;
  /** Of the lines read now, those that are not messages. */
  readonly housekeeping?: Housekeeping;
}

export interface ImportSummary {
  readonly imported: number;
  readonly skipped: number;
  readonly conversations: number;
  readonly problems: readonly (ImportProblem & { readonly path: string })[];
}
