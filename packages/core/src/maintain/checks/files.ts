/** Files in the folder of large files that no message names. A crash between writing a file and its row leaves one; nothing else should. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { LargeFiles } from "../../store/large-files.ts";
import type { CheckInput, Finding } from "../finding.ts";

/** Younger ones may belong to a message that is being stored right now. */
const MIN_AGE_MS = 60 * 60_000;

export async function checkFiles({ engine, filesDir, now }: CheckInput): Promise<Finding[]> {
  const named = new Set(await engine.listFilePaths());
  const isOld = (path: string): boolean => {
    const found = statSync(join(filesDir, path), { throwIfNoEntry: false });
    return found !== undefined && now - found.mtimeMs > MIN_AGE_MS;
  };
  return new LargeFiles(filesDir)
    .list()
    .filter((path) => !named.has(path) && isOld(path))
    .map((path) => ({
      code: "file_unreferenced",
      severity: "warning",
      id: path,
      message: `no message names the file ${path}`,
      mend: "lcm doctor --fix",
      fix: { kind: "remove_file", storagePath: path },
    }));
}
