/**
 * Writes a file atomically: under a temporary name, flushed to the disk, then renamed. All exports use it, so that a cancelled one leaves
 * nothing that looks finished.
 */

import { once } from "node:events";
import { closeSync, createWriteStream, openSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { finished } from "node:stream/promises";
import type { Writable } from "node:stream";
import { createZstdCompress } from "node:zlib";

import { EngineError } from "@lossless/core";
import { toWriteError } from "@lossless/core/doors";

export async function writeWholeFile(
  path: string,
  chunks: AsyncIterable<string>,
  options: { compress?: boolean; signal?: AbortSignal | undefined } = {},
): Promise<{ bytes: number }> {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await writeChunks(path, temporary, chunks, options);
    const file = await open(temporary, "r+");
    try {
      await file.sync();
      const { size } = await file.stat();
      await rename(temporary, path);
      return { bytes: size };
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(temporary, { force: true });
    throw toWriteError(path, error);
  }
}

/** A new database file that only its user may read. SQLite gives its log files the same mode. */
export function createPrivateDatabase(path: string): DatabaseSync {
  closeSync(openSync(path, "wx", 0o600));
  return new DatabaseSync(path);
}

async function writeChunks(
  path: string,
  temporary: string,
  chunks: AsyncIterable<string>,
  { compress = false, signal }: { compress?: boolean; signal?: AbortSignal | undefined },
): Promise<void> {
  const file = createWriteStream(temporary, { mode: 0o600 });
  const ends: Promise<void>[] = [finished(file)];
  let sink: Writable = file;
  if (compress) {
    const compressor = createZstdCompress();
    compressor.pipe(file);
    ends.push(finished(compressor));
    sink = compressor;
  }
  const done = Promise.all(ends);
  // Awaited below; without this, a full disk would first be an unhandled rejection.
  done.catch(() => undefined);
  try {
    for await (const chunk of chunks) {
      if (signal?.aborted) throw new EngineError("aborted", `cannot finish ${path}: cancelled`);
      if (!sink.write(chunk)) await Promise.race([once(sink, "drain"), done]);
    }
  } catch (error) {
    // Close it before removing it: a file that is still being opened would reappear.
    const closed = new Promise<void>((resolve) => void file.once("close", () => resolve()));
    if (!file.closed) {
      file.destroy();
      await closed;
    }
    throw error;
  }
  sink.end();
  await done;
}
