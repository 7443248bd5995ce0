/** What a program asks of the disk, in order: tests of what is written before what. On Linux only. */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** What is flushed, renamed and removed while `work` runs, in order. The calls themselves go through. */
export async function watchDisk(work: () => Promise<unknown>): Promise<string[]> {
  const { fsyncSync, renameSync, rmSync } = fs;
  const seen: string[] = [];
  fs.fsyncSync = (handle) => {
    seen.push(`flush ${fs.readlinkSync(`/proc/self/fd/${handle}`)}`);
    fsyncSync(handle);
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
    syncBuiltinESMExports();
  }
  return seen;
}
