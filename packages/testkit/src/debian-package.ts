/** Programs from Debian packages, unpacked into the cache and not installed: a test leaves the machine unchanged. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cachePath } from "./tool-cache.ts";

const run = promisify(execFile);

/** The folder that the packages were unpacked into, as if it were the root; null if they are not available. */
export async function unpackDebian(packages: readonly string[]): Promise<string | null> {
  const target = cachePath(`debian-${packages.join("-")}`);
  if (existsSync(target)) return target;
  await mkdir(dirname(target), { recursive: true });
  const aside = await mkdtemp(`${target}.`);
  try {
    await run("apt-get", ["download", "-q", ...packages], { cwd: aside });
    const root = join(aside, "root");
    const files = (await readdir(aside)).filter((name) => name.endsWith(".deb"));
    for (const file of files) await run("dpkg", ["-x", join(aside, file), root]);
    await rename(root, target);
    return target;
  } catch {
    // No such tool, no network, no such package; or another process was faster.
    return existsSync(target) ? target : null;
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}
