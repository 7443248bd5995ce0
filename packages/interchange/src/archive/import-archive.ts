/**
 * Reads an archive (`.lcmx`, `.lcmx.zst`) into a store. A conversation that already exists is compared row by row: equal rows add nothing, rows
 * after them are added. A conversation that differs, or whose sessions are stored elsewhere, is left alone and reported.
 *
 * Invariant: all or nothing. Imported rows are proven with the checks of `verify` before they are committed; until then nobody sees them, and a
 * refused file or a killed import leaves nothing behind. Other programs continue meanwhile: they wait only for the short transaction at the end.
 */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { createZstdDecompress } from "node:zlib";

import { EngineError } from "@lossless/core";
import { findNameProblem } from "@lossless/core/formats";
import type { Store } from "@lossless/core/ports";

import { ARCHIVE_VERSION, parseRecord, type ArchiveRecord } from "./archive-records.ts";
import { ArchiveIntake, describeFailure, refuse } from "./archive-intake.ts";
import type { ArchiveImportResult, IntakeOptions, StoredAlready } from "./archive-intake.ts";
import { findStored } from "./compare-archive.ts";
import type { ImportProgress } from "../transcript/import-result.ts";
import { createAbortError } from "../transcript/lines.ts";

/** The maximum length of one message; base64 adds a third. */
const MAX_RECORD_BYTES = 160 * 1024 * 1024;
const ZSTD_MAGIC = 0xfd2fb528;

export interface ArchiveImportOptions extends IntakeOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
}

/** True for a file that begins like an archive. */
export async function isArchive(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(64);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    if (bytesRead >= 4 && head.readUInt32LE(0) === ZSTD_MAGIC) return true;
    return head.toString("utf8", 0, bytesRead).startsWith('{"record":"lcmx"');
  } finally {
    await file.close();
  }
}

export async function importArchive(
  store: Pick<Store, "bringIn" | "withSnapshot">,
  options: ArchiveImportOptions,
): Promise<ArchiveImportResult> {
  const ownerProblem = options.owner === undefined ? null : findNameProblem(options.owner);
  if (ownerProblem !== null)
    throw new EngineError("invalid_input", `cannot import ${options.path}: its owner ${ownerProblem}`);
  const stored = await compareFirst(store, options);
  return store.bringIn(async (into) => {
    const run = new ArchiveIntake(into, options, new Map(), stored);
    try {
      for await (const { record, lineNumber } of readArchive(options)) await run.take(record, lineNumber);
      await run.prove();
    } catch (error) {
      throw describeFailure(error, options.path);
    }
    return run.finish((await stat(options.path)).size);
  }, REPEATABLE);
}

/** Returns nothing for a file that cannot be read: the import reports why. */
async function compareFirst(
  store: Pick<Store, "withSnapshot">,
  options: ArchiveImportOptions,
): Promise<ReadonlyMap<number, StoredAlready>> {
  const { signal } = options;
  try {
    return await store.withSnapshot((snapshot) => findStored(snapshot, readArchive(options), options));
  } catch (error) {
    if (signal?.aborted) throw error;
    return new Map();
  }
}

/** The file is read again from its beginning. */
const REPEATABLE = { isRepeatable: true } as const;

interface NumberedRecord {
  readonly record: ArchiveRecord;
  readonly lineNumber: number;
}

/** The records of a file, with its end proven. */
async function* readArchive(options: ArchiveImportOptions): AsyncGenerator<NumberedRecord> {
  const { path, signal, onProgress } = options;
  const bytesTotal = (await stat(path)).size;
  const hash = createHash("sha256");
  const source = createReadStream(path, { highWaterMark: 256 * 1024 });
  let lineNumber = 0;
  let hasEnd = false;
  for await (const line of splitLines(await decompress(source, path), path)) {
    if (signal?.aborted) throw createAbortError(path);
    lineNumber += 1;
    if (hasEnd) throw refuse(path, `it has content after its end, on line ${lineNumber}`);
    const record = parseRecord(line, lineNumber);
    if (lineNumber === 1) checkHeader(record, path);
    if (record.record === "end") {
      hasEnd = true;
      const isRight = record.records === lineNumber - 1 && record.sha256 === hash.digest("hex");
      if (!isRight) throw refuse(path, "its checksum does not match");
    } else hash.update(line).update("\n");
    yield { record, lineNumber };
    if (lineNumber % 256 === 0) onProgress?.({ bytesDone: source.bytesRead, bytesTotal, lines: lineNumber });
  }
  if (!hasEnd) throw refuse(path, "it is cut off: its last record is missing");
}

async function decompress(
  source: ReturnType<typeof createReadStream>,
  path: string,
): Promise<AsyncIterable<Uint8Array>> {
  const file = await open(path, "r");
  const magic = Buffer.alloc(4);
  try {
    await file.read(magic, 0, 4, 0);
  } finally {
    await file.close();
  }
  if (magic.readUInt32LE(0) !== ZSTD_MAGIC) return source;
  const decompressor = createZstdDecompress();
  source.on("error", (error) => decompressor.destroy(error));
  return readWhole(source.pipe(decompressor), path);
}

/** Rewords zlib's errors about a truncated or modified file. */
async function* readWhole(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    if (!/^(?:ZSTD_error|Z_)/.test(code)) throw error;
    throw refuse(path, `it cannot be decompressed to its end (${(error as Error).message})`);
  }
}

async function* splitLines(chunks: AsyncIterable<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let feed = chunk.indexOf(0x0a); feed !== -1; feed = chunk.indexOf(0x0a, start)) {
      yield Buffer.concat([...held, chunk.subarray(start, feed)]);
      [held, size, start] = [[], 0, feed + 1];
    }
    if (start < chunk.length) held.push(Buffer.from(chunk.subarray(start)));
    size += chunk.length - start;
    if (size > MAX_RECORD_BYTES)
      throw refuse(path, `one of its lines has more than ${MAX_RECORD_BYTES} bytes`);
  }
  if (size > 0) yield Buffer.concat(held);
}

function checkHeader(record: ArchiveRecord, path: string): void {
  if (record.record !== "lcmx") throw refuse(path, "its first line is not an archive header");
  if (record.version <= ARCHIVE_VERSION) return;
  throw new EngineError(
    "invalid_input",
    `cannot import ${path}: it is an archive of version ${record.version}, this program reads up to ${ARCHIVE_VERSION}`,
    {
      hint: "install the newer version of lossless-claw",
    },
  );
}
