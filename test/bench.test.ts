/** The benchmarks' own program. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { ROOT } from "./source-files.ts";

test("with --json a benchmark prints its result as JSON and nothing else", () => {
  // No item has this number: what is run is the program around them.
  const args = ["bench/run.ts", "reliability", "--only", "0", "--json"];
  const printed = execFileSync(process.execPath, args, { cwd: ROOT, encoding: "utf8", stdio: "pipe" });
  expect(JSON.parse(printed)).toEqual({ name: "What is proven, in short", rows: [] });
});
