/**
 * Third-party programs for tests: hosts, validators, other versions of Node. They are large and never dependencies of the project, so they are
 * installed once into a cache (`LCM_HOST_CACHE`, else a folder in the home). An installation is atomic: it is made in another folder and renamed
 * into place. No install script runs.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";

/** Ends an installation that hangs. */
const INSTALL_DEADLINE_MS = 1_800_000;
/** Not `npm ci`, which refuses a lock file that lacks packages of other platforms. */
const INSTALL = ["install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"];

export function cachePath(name: string): string {
  return join(process.env["LCM_HOST_CACHE"] ?? join(homedir(), ".cache", "lossless-claw"), name);
}

/** npm writes this file last, so an interrupted installation does not have it. */
export function isCached(folder: string): boolean {
  return existsSync(join(folder, "node_modules", ".package-lock.json"));
}

/** Installs one package with its dependencies into a folder of the cache. */
export async function installPackage(name: string, version: string, target: string): Promise<void> {
  const manifest = JSON.stringify({ private: true, dependencies: { [name]: version } });
  await installAside(target, (aside) => writeFile(join(aside, "package.json"), manifest));
}

/** Installs the locked dependencies of a project folder. */
export async function installLocked(source: string, target: string): Promise<void> {
  await installAside(target, async (aside) => {
    for (const name of ["package.json", "package-lock.json"])
      await copyFile(join(source, name), join(aside, name));
  });
}

async function installAside(target: string, prepare: (aside: string) => Promise<void>): Promise<void> {
  const aside = `${target}.partial-${process.pid}`;
  const wasCached = isCached(target);
  await removeLeftovers(target);
  await mkdir(aside, { recursive: true });
  try {
    await prepare(aside);
    await promisify(execFile)("npm", INSTALL, { cwd: aside, timeout: INSTALL_DEADLINE_MS });
    // Another process may have been faster, and be using it.
    if (!wasCached && isCached(target)) return;
    await rm(target, { recursive: true, force: true });
    await rename(aside, target);
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

/** Removes folders of installations of the same package whose process is gone. */
async function removeLeftovers(target: string): Promise<void> {
  const parent = join(target, "..");
  await mkdir(parent, { recursive: true });
  for (const name of await readdir(parent)) {
    const pid = /\.partial-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && name.startsWith(basename(target)) && !isAlive(Number(pid)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
