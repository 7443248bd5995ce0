/**
 * `npm run bench -- --compare <commit> [--rounds 12]`: compares the working tree with an earlier commit. The commit is checked out into a
 * worktree and measures itself with its own `compare-program.ts`; if it has none yet, it gets today's `bench/`. Both processes stay alive and
 * alternate sample by sample, so that other load affects both. The result is processor time per unit, as the median of the ratios of
 * neighbouring samples.
 */
import { execFileSync, fork, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import type { Sample } from "./compare-program.ts";
import { judge, median, readRounds, round, showProgress } from "./history.ts";
import type { BenchResult } from "./report.ts";

type Row = BenchResult["rows"][number];

interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly limit: number;
}

const MEASURES: readonly Measure[] = [
  { name: "turn ingest", unit: "µs per turn", limit: 1.1 },
  { name: "search", unit: "µs per search", limit: 1.1 },
  { name: "open", unit: "µs per open", limit: 1.1 },
  { name: "assemble", unit: "µs per token", limit: 1.1 },
  { name: "assemble in small windows", unit: "µs per token", limit: 1.1 },
  { name: "fold", unit: "µs per token", limit: 1.1 },
  { name: "database size", unit: "bytes per message", limit: 1.03 },
];
const DEFAULT_ROUNDS = 20;
/** Excludes the time to compile the code. */
const WARM_UP_ROUNDS = 4;
const ROOT = join(import.meta.dirname, "..");
const PROGRAM = join("bench", "compare-program.ts");

export async function compare(commit: string, args: readonly string[]): Promise<BenchResult> {
  const rounds = readRounds(args, DEFAULT_ROUNDS);
  using tree = openWorktree(commit);
  const before = new Side(tree.path);
  const after = new Side(ROOT);
  try {
    const rows: Row[] = [];
    for (const measure of MEASURES) rows.push(await compareMeasure(measure, { before, after }, rounds));
    return { name: `working tree / ${commit.slice(0, 10)}`, rows, notes: NOTES };
  } finally {
    await Promise.all([before.close(), after.close()]);
    showProgress("");
  }
}

const NOTES = [
  "Processor time of the whole process, median of the samples. Ratio: the median over neighbouring samples, with the middle half of them beside it; a middle half that reaches below the bar speaks for noise: repeat with --rounds 40.",
];

async function compareMeasure(
  { name, unit, limit }: Measure,
  { before, after }: { before: Side; after: Side },
  rounds: number,
): Promise<Row> {
  if (!(await before.hasMeasure(name)))
    return { measure: name, unit, holds: "the earlier version has no such measure" };
  const pairs: { before: number; after: number }[] = [];
  for (let i = -WARM_UP_ROUNDS; i < rounds; i++) {
    showProgress(`${name}: round ${i + 1}/${rounds}`);
    const isAfterFirst = i % 2 === 0;
    const first = await (isAfterFirst ? after : before).sample(name);
    const second = await (isAfterFirst ? before : after).sample(name);
    if (i >= 0)
      pairs.push(isAfterFirst ? { before: second, after: first } : { before: first, after: second });
  }
  const ratios = pairs.map((pair) => pair.after / pair.before).toSorted((a, b) => a - b);
  const at = (share: number): number => round(ratios[Math.floor(share * (ratios.length - 1))] ?? 0, 3);
  const ratio = round(median(ratios), 3);
  const scale = unit.startsWith("µs") ? 1000 : 1;
  return {
    measure: name,
    unit,
    before: round(median(pairs.map((pair) => pair.before)) * scale, 2),
    after: round(median(pairs.map((pair) => pair.after)) * scale, 2),
    ratio,
    "middle half": `${at(0.25)}–${at(0.75)}`,
    ...judge(ratio, limit),
  };
}

type Answer = { readonly sample: Sample } | { readonly error: string };

/** One version in its own process. */
class Side {
  readonly #tree: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #onAnswer: (answer: Answer) => void = () => undefined;

  constructor(tree: string) {
    this.#tree = tree;
    this.#process = fork(join(tree, PROGRAM), { cwd: tree, execArgv: [] });
    this.#process.on("message", (answer: Answer) => this.#onAnswer(answer));
    this.#ended = once(this.#process, "exit").then(() => this.#onAnswer({ error: "its process ended" }));
  }

  /** Cost per unit. */
  async sample(name: string): Promise<number> {
    const answer = await new Promise<Answer>((resolve) => {
      this.#onAnswer = resolve;
      this.#process.send(name, (error) => {
        if (error !== null)
          resolve({ error: "its process has ended; it may need packages that this tree does not have" });
      });
    });
    if ("error" in answer) throw new Error(`cannot measure ${name} in ${this.#tree}: ${answer.error}`);
    return answer.sample.cost / answer.sample.units;
  }

  async hasMeasure(name: string): Promise<boolean> {
    try {
      await this.sample(name);
      return true;
    } catch (error) {
      if (String(error).includes(`there is no measure "${name}"`)) return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    await this.#ended;
  }
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
}

/** The commit after `--compare`; null when it does not exist. */
export function readCommit(args: readonly string[]): string | null {
  const name = args[args.indexOf("--compare") + 1] ?? "";
  const { status, stdout } = spawnSync("git", ["rev-parse", "--verify", "--quiet", `${name}^{commit}`], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : null;
}

interface Worktree extends Disposable {
  readonly path: string;
}

export function openWorktree(commit: string): Worktree {
  const folder = makeTemporaryFolder("lossless-compare-");
  const path = folder.file("tree");
  git("worktree", "add", "--quiet", "--detach", path, commit);
  if (!existsSync(join(path, PROGRAM))) cpSync(join(ROOT, "bench"), join(path, "bench"), { recursive: true });
  linkModules(path);
  return {
    path,
    [Symbol.dispose]: () => {
      git("worktree", "remove", "--force", path);
      folder[Symbol.dispose]();
    },
  };
}

/** Links the packages of the tree itself, and everything else as installed here. */
function linkModules(tree: string): void {
  const own = new Map(
    readdirSync(join(tree, "packages"))
      .map((name) => join(tree, "packages", name))
      .filter((folder) => existsSync(join(folder, "package.json")))
      .map((folder) => [readName(folder), folder]),
  );
  const scopes = new Set([...own.keys()].map((name) => name.split("/")[0] ?? name));
  mkdirSync(join(tree, "node_modules"));
  for (const entry of readdirSync(join(ROOT, "node_modules")))
    if (!scopes.has(entry)) symlinkSync(join(ROOT, "node_modules", entry), join(tree, "node_modules", entry));
  for (const [name, folder] of own) {
    mkdirSync(join(tree, "node_modules", name, ".."), { recursive: true });
    symlinkSync(folder, join(tree, "node_modules", name));
  }
}

function readName(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { name: string }).name;
}
