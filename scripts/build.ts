/**
 * Makes the package that is published, in `dist/lossless-claw`: the library, the command `lcm`, the plugin for OpenClaw, the threads they start
 * and the page of the web inspector, as JavaScript without dependencies. `npm pack ./dist/lossless-claw` packs it.
 *
 * Everything that runs lies in one folder, because threads and the page are found beside the file that starts them. Code that several
 * of them use is in files of its own: an error thrown in one is of the class that the others know.
 */
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { renderClaudePlugin } from "../packages/agents/src/setup/claude-plugin.ts";
import { renderManifest } from "../packages/openclaw/src/host/manifest.ts";
import { buildPage } from "../packages/web/src/page-build.ts";
import { buildTypes } from "./package/types.ts";
import { LIBRARY, makeManifest, readPackage } from "./package/manifest.ts";
import { renderNotices } from "./package/notices.ts";

const root = join(import.meta.dirname, "..");
const packages = join(root, "packages");
const target = join(root, "dist", "lossless-claw");

/** Names of files in the package, and what they are made from. */
const PROGRAMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(LIBRARY.map((name) => [name, `lossless-claw/src/${name}.ts`])),
  lcm: "cli/src/main.ts",
  openclaw: "openclaw/src/index.ts",
  // The host looks for a file of this name.
  "doctor-contract-api": "openclaw/src/doctor-contract.ts",
  worker: "lossless-claw/src/worker.ts",
  "chore-worker": "openclaw/src/host/chore-worker.ts",
  "regex-worker": "core/src/recall/regex-worker.ts",
};

const REQUIRE =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

await writePluginManifest();
// A folder made aside would be the same for readers, but nobody runs from here while it is built.
await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const sources = await buildPrograms();
await Promise.all([buildPage(join(target, "dist", "page")), buildTypes(join(target, "types")), copyBin()]);
await copyFiles();
await writeClaudePlugin();
await writeFile(join(target, "package.json"), `${JSON.stringify(await makeManifest(), null, 2)}\n`);
await writeFile(join(target, "THIRD-PARTY-LICENSES.md"), await renderNotices(sources));
console.log("dist/lossless-claw is built");

/** The host's manifest is part of the project, so that a change of settings shows in it. */
async function writePluginManifest(): Promise<void> {
  const { version, description } = await readPackage("openclaw");
  const manifest = renderManifest({ version, description });
  await writeFile(join(packages, "openclaw", "openclaw.plugin.json"), manifest);
}

/** A marketplace of one plugin: Claude Code is given the folder of the package. */
async function writeClaudePlugin(): Promise<void> {
  const { version } = await readPackage("lossless-claw");
  for (const [path, text] of Object.entries(renderClaudePlugin(version))) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), text);
  }
}

/** Gives back every file that went into the programs. */
async function buildPrograms(): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(
      Object.entries(PROGRAMS).map(([name, path]) => [name, join(packages, path)]),
    ),
    outdir: join(target, "dist"),
    chunkNames: "part-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node24",
    format: "esm",
    // Older packages (pg) call for modules of Node as CommonJS does.
    banner: { js: REQUIRE },
    // The host brings its own modules; a clone alone builds the page.
    external: ["openclaw/*", "esbuild"],
    // Names and lines of the sources for error reports; the sources themselves would double the package.
    sourcemap: "linked",
    sourcesContent: false,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  return Object.keys(metafile.inputs);
}

/** The starters can be read by any Node, so they are copied as they are, but for what they start. */
async function copyBin(): Promise<void> {
  const source = join(packages, "cli", "bin");
  await cp(source, join(target, "bin"), { recursive: true });
  const starter = join(target, "bin", "start.js");
  const text = await readFile(starter, "utf8");
  const parts = text.split("../src/main.ts");
  if (parts.length !== 2) throw new Error("cannot find what bin/start.js starts");
  await writeFile(starter, parts.join("../dist/lcm.js"));
}

async function copyFiles(): Promise<void> {
  const files = {
    "openclaw.plugin.json": join(packages, "openclaw", "openclaw.plugin.json"),
    skills: join(packages, "openclaw", "skills"),
    "README.md": join(packages, "lossless-claw", "README.md"),
    LICENSE: join(root, "LICENSE"),
  };
  for (const [name, source] of Object.entries(files))
    await cp(source, join(target, name), { recursive: true });
}
