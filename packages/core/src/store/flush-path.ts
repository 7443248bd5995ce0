/**
 * Flushes a file or a folder to disk. A new name is certain to survive a crash only after its folder is flushed. Windows flushes nothing
 * through a read-only handle, and no folder at all; there the rename itself has to do.
 */
import { closeSync, fsyncSync, openSync, readdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

export function flushPathSync(path: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Flushes every file and folder below a folder, and the folder itself. */
export function flushTreeSync(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) flushTreeSync(path);
    else if (entry.isFile()) flushPathSync(path);
  }
  flushPathSync(folder);
}

/** {@link flushPathSync} for callers that must not block an event loop. */
export async function flushPath(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
