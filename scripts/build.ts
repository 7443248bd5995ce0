/**
 * Builds the published package in `dist/lossless-claw`: the library, the command `lcm`, the plugin for OpenClaw, the threads they start and the
 * page of the web inspector, as JavaScript without dependencies. `npm pack ./dist/lossless-claw` packs it.
 *
 * Everything that runs is in one folder, because threads and the page are located beside the file that starts them. Shared code is in separate
 * files: an error thrown in one is of the class that the others know.
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

/** Names of files in the package, and their sources. */
const PROGRAMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(LIBRARY.map((name) => [name, `lossless-claw/src/${name}.ts`])),
  lcm: "cli/src/main.ts",
  openclaw: "openclaw/src/index.ts",
  // The host expects a file of this name.
  "doctor-contract-api": "openclaw/src/doctor-contract.ts",
  worker: "lossless-claw/src/worker.ts",
  "chore-worker": "openclaw/src/host/chore-worker.ts",
  "regex-worker": "core/src/recall/regex-worker.ts",
};

const REQUIRE =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

await writePluginManifest();
// No need to build aside and rename: nobody runs from here while it is built.
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

/** A marketplace with one plugin: Claude Code gets the folder of the package. */
async function writeClaudePlugin(): Promise<void> {
  const { version } = await readPackage("lossless-claw");
  for (const [path, text] of Object.entries(renderClaudePlugin(version))) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await writeFile(join(target, path), text);
  }
}

/** Returns every file that went into the programs. */
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
    // Older packages (pg) require Node modules the CommonJS way.
    banner: { js: REQUIRE },
    // The host provides its own modules; only a clone builds the page.
    external: ["openclaw/*", "esbuild"],
    // Names and lines of the sources for stack traces; the sources themselves would double the package.
    sourcemap: "linked",
    sourcesContent: false,
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  return Object.keys(metafile.inputs);
}

/** Any Node can parse the launchers, so they are copied unchanged, except for the path they start. */
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
