/**
 * The declarations of the library, as far as its entry points reach. The compiler writes one file per source; this replaces names of workspace
 * packages, which exist only here, by paths, and sources by declarations.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { promisify } from "node:util";
import { LIBRARY, readPackage } from "./manifest.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const COMPILER = join(ROOT, "node_modules", "typescript", "bin", "tsc");
/** In `from "…"`, `import("…")` and `import "…"`. */
const SPECIFIER = /(?<=\b(?:from|import)\s*\(?\s*")[^"\n]+(?=")/g;

export async function buildTypes(target: string): Promise<void> {
  const made = await mkdtemp(join(tmpdir(), "lossless-types-"));
  try {
    await declare(made);
    const waiting = LIBRARY.map((name) => `lossless-claw/src/${name}`);
    for (const done = new Set<string>(); ;) {
      const file = waiting.pop();
      if (file === undefined) break;
      if (done.has(file)) continue;
      done.add(file);
      waiting.push(...(await copyDeclaration(file, made, target)));
    }
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

async function declare(target: string): Promise<void> {
  const config = join(target, "tsconfig.json");
  const settings = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: join(ROOT, "packages"),
      outDir: target,
      // Files under node_modules count as external, and nothing is written for them.
      paths: await mapPackages(),
      typeRoots: [join(ROOT, "node_modules", "@types")],
    },
    include: [],
    files: LIBRARY.map((name) => join(ROOT, "packages", "lossless-claw", "src", `${name}.ts`)),
  };
  await writeFile(config, JSON.stringify(settings));
  await promisify(execFile)(process.execPath, [COMPILER, "-p", config]);
}

/** The sources of the names that workspace packages import each other by. */
async function mapPackages(): Promise<Record<string, string[]>> {
  const folders = await readdir(join(ROOT, "packages"));
  const ways = folders.map(async (folder) => {
    const { name, exports = {} } = await readPackage(folder);
    return Object.entries(exports).map(([way, source]): [string, string[]] => [
      posix.join(name, way),
      [join(ROOT, "packages", folder, source)],
    ]);
  });
  return Object.fromEntries((await Promise.all(ways)).flat());
}

/** Copies one file, named without its extension, and returns those that it imports. */
async function copyDeclaration(file: string, made: string, target: string): Promise<string[]> {
  const text = await readFile(join(made, `${file}.d.ts`), "utf8");
  const named = new Map<string, string>();
  for (const [specifier] of text.matchAll(SPECIFIER)) {
    const found = await findSource(file, specifier);
    if (found !== null) named.set(specifier, found);
  }
  const home = posix.dirname(publish(file));
  const rewritten = text.replaceAll(SPECIFIER, (specifier) => {
    const found = named.get(specifier);
    if (found === undefined) return specifier;
    const path = posix.relative(home, publish(found));
    return `${path.startsWith(".") ? path : `./${path}`}.js`;
  });
  const path = join(target, `${publish(file)}.d.ts`);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, rewritten);
  return [...named.values()];
}

/** `core/src/store/store` is published as `core/store/store`. */
function publish(file: string): string {
  return file.replace("/src/", "/");
}

/** The source of a specifier, without its extension; null for Node modules. */
async function findSource(from: string, specifier: string): Promise<string | null> {
  if (specifier.startsWith("node:")) return null;
  if (specifier.startsWith(".")) return dropEnding(posix.join(posix.dirname(from), specifier));
  const [, folder = "", way = ""] = /^(?:@lossless\/)?([^/]+)(\/.*)?$/.exec(specifier) ?? [];
  const source = (await readPackage(folder)).exports?.[`.${way}`];
  if (source === undefined) throw new Error(`cannot publish the types of ${from}: it names ${specifier}`);
  return dropEnding(posix.join(folder, source));
}

function dropEnding(path: string): string {
  return path.replace(/\.(ts|js)$/, "");
}
