/** A private folder for one test, removed afterwards. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, onTestFinished } from "vitest";

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

/** A directory that is removed after the test. */
export function makeTemporaryDirectory(): string {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

/** An archive that a test file builds once. Returns a function that copies it into a test's folder and returns the path. */
export function buildOnce(build: (folder: string) => Promise<void>): (folder: string) => string {
  const built = makeTemporaryFolder();
  beforeAll(() => build(built.path));
  afterAll(() => built[Symbol.dispose]());
  return (folder) => {
    cpSync(built.path, folder, { recursive: true });
    return join(folder, "lcm.db");
  };
}
