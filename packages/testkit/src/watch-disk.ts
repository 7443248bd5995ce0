/** Records the disk operations of a program in order, for tests of write ordering. Linux only. */
import fs from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/** What is flushed, renamed and removed while `work` runs, in order. The calls themselves are executed. */
export async function watchDisk(work: () => Promise<unknown>): Promise<string[]> {
  const { fsyncSync, renameSync, rmSync } = fs;
  const { rename } = fs.promises;
  const handles = await findHandleMethods();
  const { sync } = handles;
  const seen: string[] = [];
  const noteFlush = (handle: number): void =>
    void seen.push(`flush ${fs.readlinkSync(`/proc/self/fd/${handle}`)}`);
  fs.fsyncSync = (handle) => {
    noteFlush(handle);
    fsyncSync(handle);
  };
  handles.sync = function syncNoted(this: FileHandle) {
    noteFlush(this.fd);
    return sync.call(this);
  };
  fs.promises.rename = (from, to) => {
    seen.push(`rename ${String(to)}`);
    return rename(from, to);
  };
  fs.renameSync = (from, to) => {
    seen.push(`rename ${String(to)}`);
    renameSync(from, to);
  };
  fs.rmSync = (path, options) => {
    seen.push(`remove ${String(path)}`);
    rmSync(path, options);
  };
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    Object.assign(fs, { fsyncSync, renameSync, rmSync });
    handles.sync = sync;
    fs.promises.rename = rename;
    syncBuiltinESMExports();
  }
  return seen;
}

/** The methods that all open files share; nothing exports them. */
async function findHandleMethods(): Promise<FileHandle> {
  const handle = await fs.promises.open("/dev/null");
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}
