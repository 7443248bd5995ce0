/**
 * `npm run bench -- <name> [--json] [args]`: runs `bench/<name>.ts`, which exports `run(args)`. A file without that export is a part of
 * another benchmark and cannot be run by itself.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
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

const [name, ...args] = process.argv.slice(2);
const benches = listBenches();
if (name === undefined || !benches.includes(name)) {
  const problem = name === undefined ? "name a benchmark" : `there is no benchmark "${name}"`;
  console.error(`${problem}: npm run bench -- <${benches.join(" | ")}> [--json]`);
  process.exitCode = 2;
} else {
  const bench = (await import(`./${name}.ts`)) as Bench;
  printResult(await bench.run(args.filter((arg) => arg !== "--json")), { json: args.includes("--json") });
}
