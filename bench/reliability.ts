/**
 * The claims of this project, each with its number, in a short form of a few minutes. `docs/reliability.md` lists them with the commands that
 * measure more. Times depend on the machine; only counts and ratios of one run are judged.
 *
 * `npm run bench -- reliability [--full] [--only 3]`; `--full` takes hours: a million events, and thousands of contexts.
 */
import { showProgress } from "./history.ts";
import type { BenchResult } from "./report.ts";
import * as items from "./reliability-items.ts";
import type { Measure } from "./reliability-items.ts";
import { unknownHost } from "./reliability-host.ts";

/** By the numbers of the page. */
const ITEMS: readonly (readonly [number, string, Measure])[] = [
  [1, "nothing is stored twice", items.replay],
  [2, "a kill loses nothing", items.kills],
  [3, "ten processes, one archive", items.crowd],
  [4, "size hardly matters", items.sizes],
  [5, "no request is refused", items.cuts],
  [6, "models in trouble", items.models],
  [7, "the cap on spending", items.cap],
  [8, "the front of a request", items.prefix],
  [9, "scripts and languages", items.languages],
  [10, "forgetting", items.forgetting],
  [11, "other agents' rows", items.owners],
  [12, "settings that cannot work", items.settings],
  [13, "a host of an unknown version", unknownHost],
  [14, "imports and exports", items.interchange],
];

export async function run(args: readonly string[]): Promise<BenchResult> {
  const isFull = args.includes("--full");
  const only = args.includes("--only") ? Number(args[args.indexOf("--only") + 1]) : null;
  const rows: Record<string, string | number>[] = [];
  for (const [number, what, measure] of ITEMS.filter(([at]) => only === null || at === only)) {
    showProgress(what);
    const { found, holds } = await measure(isFull).catch((error: unknown) => ({
      found: `fails: ${String(error)}`,
      holds: false,
    }));
    rows.push({ number, what, found, holds: holds ? "yes" : "NO" });
  }
  if (rows.some(({ holds }) => holds === "NO")) process.exitCode = 1;
  return { name: "What is proven, in short", rows };
}
