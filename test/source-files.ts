/**
 * The project's own files and their imports, for tests. A small scanner instead of a parser finds the imports; it knows the forms this project
 * uses, and a test pins them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");

export interface SourceFile {
  /** Path from the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly string[];
}

/** Tracked or untracked files; ignored ones (installed, built, cached) are not part of the project. */
export function listProjectFiles(): string[] {
  const git = spawnSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (git.status !== 0) throw new Error(`cannot list the project's files: ${git.stderr}`);
  const paths = git.stdout.split("\0").filter((path) => path !== "");
  return [...new Set(paths)].filter((path) => existsSync(join(ROOT, path))).sort();
}

export function readProjectFile(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** Code blocks of a page, by the info string of the fence. */
export function listBlocks(page: string, language: string): string[] {
  const fences = readProjectFile(page).matchAll(/^```(.*)\n([\s\S]*?)^```$/gm);
  return [...fences].filter((fence) => fence[1] === language).map((fence) => fence[2] ?? "");
}

/** The expected output of an example, line by line. */
export function listPromises(program: string): string[] {
  return [...program.matchAll(/\/\/ prints (.*)$/gm)].map((match) => match[1] ?? "");
}

/** The program's own sources: no tests, no benchmarks. */
export function readSources(): SourceFile[] {
  return listProjectFiles()
    .filter((path) => /^packages\/[^/]+\/(src|page)\/.*\.ts$/.test(path))
    .map(readSource);
}

/** All code, including tests and scripts. */
export function readAllCode(): SourceFile[] {
  return listProjectFiles()
    .filter((path) => /\.(ts|mjs|js)$/.test(path))
    .map(readSource);
}

function readSource(path: string): SourceFile {
  const text = readProjectFile(path);
  return { path, text, imports: findImports(text) };
}

const FORMS = [
  /^(?:import|export)\b[^"';]*?\bfrom\s+["']([^"']+)["']/gm,
  /^import\s+["']([^"']+)["']/gm,
  /\bimport\(\s*["']([^"']+)["']\s*[,)]/g,
];

export function findImports(text: string): string[] {
  const code = removeBlockComments(text);
  return [...new Set(FORMS.flatMap((form) => [...code.matchAll(form)].map((match) => match[1] ?? "")))];
}

/** Only comments that begin their line: enough for this project, and safe for strings with slashes and stars. */
export function removeBlockComments(text: string): string {
  return text.replaceAll(/^[ \t]*\/\*[\s\S]*?\*\//gm, "");
}

/** The file a relative import names, as a path from the project's root; null for a package. */
export function resolveImport(from: string, specifier: string): string | null {
  return specifier.startsWith(".") ? posix.normalize(posix.join(posix.dirname(from), specifier)) : null;
}
