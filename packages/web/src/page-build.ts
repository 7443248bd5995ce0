/**
 * Builds the page from the folder `page` beside this one, when the inspector is first started from a clone and when a source has changed. A
 * build is kept in a folder named after a hash of its sources: a running inspector never sees a partial build, and two at a time do not
 * interfere.
 */
import { hash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EngineError } from "@lossless/core";

const SOURCE = fileURLToPath(new URL("../page", import.meta.url));
const BUILDS = fileURLToPath(new URL("../dist", import.meta.url));

/** A source of the page outside its own folder. */
const SHARED = fileURLToPath(new URL("context-diff.ts", import.meta.url));
const READING = join(fileURLToPath(import.meta.resolve("@lossless/interchange/reading")), "..");

/** Kept beside the newest build, for inspectors that are already running. */
const OLD_BUILDS = 2;

/** The folder with the page built from its current sources. */
export async function ensurePage(): Promise<string> {
  const stamp = await hashSources();
  const target = join(BUILDS, stamp);
  const builds = await listFolder(BUILDS);
  if (builds.includes(stamp)) return target;
  await buildAside(target);
  for (const old of builds.slice(OLD_BUILDS)) await rm(join(BUILDS, old), { recursive: true, force: true });
  return target;
}

async function hashSources(): Promise<string> {
  const own = (await listFolder(SOURCE, true)).filter((name) => /\.(ts|css|html|svg)$/.test(name)).sort();
  const reading = (await listFolder(READING)).map((name) => join(READING, name)).sort();
  const paths = [...own.map((name) => join(SOURCE, name)), SHARED, ...reading];
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
  return hash("sha256", JSON.stringify([own, texts])).slice(0, 16);
}

async function listFolder(folder: string, recursive = false): Promise<string[]> {
  try {
    return (await readdir(folder, { recursive })).filter((name) => !name.startsWith("."));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

async function buildAside(target: string): Promise<void> {
  await mkdir(BUILDS, { recursive: true });
  const workshop = await mkdtemp(join(BUILDS, ".build-"));
  try {
    await buildPage(workshop);
    await publish(workshop, target);
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

/** Writes the files of the page into a folder. */
export async function buildPage(folder: string): Promise<void> {
  const { build } = await importBundler();
  await build({
    entryPoints: [join(SOURCE, "main.ts"), join(SOURCE, "app.css")],
    entryNames: "app",
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    logLevel: "silent",
  });
  for (const name of ["index.html", "icon.svg"]) await cp(join(SOURCE, name), join(folder, name));
}

/** Another process may have built the same in the meantime, which is fine. */
async function publish(workshop: string, target: string): Promise<void> {
  try {
    await rename(workshop, target);
  } catch (error) {
    if (
      error instanceof Error &&
      "code" in error &&
      ["ENOTEMPTY", "EEXIST", "EPERM"].includes(String(error.code))
    )
      return;
    throw error;
  }
}

async function importBundler(): Promise<typeof import("esbuild")> {
  try {
    return await import("esbuild");
  } catch (error) {
    throw new EngineError("internal", "cannot build the inspector's page: esbuild is not installed", {
      hint: "run npm install in the project's root",
      cause: error,
    });
  }
}
