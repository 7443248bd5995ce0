/**
 * Waits until a file or a folder is on the disk. A new name is only certain to survive a crash once its folder is. Windows flushes nothing
 * through a handle that only reads, and no folder at all; there the rename itself is all that can be asked for.
 */
import { closeSync, fsyncSync, openSync } from "node:fs";
import { open } from "node:fs/promises";

export function flushPathSync(path: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** The same for those who must not keep an event loop waiting. */
export async function flushPath(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
