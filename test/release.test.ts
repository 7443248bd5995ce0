/** Releasing a version: the changed texts, and the command itself in a copy of the project that is its own repository. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit";
import { afterAll, describe, expect, test } from "vitest";
import { chooseVersion, releaseChanges } from "../scripts/package/version.ts";
import { listProjectFiles, readProjectFile, ROOT } from "./source-files.ts";

describe("a version", () => {
  test.each([
    ["major", "1.0.0"],
    ["minor", "0.3.0"],
    ["patch", "0.2.10"],
    ["0.10.0", "0.10.0"],
  ])("%s after 0.2.9 is %s", (request, version) => {
    expect(chooseVersion("0.2.9", request)).toBe(version);
  });

  test.each(["0.2.9", "0.2.8", "0.1.10", "1.2", "v1.2.3", "01.0.0", "next"])("%s is refused", (request) => {
    expect(() => chooseVersion("0.2.9", request)).toThrow(/is not a version|is not newer/);
  });
});

describe("the changelog", () => {
  test("gets a heading for what was unreleased", () => {
    const before = "# Changes\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n";
    const after = "# Changes\n\n## Unreleased\n\n## 0.2.0, 2026-12-24\n\n- New.\n\n## 0.1.0\n\n- Old.\n";
    expect(releaseChanges(before, "0.2.0", "2026-12-24")).toBe(after);
  });

  test("without anything new is refused", () => {
    const empty = "# Changes\n\n## Unreleased\n\n## 0.1.0\n\n- Old.\n";
    expect(() => releaseChanges(empty, "0.2.0", "2026-12-24")).toThrow("nothing to release");
  });
});

describe("npm run release, in a repository of its own", () => {
  const folder = makeTemporaryFolder();
  afterAll(() => folder[Symbol.dispose]());
  const run = (program: string, ...args: string[]) => {
    const names = {
      GIT_AUTHOR_NAME: "t",
      GIT_AUTHOR_EMAIL: "t@t",
      GIT_COMMITTER_NAME: "t",
      GIT_COMMITTER_EMAIL: "t@t",
    };
    const env = { PATH: process.env["PATH"], HOME: folder.path, GIT_CONFIG_NOSYSTEM: "1", ...names };
    return spawnSync(program, args, { cwd: folder.path, encoding: "utf8", env });
  };
  const release = (...args: string[]) => run(process.execPath, "scripts/release.ts", ...args);
  const read = (path: string): string => readFileSync(folder.file(path), "utf8");

  test("changes nothing by default, and all that names the version with --apply", () => {
    for (const path of listProjectFiles().filter((path) => !path.startsWith("docs/images/"))) {
      mkdirSync(dirname(folder.file(path)), { recursive: true });
      cpSync(join(ROOT, path), folder.file(path));
    }
    symlinkSync(join(ROOT, "node_modules"), folder.file("node_modules"), "dir");
    run("git", "init", "--quiet");
    // The link is not a folder, so the ignore pattern does not cover it.
    run("git", "add", "--all", "--", ":!node_modules");
    run("git", "commit", "--quiet", "--message", "All");
    run("git", "config", "core.excludesFile", "/dev/null");
    run("sh", "-c", "echo node_modules >> .git/info/exclude");

    const dry = release("99.0.0");
    expect(dry.stderr).toBe("");
    expect(dry.stdout).toContain('would commit "Release 99.0.0" and tag it v99.0.0');
    expect(run("git", "status", "--porcelain").stdout).toBe("");

    const done = release("99.0.0", "--apply");
    expect(done.stderr).toBe("");
    expect(done.status).toBe(0);
    expect(run("git", "status", "--porcelain").stdout).toBe("");
    expect(run("git", "describe").stdout.trim()).toBe("v99.0.0");
    const { version } = JSON.parse(readProjectFile("package.json")) as { version: string };
    for (const path of run("git", "show", "--name-only", "--format=", "HEAD").stdout.trim().split("\n")) {
      expect(read(path), path).toContain("99.0.0");
      if (path.startsWith("packages/")) expect(read(path), path).not.toContain(`"${version}"`);
    }
    expect(read("CHANGELOG.md")).toMatch(/^## Unreleased\n\n## 99\.0\.0, \d{4}-\d\d-\d\d\n/m);

    const again = release("99.0.0", "--apply");
    expect(again.status).toBe(1);
    expect(again.stderr).toContain("99.0.0 is not newer than 99.0.0");
  });
});
