/** The page is written for a browser, and therefore checked apart from everything that runs in Node. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

test("the page passes the type check", () => {
  const root = join(import.meta.dirname, "../../../..");
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const project = join(root, "packages", "web", "page", "tsconfig.json");
  const run = spawnSync(process.execPath, [compiler, "--noEmit", "-p", project], {
    cwd: root,
    encoding: "utf8",
  });
  const ours = run.stdout.split("\n").filter((line) => line.startsWith("packages/web/page/"));
  expect(ours).toEqual([]);
});
