/**
 * Builds what is published: the OpenClaw plugin as a few files without dependencies (the plugin, the workers its engine and long chores run in,
 * what the host's doctor asks) and its manifest. The host's own modules stay outside and are resolved by the host.
 */

import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { build } from "esbuild";
import { renderManifest } from "../packages/openclaw/src/host/manifest.ts";

interface Package {
  readonly version: string;
  readonly description: string;
}

const root = join(import.meta.dirname, "..");
const plugin = join(root, "packages", "openclaw");
const core = join(root, "packages", "core");
const library = join(root, "packages", "lossless-claw");

await writeManifest();
await buildPlugin();

async function writeManifest(): Promise<void> {
  const { version, description } = JSON.parse(
    await readFile(join(plugin, "package.json"), "utf8"),
  ) as Package;
  await writeFile(join(plugin, "openclaw.plugin.json"), renderManifest({ version, description }));
}

async function buildPlugin(): Promise<void> {
  const outdir = join(plugin, "dist");
  await rm(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: {
      index: join(plugin, "src", "index.ts"),
      "doctor-contract-api": join(plugin, "src", "doctor-contract.ts"),
      worker: join(library, "src", "worker.ts"),
      "chore-worker": join(plugin, "src", "host", "chore-worker.ts"),
      "regex-worker": join(core, "src", "recall", "regex-worker.ts"),
    },
    outdir,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    external: ["openclaw/*"],
    metafile: true,
    legalComments: "none",
    logLevel: "warning",
  });
  for (const file of Object.keys(metafile.outputs)) {
    const path = resolve(file);
    console.log(`${relative(root, path)}  ${Math.round((await stat(path)).size / 1024)} kB`);
  }
}
