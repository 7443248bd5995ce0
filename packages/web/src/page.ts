/**
 * The files of the page. They are bundled from the folder `page` beside this one when the inspector is first started and when a source has changed,
 * and kept in a folder named after what they were made from: a started inspector never sees half of a build, and two of them at a time do
 * not disturb each other.
 */
import { hash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EngineError } from "@lossless/core";

export interface PageFile {
  readonly type: string;
  readonly content: Buffer;
}

/** By the path of the address. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const PACKAGE = fileURLToPath(new URL("../", import.meta.url));

/** What the page is made from besides its own sources. */
const SHARED = [fileURLToPath(new URL("context-diff.ts", import.meta.url))];

const FILES: readonly (readonly [path: string, name: string, type: string])[] = [
  ["/", "index.html", "text/html; charset=utf-8"],
  ["/app.js", "app.js", "text/javascript; charset=utf-8"],
  ["/app.css", "app.css", "text/css; charset=utf-8"],
  ["/icon.svg", "icon.svg", "image/svg+xml"],
];

/** Kept beside the newest build, for inspectors that were started before. */
const OLD_BUILDS = 2;

export async function loadPage(folder = PACKAGE): Promise<PageFiles> {
  const built = await findBuilt(folder);
  const files = FILES.map(async ([path, name, type]): Promise<[string, PageFile]> => [
    path,
    { type, content: await readFile(join(built, name)) },
  ]);
  return new Map(await Promise.all(files));
}

async function findBuilt(folder: string): Promise<string> {
  const dist = join(folder, "dist");
  const stamp = await hashSources(join(folder, "page"));
  const builds = await listFolder(dist);
  const found = stamp === null ? builds[0] : builds.find((name) => name === stamp);
  if (found !== undefined) return join(dist, found);
  if (stamp === null) {
    throw new EngineError(
      "internal",
      "cannot show the inspector: neither its page nor the source of it is there",
    );
  }
  await build(folder, stamp);
  for (const old of builds.slice(OLD_BUILDS)) await rm(join(dist, old), { recursive: true, force: true });
  return join(dist, stamp);
}

/** What the sources add up to; null when there are none, as in an installed package. */
async function hashSources(folder: string): Promise<string | null> {
  const own = (await listFolder(folder, true)).filter((name) => /\.(ts|css|html|svg)$/.test(name)).sort();
  if (own.length === 0) return null;
  const paths = [...own.map((name) => join(folder, name)), ...SHARED];
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

async function build(folder: string, stamp: string): Promise<void> {
  const source = join(folder, "page");
  await mkdir(join(folder, "dist"), { recursive: true });
  const workshop = await mkdtemp(join(folder, "dist", ".build-"));
  try {
    const { build: bundle } = await importBundler();
    await bundle({
      entryPoints: { app: join(source, "main.ts") },
      outdir: workshop,
      bundle: true,
      minify: true,
      format: "esm",
      target: "es2022",
      legalComments: "none",
      logLevel: "silent",
    });
    await bundle({
      entryPoints: { app: join(source, "app.css") },
      outdir: workshop,
      bundle: true,
      minify: true,
      logLevel: "silent",
    });
    for (const name of ["index.html", "icon.svg"]) {
      await writeFile(join(workshop, name), await readFile(join(source, name)));
    }
    await publish(workshop, join(folder, "dist", stamp));
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

/** Another process may have built the same in the meantime, which is as good. */
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
