/**
 * Writes a small file that must not exist yet: a key, a prompt, a bundle for a bug report. Only its user may read it.
 *
 * Invariant: a failed write leaves nothing that would be mistaken for the file next time.
 */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { toWriteError } from "../model/errors.ts";

/** False: something already exists there, and is not changed. */
export function writeNewFile(path: string, text: string): boolean {
  const descriptor = openNew(path);
  if (descriptor === null) return false;
  try {
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(path, { force: true });
    throw toWriteError(path, error);
  } finally {
    closeSync(descriptor);
  }
  return true;
}

function openNew(path: string): number | null {
  try {
    return openSync(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return null;
    throw toWriteError(path, error);
  }
}
