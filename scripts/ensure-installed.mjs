// Makes `npm start` and `npm test` work on a fresh clone: installs the dependencies when they are missing or
// when the lock file has changed since the last install. Plain JavaScript, because the machine's own Node runs it.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const stamp = join(root, "node_modules", ".lossless-installed");

function fingerprint() {
  const hash = createHash("sha256");
  for (const name of ["package.json", "package-lock.json"]) {
    const path = join(root, name);
    if (existsSync(path)) hash.update(readFileSync(path));
  }
  return hash.digest("hex");
}

const wanted = fingerprint();
const present = existsSync(stamp) ? readFileSync(stamp, "utf8") : "";
if (present !== wanted) {
  process.stderr.write("Installing dependencies (once) …\n");
  const args = [existsSync(join(root, "package-lock.json")) ? "ci" : "install", "--no-audit", "--no-fund", "--loglevel=error"];
  const run = spawnSync("npm", args, { cwd: root, stdio: ["ignore", "ignore", "inherit"], shell: process.platform === "win32" });
  if (run.status !== 0) {
    process.stderr.write("cannot install the dependencies: check the connection to the npm registry, then try again\n");
    process.exit(run.status ?? 1);
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, fingerprint());
}
