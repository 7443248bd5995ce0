/**
 * `npm run test:planted`: plants each bug of `bugs.ts` in a copy of the source, runs the one test that must catch it, and fails when that test
 * passes. First all those tests must pass without a bug: a test that always fails would catch everything.
 *
 *     npm run test:planted -- [words of a bug's name]
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUGS } from "./bugs.ts";
import type { PlantedBug } from "./bugs.ts";

const ROOT = join(import.meta.dirname, "../..");
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");
const LINKED_MODULES = ["@lossless", "lossless-claw"];
const OWN_MODULES = [...LINKED_MODULES, ".cache"];
/** Only their names select the tests to run. */
const ENVIRONMENT = { ...process.env, LCM_SUITE: "every" };

type Verdict = "passed" | "failed" | "absent";

function main(): number {
  const words = process.argv.slice(2).join(" ");
  const bugs = BUGS.filter(({ name }) => name.includes(words));
  if (bugs.length === 0) throw new Error(`no planted bug is named like "${words}"`);
  const copy = copyProject();
  try {
    const problems = [...bugs.flatMap((bug) => findBadEdit(copy, bug)), ...findBadTests(copy, bugs)];
    for (const problem of problems) console.error(problem);
    if (problems.length > 0) return 1;
    const caught = bugs.filter((bug) => isCaught(copy, bug));
    console.log(`${caught.length} of ${bugs.length} planted bugs caught`);
    return caught.length === bugs.length ? 0 : 1;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** The current files of the project, committed or not, with the installed packages of the original. */
function copyProject(): string {
  const copy = mkdtempSync(join(tmpdir(), "lcm-planted-"));
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const listed = execFileSync("git", args, { cwd: ROOT, encoding: "utf8" });
  for (const file of listed.split("\0").filter((name) => existsSync(join(ROOT, name)) && name !== ""))
    cpSync(join(ROOT, file), join(copy, file));
  const modules = join(copy, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(ROOT, "node_modules")))
    if (!OWN_MODULES.includes(name)) symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  // These are relative links into the project, and so into the copy.
  for (const name of LINKED_MODULES)
    cpSync(join(ROOT, "node_modules", name), join(modules, name), {
      recursive: true,
      verbatimSymlinks: true,
    });
  return copy;
}

function findBadEdit(copy: string, { name, file, find }: PlantedBug): string[] {
  const times = readFileSync(join(copy, file), "utf8").split(find).length - 1;
  return times === 1
    ? []
    : [`"${name}": its text stands ${times} times in ${file}, and must stand there once`];
}

/** Without a bug every test must pass. */
function findBadTests(copy: string, bugs: readonly PlantedBug[]): string[] {
  const verdicts = runTests(copy, bugs);
  return bugs.flatMap(({ name, test: [file, title] }) => {
    const verdict = verdicts(file, title);
    return verdict === "passed"
      ? []
      : [`"${name}": without it, the test "${title}" of ${file} is ${verdict}`];
  });
}

function isCaught(copy: string, bug: PlantedBug): boolean {
  const path = join(copy, bug.file);
  const sound = readFileSync(path, "utf8");
  writeFileSync(
    path,
    sound.replace(bug.find, () => bug.replace),
  );
  try {
    const verdict = runTests(copy, [bug])(...bug.test);
    console.log(`${verdict === "failed" ? "caught" : "MISSED"}  ${bug.name}  (${bug.test[0]})`);
    return verdict === "failed";
  } finally {
    writeFileSync(path, sound);
  }
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

/** Runs the tests of some bugs, and returns how each ended. */
function runTests(copy: string, bugs: readonly PlantedBug[]): (file: string, title: string) => Verdict {
  const files = [...new Set(bugs.map(({ test: [file] }) => file))];
  const titles = bugs.map(({ test: [, title] }) => RegExp.escape(title));
  const output = join(copy, "verdict.json");
  rmSync(output, { force: true });
  const args = [
    VITEST,
    "run",
    ...files,
    "-t",
    `(${titles.join("|")})$`,
    "--reporter=json",
    `--outputFile=${output}`,
  ];
  const { error, stderr } = spawnSync(process.execPath, args, {
    cwd: copy,
    encoding: "utf8",
    env: ENVIRONMENT,
  });
  if (error || !existsSync(output)) throw new Error(`cannot run the tests: ${error?.message ?? stderr}`);
  const { testResults } = JSON.parse(readFileSync(output, "utf8")) as Report;
  return (file, title) => {
    const results = testResults
      .filter(({ name }) => name.endsWith(file))
      .flatMap((result) => result.assertionResults);
    const ends = new Set(results.filter((result) => result.title === title).map((result) => result.status));
    return ends.has("failed") ? "failed" : ends.has("passed") ? "passed" : "absent";
  };
}

process.exitCode = main();
