/** A record of the changes to an agent's files, kept beside the database so that they can be undone. It contains the original files: private. */
import { rmSync } from "node:fs";
import { isObject, nameLocally } from "@lossless/core/formats";
import { readIfThere, replaceFile } from "./files.ts";
import type { SetupRequest } from "./hosts.ts";

/** The original content of a file, and the hash of what was written. */
export interface FileRecord {
  readonly before: string | null;
  readonly afterHash: string;
}

export interface SetupRecord {
  readonly files: Readonly<Record<string, FileRecord>>;
  /** Folders that were created. */
  readonly folders: readonly string[];
}

const NOTHING: SetupRecord = { files: {}, folders: [] };

const recordFile = ({ database, agent }: SetupRequest): string =>
  `${nameLocally(database)}.setup-${agent}.json`;

/** An unreadable record counts as none: our entries are removed anyway. */
export function readRecord(request: SetupRequest): SetupRecord {
  try {
    const record: unknown = JSON.parse(readIfThere(recordFile(request)) ?? "null");
    return isRecord(record) ? record : NOTHING;
  } catch (error) {
    if (error instanceof SyntaxError) return NOTHING;
    throw error;
  }
}

const isRecord = (value: unknown): value is SetupRecord =>
  isObject(value) &&
  isObject(value["files"]) &&
  Object.values(value["files"]).every(isFileRecord) &&
  Array.isArray(value["folders"]) &&
  value["folders"].every((folder) => typeof folder === "string");

const isFileRecord = (value: unknown): value is FileRecord =>
  isObject(value) &&
  typeof value["afterHash"] === "string" &&
  (value["before"] === null || typeof value["before"] === "string");

export const writeRecord = (request: SetupRequest, record: SetupRecord): void =>
  replaceFile(recordFile(request), JSON.stringify(record));

export const dropRecord = (request: SetupRequest): void => rmSync(recordFile(request), { force: true });
