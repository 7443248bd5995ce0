/** Keeps each piece of code in one place: no six lines are the same in two packages. Code that two packages need belongs below both. */
import { expect, test } from "vitest";
import { readAllCode, removeBlockComments } from "./source-files.ts";

const LINES = 6;

/** The significant lines of a file: no imports, no comments, no lines with only brackets or names. */
function listLines(text: string): string[] {
  return removeBlockComments(text)
    .replaceAll(/^(?:import|export)\b[^"';=(]*?\bfrom\s+["'][^"']+["'];?$/gm, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => /\w/.test(line) && !/^(?:\/\/|import )|^["'`]?\w+["'`]?,?$/.test(line));
}

const packageOf = (path: string): string => /^packages\/([^/]+)\//.exec(path)?.[1] ?? path;

/** Where each run of lines occurs first, and where it occurs again in other packages. */
function findDuplicates(files: readonly { readonly path: string; readonly text: string }[]): string[] {
  const seen = new Map<string, string>();
  const found = new Set<string>();
  for (const { path, text } of files) {
    const lines = listLines(text);
    for (let at = 0; at + LINES <= lines.length; at += 1) {
      const run = lines.slice(at, at + LINES).join("\n");
      const first = seen.get(run);
      if (first === undefined) seen.set(run, path);
      else if (packageOf(first) !== packageOf(path))
        found.add(`${first} and ${path} both have: ${lines[at]}`);
    }
  }
  return [...found];
}

test("no six lines stand in two packages", () => {
  const code = readAllCode().filter(({ path }) => path.startsWith("packages/"));
  expect(findDuplicates(code)).toEqual([]);
});

test("six equal lines in two packages are found, five are not, nor six in one", () => {
  const text = (count: number): string =>
    Array.from({ length: count }, (_, index) => `  const value${index} = read(${index});`).join("\n");
  const files = (first: string, second: string, count: number) =>
    [first, second].map((path) => ({ path, text: `import { read } from "./read.ts";\n\n${text(count)}` }));
  expect(findDuplicates(files("packages/a/src/x.ts", "packages/b/src/y.ts", 6))).toHaveLength(1);
  expect(findDuplicates(files("packages/a/src/x.ts", "packages/b/src/y.ts", 5))).toEqual([]);
  expect(findDuplicates(files("packages/a/src/x.ts", "packages/a/src/y.ts", 6))).toEqual([]);
});
