/**
 * Where an import stopped: an optimisation for the next one, never authoritative. It is saved in the transaction of the lines before it and used
 * only after the file's bytes up to it have been hashed and found unchanged.
 */
import { isObject } from "@lossless/core/formats";

import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

import type { TreeEnd } from "./branch.ts";
import type { FormatName } from "../formats/names.ts";
import { readChunks } from "./lines.ts";

const VERSION = 1;

export interface ImportCursor {
  readonly offset: number;
  /** Lines before the offset. */
  readonly lines: number;
  /** Lines that were in the file before and are gone, by rotation or by a cut: positions count them too. */
  readonly removedLines?: number;
  /** Of the file's bytes before the offset. */
  readonly sha256: string;
  readonly end: TreeEnd | null;
  /** False while stored lines wait for `setBranch`. */
  readonly isSettled: boolean;
  /** The event id of the stored line that starts at the offset and had no line feed yet. */
  readonly openEventId: string | null;
  /** Time of the last line that had one, for lines without. */
  readonly lastTime: number | null;
  /** Of the best title that the lines before the offset say; cursors of earlier versions have none. */
  readonly titleRank?: number | undefined;
}

/** The cursor of an unread file. */
export const START: ImportCursor = {
  offset: 0,
  lines: 0,
  sha256: createHash("sha256").digest("hex"),
  end: null,
  isSettled: true,
  openEventId: null,
  lastTime: null,
};

/** The meaning of the text stored for a session. */
export type StoredCursor =
  | { readonly kind: "none" }
  /** A live host reads this session and keeps its own cursor; an import must not move it. */
  | { readonly kind: "foreign" }
  /** `cursor` is `null` when another version of this program wrote it. */
  | ({
      readonly kind: "import";
      readonly format: string;
      readonly cursor: ImportCursor | null;
    } & SessionTraces);

/** What a session records about the files it came from. */
export interface SessionTraces {
  /** Maps the hash of an absolute path to the hash of the file's first line: plain paths reveal too much about a machine to be exported. */
  readonly files: Readonly<Record<string, string>>;
  /** Set on a stand-in once a line has named the session: the id of that session, which has everything now. */
  readonly relabelledTo: string | null;
  /** Maps an event id to the hash of a line as rotation wrote it: the stored line with another parent, because its own was removed. */
  readonly relinked: Readonly<Record<string, string>>;
}

export const NO_TRACES: SessionTraces = { files: {}, relabelledTo: null, relinked: {} };

export const hashLine = (line: Uint8Array | string): string =>
  createHash("sha256").update(line).digest("hex");

export function parseCursor(text: string | null): StoredCursor {
  if (text === null || text === "") return { kind: "none" };
  const value = parseJson(text);
  if (!isObject(value) || typeof value["import"] !== "string") return { kind: "foreign" };
  const cursor = value["version"] === VERSION ? (value["cursor"] as ImportCursor) : null;
  const { files, relabelledTo, relinked } = value;
  return {
    kind: "import",
    format: value["import"],
    cursor,
    files: isObject(files) ? (files as Record<string, string>) : {},
    relabelledTo: typeof relabelledTo === "string" ? relabelledTo : null,
    relinked: isObject(relinked) ? (relinked as Record<string, string>) : {},
  };
}

export function renderCursor(
  format: FormatName,
  cursor: ImportCursor | null,
  { files, relabelledTo, relinked }: SessionTraces = NO_TRACES,
): string {
  return JSON.stringify({
    import: format,
    version: VERSION,
    cursor,
    ...(Object.keys(files).length === 0 ? {} : { files }),
    relabelledTo: relabelledTo ?? undefined,
    ...(Object.keys(relinked).length === 0 ? {} : { relinked }),
  });
}

/** The running hash of the file up to the cursor, or `null` when those bytes differ from the ones the cursor was made from. */
export async function proveCursor(
  file: FileHandle,
  cursor: ImportCursor,
  source: { path: string; end: number; signal?: AbortSignal | undefined },
): Promise<Hash | null> {
  if (cursor.offset > source.end) return null;
  const hash = createHash("sha256");
  for await (const chunk of readChunks(file, { ...source, end: cursor.offset })) hash.update(chunk);
  return hash.copy().digest("hex") === cursor.sha256 ? hash : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
