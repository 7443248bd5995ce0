/**
 * Runs what the documentation shows: the commands in `console` blocks of the README and of the pages in docs/, with the output printed there,
 * and the example programs. `npm test` runs the commands of the README; the soak runs those of every page and checks types. Blocks of one page
 * marked `ts runnable` are one program; `// prints …` is its expected output.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isSoak } from "@lossless/testkit/rounds.ts";
import { afterAll, expect, test } from "vitest";
import { listBlocks, listPromises, listProjectFiles, ROOT } from "./source-files.ts";

// Inside the project, so that its packages are found; ignored by git.
mkdirSync(join(ROOT, ".cache"), { recursive: true });
const folder = mkdtempSync(join(ROOT, ".cache", "docs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const { PATH, NODE_COMPILE_CACHE } = process.env;
const LCM = join(ROOT, "packages", "cli", "bin", "lcm.js");

const pages = listProjectFiles().filter((path) => /^docs\/.*\.md$/.test(path));
const runnable = pages.filter((page) => listBlocks(page, "ts runnable").length > 0);

test("there are examples to run", () => {
  expect(runnable).toContain("docs/library.md");
});

test.each(runnable)("the examples of %s run and print what they say", (page) => {
  const program = listBlocks(page, "ts runnable").join("\n");
  const home = mkdtempSync(join(folder, "program-"));
  const file = join(home, "example.ts");
  writeFileSync(file, program);
  const run = spawnSync(process.execPath, [file], { cwd: home, encoding: "utf8" });
  expect(run.stderr).toBe("");
  expect(run.stdout.trimEnd().split("\n")).toEqual(listPromises(program));
});

test.runIf(isSoak)("the examples pass the type check", () => {
  const home = mkdtempSync(join(folder, "types-"));
  for (const [index, page] of runnable.entries()) {
    writeFileSync(join(home, `example-${index}.ts`), listBlocks(page, "ts runnable").join("\n"));
  }
  const config = { extends: "../../../tsconfig.json", include: ["*.ts"] };
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  // Several threads would compute the same types several times.
  const args = [compiler, "-p", home, "--singleThreaded"];
  const run = spawnSync(process.execPath, args, { cwd: home, encoding: "utf8" });
  const ours = run.stdout.split("\n").filter((line) => line.startsWith("example-"));
  expect(ours).toEqual([]);
});

/** Commands with the lines shown below each. */
function readSessions(page: string): { command: string; shown: string[] }[] {
  const lines = listBlocks(page, "console").flatMap((block) => block.trimEnd().split("\n"));
  const sessions: { command: string; shown: string[] }[] = [];
  for (const line of lines) {
    if (line.startsWith("$ ")) sessions.push({ command: line.slice(2), shown: [] });
    else sessions.at(-1)?.shown.push(line);
  }
  return sessions;
}

const withCommands = ["README.md", ...pages].filter((page) => listBlocks(page, "console").length > 0);

test("there are commands to run", () => {
  const wanted = ["README.md", "docs/claude-code.md", "docs/codex.md", "docs/troubleshooting.md"];
  expect(withCommands).toEqual(expect.arrayContaining(wanted));
});

/** A matcher for a line of output on a page; an ellipsis matches any text. */
function matcherOf(line: string): RegExp {
  const parts = line.split(/ ?…/).map((part) => RegExp.escape(part));
  return new RegExp(`^${parts.join(".*")}`, "m");
}

test.each(isSoak ? withCommands : ["README.md"])("the commands of %s give what it shows", (page) => {
  const home = mkdtempSync(join(folder, "commands-"));
  symlinkSync(join(ROOT, "packages"), join(home, "packages"), "dir");
  const sessions = readSessions(page);
  expect(sessions.length).toBeGreaterThan(2);
  for (const { command, shown } of sessions) {
    const line = command.replace(/^(npx )?lcm\b/, `"${process.execPath}" "${LCM}"`);
    const run = spawnSync("bash", ["-c", `set -o pipefail; ${line}`], {
      cwd: home,
      encoding: "utf8",
      env: { PATH, NODE_COMPILE_CACHE, HOME: home, TZ: "UTC", NO_COLOR: "1" },
    });
    const said = `${command}\n${run.stdout}${run.stderr}`;
    // A page that shows an error shows a failing command.
    const fails = shown.some((text) => text.startsWith("lcm: "));
    if (fails) expect(run.status, said).toBeGreaterThan(0);
    else expect(run.status, said).toBe(0);
    for (const text of shown) expect(fails ? run.stderr : run.stdout, command).toMatch(matcherOf(text));
  }
});
