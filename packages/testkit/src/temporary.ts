/** A private folder for one test, removed afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export interface TemporaryFolder {
  readonly path: string;
  file(name: string): string;
  [Symbol.dispose](): void;
}

export function makeTemporaryFolder(prefix = "lossless-test-"): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), prefix));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A directory that is gone after the test. */
export function makeTemporaryDirectory(): string {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}
