/** The manifest of the published package, built from those of its packages. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PACKAGES = join(import.meta.dirname, "..", "..", "packages");

/** The entry points of the library: the files of `packages/lossless-claw/src` that programs import. */
export const LIBRARY = ["index", "repair", "interchange", "ports", "settings"];

export interface Package {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly openclaw?: unknown;
  readonly peerDependencies?: unknown;
  readonly peerDependenciesMeta?: unknown;
}

export async function readPackage(folder: string): Promise<Package> {
  return JSON.parse(await readFile(join(PACKAGES, folder, "package.json"), "utf8")) as Package;
}

export async function makeManifest(): Promise<Record<string, unknown>> {
  const [library, cli, plugin] = await Promise.all(["lossless-claw", "cli", "openclaw"].map(readPackage));
  const { name, version, license, engines } = library!;
  return {
    name,
    version,
    description:
      "A lossless context engine for LLM agents: every message kept for ever, a context that always fits.",
    keywords: ["openclaw", "openclaw-plugin", "context-engine", "memory", "mcp", "agents", "llm"],
    license,
    type: "module",
    engines,
    exports: {
      ...Object.fromEntries(
        LIBRARY.map((entry) => [entry === "index" ? "." : `./${entry}`, describeEntry(entry)]),
      ),
      "./package.json": "./package.json",
    },
    types: "./types/lossless-claw/index.d.ts",
    // The last one is for `npx lossless-claw`, which runs the command with the package's name.
    bin: { ...cli!.bin, [name]: cli!.bin!["lcm"] },
    files: [
      "bin",
      "dist",
      "types",
      "skills",
      ".claude-plugin",
      "claude-plugin",
      "openclaw.plugin.json",
      "THIRD-PARTY-LICENSES.md",
    ],
    peerDependencies: plugin!.peerDependencies,
    peerDependenciesMeta: plugin!.peerDependenciesMeta,
    openclaw: plugin!.openclaw,
  };
}

function describeEntry(name: string): { types: string; default: string } {
  return { types: `./types/lossless-claw/${name}.d.ts`, default: `./dist/${name}.js` };
}
