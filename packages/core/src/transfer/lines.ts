/**
 * Reads a file line by line from a known offset. Importers stand on it.
 *
 * A line is what lies between two line feeds, byte for byte: a carriage return stays in it, an empty line is a line, and the
 * last one may lack its line feed. Memory is bounded by one chunk and one line; a line beyond the limit is measured, never
 * held. The end is fixed when reading starts, so that a file which keeps growing is read up to a point and not chased.
 */

import type { FileHandle } from "node:fs/promises";

import { EngineError } from "../model/errors.ts";

export const MAX_LINE_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

export interface Line {
  /** The bytes of the line without its line feed, in a buffer of their own: cheap to hand to another thread. */
  readonly bytes: Uint8Array;
  /** Counted from 1. */
  readonly lineNumber: number;
  readonly offset: number;
  /** Where the next line starts: behind the line feed if there is one. */
  readonly endOffset: number;
  /** False only for a last line without a line feed: its writer may not have finished. */
  readonly terminated: boolean;
}

export interface ReadLinesOptions {
  /** Named in errors. */
  readonly path: string;
  readonly end: number;
  readonly offset?: number;
  /** Number of the line that starts at `offset`. */
  readonly lineNumber?: number;
  readonly maxLineBytes?: number;
  readonly chunkBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A run of bytes up to a line feed, or up to the end of the chunk. */
interface Piece {
  readonly bytes: Uint8Array;
  readonly closesLine: boolean;
}

export async function* readLines(
  file: FileHandle,
  options: ReadLinesOptions,
): AsyncGenerator<Line, void, void> {
  const maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
  let lineNumber = options.lineNumber ?? 1;
  let offset = options.offset ?? 0;
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readChunks(file, options)) {
    for (const piece of splitAtLineFeeds(chunk)) {
      size += piece.bytes.length;
      if (size > maxLineBytes) held = [];
      else if (piece.closesLine || piece.bytes.length > 0) held.push(copyBytes(piece.bytes));
      if (!piece.closesLine) continue;
      if (size > maxLineBytes) throw createOverlongError(options.path, lineNumber, size, maxLineBytes);
      const endOffset = offset + size + 1;
      yield { bytes: joinPieces(held, size), lineNumber, offset, endOffset, terminated: true };
      [lineNumber, offset, held, size] = [lineNumber + 1, endOffset, [], 0];
    }
  }
  if (size > maxLineBytes) throw createOverlongError(options.path, lineNumber, size, maxLineBytes);
  if (size === 0) return;
  yield { bytes: joinPieces(held, size), lineNumber, offset, endOffset: offset + size, terminated: false };
}

/** Yields the bytes from `offset` to `end` in one buffer that is used again for each chunk. */
export async function* readChunks(
  file: FileHandle,
  options: {
    offset?: number;
    end: number;
    chunkBytes?: number;
    signal?: AbortSignal | undefined;
    path: string;
  },
): AsyncGenerator<Uint8Array, void, void> {
  const buffer = new Uint8Array(options.chunkBytes ?? CHUNK_BYTES);
  let position = options.offset ?? 0;
  while (position < options.end) {
    if (options.signal?.aborted) throw createAbortError(options.path);
    const wanted = Math.min(buffer.length, options.end - position);
    const { bytesRead } = await file.read(buffer, 0, wanted, position);
    // The file was cut while it was read: what is there has been seen.
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

export function createAbortError(path: string): EngineError {
  return new EngineError("aborted", `cannot finish the import of ${path}: cancelled`, {
    hint: "Run the same import again: it goes on where it stopped.",
  });
}

function* splitAtLineFeeds(chunk: Uint8Array): Generator<Piece, void, void> {
  let start = 0;
  while (start < chunk.length) {
    const feed = chunk.indexOf(LINE_FEED, start);
    const stop = feed === -1 ? chunk.length : feed;
    yield { bytes: chunk.subarray(start, stop), closesLine: feed !== -1 };
    start = stop + 1;
  }
}

/** A plain copy: `Buffer.from` and `subarray` would share a larger buffer, which is copied whole on its way to a thread. */
function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function joinPieces(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && pieces.length === 1) return first;
  const joined = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}

function createOverlongError(path: string, lineNumber: number, size: number, limit: number): EngineError {
  return new EngineError(
    "invalid_input",
    `cannot import ${path}: line ${lineNumber} has ${size} bytes, the limit is ${limit}`,
    { hint: "The lines before it are stored. Take this line out of a copy of the file and import the copy." },
  );
}
