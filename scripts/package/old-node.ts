/** A Node that is too old for us, to see what users of one are told. Fetched once into the cache that the live tests use. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const VERSION = "22.23.3";

/** The program, or null where there is none for this machine or no network. */
export async function ensureOldNode(): Promise<string | null> {
  // What `npm install node` fetches behind the scenes; this way no script of it runs.
  const name = `node-${process.platform}-${process.arch}`;
  const root = process.env["LCM_HOST_CACHE"] ?? join(homedir(), ".cache", "lossless-claw");
  const home = join(root, `node-${VERSION}`);
  const program = join(home, "node_modules", name, "bin", "node");
  if (existsSync(join(home, "node_modules", ".package-lock.json"))) return program;
  await mkdir(home, { recursive: true });
  await writeFile(join(home, "package.json"), JSON.stringify({ private: true }));
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", `${name}@${VERSION}`];
  try {
    await promisify(execFile)("npm", args, { cwd: home });
    return program;
  } catch {
    return null;
  }
}
