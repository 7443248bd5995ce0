/**
 * `npm run release -- <version | major | minor | patch>`: sets the version in every manifest and in the lock file and its heading in the
 * changelog, commits and tags. It is a dry run unless you pass `--apply`. It publishes nothing and pushes nothing; RELEASING.md describes the
 * rest.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderManifest } from "../packages/openclaw/src/host/manifest.ts";
import { chooseVersion, releaseChanges, setLockedVersion, setVersion } from "./package/version.ts";

const ROOT = join(import.meta.dirname, "..");
const PLUGIN = "packages/openclaw/package.json";

try {
  release(process.argv.slice(2));
} catch (error) {
  console.error(`cannot release: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

function release(args: readonly string[]): void {
  const isApplied = args.includes("--apply");
  const [request, ...others] = args.filter((argument) => argument !== "--apply");
  if (request === undefined || others.length > 0)
    throw new Error("say which version: three numbers, such as 1.2.3, or major, minor or patch");
  const version = chooseVersion(readJson("package.json").version, request);
  const tag = `v${version}`;
  if (git("tag", "--list", tag) !== "") throw new Error(`the tag ${tag} already exists`);
  if (git("status", "--porcelain") !== "") throw new Error("there are uncommitted changes");
  const files = planFiles(version);
  for (const path of files.keys()) console.log(`${isApplied ? "writes" : "would write"} ${path}`);
  if (isApplied) apply(files, version, tag);
  else console.log(`would commit "Release ${version}" and tag it ${tag}; --apply does it`);
}

function apply(files: ReadonlyMap<string, string>, version: string, tag: string): void {
  for (const [path, text] of files) writeFileSync(join(ROOT, path), text);
  git("commit", "--quiet", "--message", `Release ${version}`, "--", ...files.keys());
  git("tag", "--annotate", tag, "--message", `lossless-claw ${version}`);
  console.log(`committed and tagged ${tag}; what comes next is in RELEASING.md`);
}

/** Every file that changes, with its new text. */
function planFiles(version: string): Map<string, string> {
  const manifests = ["package.json", ...listManifests()];
  const ours = new Set(manifests.map((path) => readJson(path).name));
  const files = new Map<string, string>();
  for (const path of manifests) {
    const manifest = readJson(path);
    setVersion(manifest, version, ours);
    files.set(path, renderJson(manifest));
    if (path === PLUGIN) files.set("packages/openclaw/openclaw.plugin.json", renderManifest(manifest));
  }
  const lock = readJson("package-lock.json");
  setLockedVersion(lock, version, ours);
  files.set("package-lock.json", renderJson(lock));
  const day = new Date().toISOString().slice(0, 10);
  return files.set("CHANGELOG.md", releaseChanges(read("CHANGELOG.md"), version, day));
}

function listManifests(): string[] {
  return readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/package.json`);
}

interface Manifest {
  name: string;
  version: string;
  description: string;
  packages: Record<string, Manifest>;
}

function readJson(path: string): Manifest {
  return JSON.parse(read(path)) as Manifest;
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

function renderJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function git(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args[0]} failed:\n${stderr}`);
  return stdout.trim();
}
