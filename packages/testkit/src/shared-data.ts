/** Real conversations for evaluation, which are beside the project and never part of it. Tests skip when they are absent. */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const projectRoot = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

/** The data folder, or null after printing that it is absent. */
export function findSharedData(): string | null {
  const folder = process.env.LCM_SHARED_DATA ?? join(projectRoot, "..", "shared", "data");
  if (existsSync(folder)) return folder;
  process.stderr.write(`shared data not found at ${folder}: tests that need it are skipped\n`);
  return null;
}

export function listTranscripts(folder: string, kind: string): string[] {
  const path = join(folder, "transcripts", kind);
  return existsSync(path)
    ? readdirSync(path)
        .sort()
        .map((name) => join(path, name))
    : [];
}
