/**
 * `npm run bench -- <name> [--json] [args]`: runs `bench/<name>.ts`, which exports `run(args)`. A file without that export is part of another
 * benchmark and cannot be run alone. `npm run bench -- --compare <commit>` compares with an earlier commit (`compare.ts`).
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { compare, readCommit } from "./compare.ts";
import { printResult } from "./report.ts";
import type { BenchResult } from "./report.ts";

interface Bench {
  run(args: readonly string[]): Promise<BenchResult>;
}

function listBenches(): string[] {
  return readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".ts") && file !== "run.ts")
    .filter((file) =>
      /^export async function run\b/m.test(readFileSync(path.join(import.meta.dirname, file), "utf8")),
    )
    .map((file) => path.basename(file, ".ts"))
    .toSorted();
}

/** Status 1 when a measure is over its limit. */
async function runComparison(): Promise<void> {
  const commit = readCommit(args);
  if (commit === null) return refuse("name a commit to compare with");
  const result = await compare(commit, args);
  printResult(result, { json });
  if (result.rows.some(({ holds }) => holds === "NO")) process.exitCode = 1;
}

function refuse(problem: string): void {
  console.error(`${problem}: npm run bench -- <${benches.join(" | ")} | --compare COMMIT> [--json]`);
  process.exitCode = 2;
}

const args = process.argv.slice(2).filter((arg) => arg !== "--json");
const json = process.argv.includes("--json");
// Standard output has nothing but the result then.
if (json) console.log = console.error;
const [name = ""] = args;
const benches = listBenches();
if (args.includes("--compare")) {
  await runComparison();
} else if (benches.includes(name)) {
  const bench = (await import(`./${name}.ts`)) as Bench;
  printResult(await bench.run(args.slice(1)), { json });
} else {
  refuse(name === "" ? "name a benchmark" : `there is no benchmark "${name}"`);
}
