/**
 * Reads a file line by line from a known offset. All line importers use it.
 *
 * A line is the bytes between two line feeds: a carriage return stays in it, an empty line is a line, and the last one may lack its line feed.
 * Memory is bounded by one chunk and one line; a line beyond the limit is measured, never held. The end is fixed when reading starts, so that
 * reading a growing file ends.
 */

import type { FileHandle } from "node:fs/promises";

import { EngineError } from "@lossless/core";

export const MAX_LINE_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

export interface Line {
  /** The bytes of the line without its line feed, in a buffer shared with other lines. */
  readonly bytes: Uint8Array;
  /** Counted from 1. */
  readonly lineNumber: number;
  readonly offset: number;
  /** Where the next line starts: after the line feed if there is one. */
  readonly endOffset: number;
  /** False only for a last line without a line feed: its writer may not have finished. */
  readonly terminated: boolean;
}

export interface ReadLinesOptions {
  /** Used in errors. */
  readonly path: string;
  readonly end: number;
  readonly offset?: number;
  /** Number of the line that starts at `offset`. */
  readonly lineNumber?: number;
  readonly maxLineBytes?: number;
  /** Stops before a line beyond the limit, instead of failing there: for callers that only inspect a file. */
  readonly stopsAtOverlong?: boolean;
  readonly chunkBytes?: number;
  /** Lines are in a buffer that is reused: they are valid only until the next ones are read. */
  readonly reusesBuffer?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export async function* readLines(
  file: FileHandle,
  options: ReadLinesOptions,
): AsyncGenerator<Line, void, void> {
  for await (const lines of readLineRuns(file, options)) yield* lines;
}

/** The same lines, in the groups in which they were read: awaiting each one would take longer than reading it. */
export async function* readLineRuns(
  file: FileHandle,
  options: ReadLinesOptions,
): AsyncGenerator<readonly Line[], void, void> {
  const splitter = new LineSplitter(options);
  for await (const chunk of readChunks(file, options)) {
    const { lines, failure } = splitter.split(chunk);
    if (lines.length > 0) yield lines;
    if (failure !== null && options.stopsAtOverlong) return;
    if (failure !== null) throw failure;
  }
  if (options.stopsAtOverlong && splitter.isOverlong) return;
  const last = splitter.finish();
  if (last !== null) yield [last];
}

/** Splits chunks into lines, and keeps the open end for the next chunk. */
class LineSplitter {
  readonly #path: string;
  readonly #maxLineBytes: number;
  readonly #reusesBuffer: boolean;
  #lineNumber: number;
  #offset: number;
  #held: Uint8Array[] = [];
  #size = 0;

  constructor(options: ReadLinesOptions) {
    this.#path = options.path;
    this.#maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
    this.#reusesBuffer = options.reusesBuffer ?? false;
    this.#lineNumber = options.lineNumber ?? 1;
    this.#offset = options.offset ?? 0;
  }

  /** The lines that end in a chunk; none after one that is too long. */
  split(chunk: Uint8Array): { readonly lines: readonly Line[]; readonly failure: EngineError | null } {
    // One copy for all the lines of a chunk, whose own buffer is reused.
    const bytes = this.#reusesBuffer ? chunk : new Uint8Array(chunk);
    const lines: Line[] = [];
    let start = 0;
    for (let feed = bytes.indexOf(LINE_FEED); feed !== -1; feed = bytes.indexOf(LINE_FEED, start)) {
      this.#hold(bytes, start, feed);
      if (this.#size > this.#maxLineBytes) return { lines, failure: this.#refuse() };
      lines.push(this.#close(true));
      start = feed + 1;
    }
    // The open end is kept beyond this chunk.
    const rest = this.#reusesBuffer ? bytes.slice(start) : bytes.subarray(start);
    this.#hold(rest, 0, rest.length);
    return { lines, failure: null };
  }

  get isOverlong(): boolean {
    return this.#size > this.#maxLineBytes;
  }

  /** The bytes after the last line feed. */
  finish(): Line | null {
    if (this.#size > this.#maxLineBytes) throw this.#refuse();
    return this.#size === 0 ? null : this.#close(false);
  }

  #hold(bytes: Uint8Array, start: number, end: number): void {
    this.#size += end - start;
    if (this.#size > this.#maxLineBytes) this.#held = [];
    else if (end > start) this.#held.push(bytes.subarray(start, end));
  }

  #close(terminated: boolean): Line {
    const [lineNumber, offset, size] = [this.#lineNumber, this.#offset, this.#size];
    const endOffset = offset + size + (terminated ? 1 : 0);
    const bytes = joinPieces(this.#held, size);
    this.#lineNumber = lineNumber + 1;
    this.#offset = endOffset;
    this.#held = [];
    this.#size = 0;
    return { bytes, lineNumber, offset, endOffset, terminated };
  }

  #refuse(): EngineError {
    return createOverlongError(this.#path, this.#lineNumber, this.#size, this.#maxLineBytes);
  }
}

/** Yields the bytes from `offset` to `end` in one buffer that is reused for each chunk. */
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
    // The file was truncated while it was read: everything there has been read.
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

export function createAbortError(path: string): EngineError {
  return new EngineError("aborted", `cannot finish the import of ${path}: cancelled`, {
    hint: "Run the same import again: it continues where it stopped.",
  });
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
    {
      hint: `${lineNumber > 1 ? "The lines before it are stored. " : ""}Take this line out of a copy of the file and import the copy.`,
    },
  );
}
