/**
 * Inputs that once reached something new, or broke something, in every parser; a soak continues the search from them, always with the same seed.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

const RUN = join(import.meta.dirname, "run.ts");
/** Number of inputs per target. */
const FEW = rounds({ test: 2, soak: 1_000 });
const RUNS = rounds({ test: 0, soak: 40 });

/** In a separate process: parsers of everything together would change what other tests share. */
function fuzz(...args: readonly string[]): { status: number | null; failures: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [RUN, ...args], { encoding: "utf8" });
  return { status, failures: status === 0 ? "" : stdout + stderr };
}

test("what is kept in the corpus holds in every parser", () => {
  expect(fuzz("--corpus", "--few", String(FEW))).toEqual({ status: 0, failures: "" });
});

test.runIf(isSoak)("a short search finds nothing that does not hold", () => {
  expect(fuzz("--seed", "1", "--runs", String(RUNS), "--minutes", "10", "--discard")).toEqual({
    status: 0,
    failures: "",
  });
});
