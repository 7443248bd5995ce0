/**
 * `npm run fuzz`: feeds every parser with new inputs, and keeps those that reach new parts of the source.
 *
 *     npm run fuzz -- [target …] [--minutes 1] [--runs N] [--seed N] [--discard]
 *     npm run fuzz -- target --replay FILE
 *     npm run fuzz -- [target …] --corpus [--few N]
 *
 * The second runs one input, the third the corpus (or a few of each target), and neither searches. Otherwise each target has its own process,
 * `--minutes` each. A failure is written to a file, with the command that replays it; status 1. An input that hangs the process, or fills its
 * memory, is a failure too.
 */
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { nameInput, readCorpus } from "./corpus.ts";
import type { Kept } from "./corpus.ts";
import { findTarget, search, tryInput } from "./search.ts";
import type { SearchNews, SearchOrder } from "./search.ts";
import { TARGETS } from "./targets.ts";

const FAILURES = join(import.meta.dirname, "../../node_modules/.cache/lcm-fuzz");
const LOOK_MS = 1_000;
const MEMORY_MB = 768;
const MINUTE_MS = 60_000;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "1" },
      runs: { type: "string", default: "Infinity" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      replay: { type: "string" },
      corpus: { type: "boolean", default: false },
      few: { type: "string", default: "Infinity" },
      discard: { type: "boolean", default: false },
    },
  });
  const names = positionals.length > 0 ? positionals : TARGETS.map(({ name }) => name);
  for (const name of names) findTarget(name);
  if (values.replay !== undefined) return replay(names[0] ?? "", [readKept(values.replay)]);
  if (values.corpus) {
    let failures = 0;
    for (const name of names) failures += await replay(name, pickSome(readCorpus(name), Number(values.few)));
    return failures === 0 ? 0 : 1;
  }
  const folder = mkdtempSync(join(tmpdir(), "lcm-fuzz-"));
  let failures = 0;
  for (const target of names)
    failures += await searchApart({
      target,
      seed: Number(values.seed),
      untilMs: Number(values.minutes) * MINUTE_MS,
      runs: Number(values.runs),
      keeps: !values.discard,
      current: join(folder, target),
    });
  rmSync(folder, { recursive: true });
  console.log(failures === 0 ? "nothing failed" : `${failures} failed`);
  return failures === 0 ? 0 : 1;
}

const readKept = (path: string): Kept => ({ name: basename(path), input: readFileSync(path) });

/** A sample spread over all of them. */
const pickSome = <T>(all: readonly T[], few: number): T[] =>
  all.filter(
    (_, at) =>
      Math.floor((at * few) / all.length) !== Math.floor(((at - 1) * few) / all.length) || few >= all.length,
  );

/** Returns how many inputs failed. */
async function replay(target: string, inputs: readonly Kept[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "lcm-fuzz-"));
  const probe = await findTarget(target).open(folder);
  let failures = 0;
  for (const { name, input } of inputs) {
    const error = await tryInput(probe, input);
    if (error === null) continue;
    failures++;
    console.error(`${target}, ${name}:`, error);
  }
  await probe.close();
  rmSync(folder, { recursive: true });
  console.log(`${target}: ${inputs.length} inputs, ${failures} failed`);
  return failures;
}

/** Returns how many failures were found. */
async function searchApart(order: SearchOrder): Promise<number> {
  const child = fork(import.meta.filename, ["--child"], {
    execArgv: [`--max-old-space-size=${MEMORY_MB}`],
    serialization: "advanced",
  });
  let failures = 0;
  let isDone = false;
  const fail = (input: Buffer, error: string): void => {
    failures++;
    reportFailure(order, input, error);
  };
  child.on("message", (news: SearchNews) => {
    if (news.kind === "failure") return fail(Buffer.from(news.input, "base64"), news.error);
    isDone = true;
    const kept = order.keeps ? `, ${news.kept} inputs kept` : "";
    console.log(`${order.target}: ${news.runs} runs, ${news.functions} functions reached${kept}`);
  });
  writeFileSync(order.current, "");
  const watch = setInterval(() => {
    if (Date.now() - statSync(order.current).mtimeMs < HANG_LIMIT_MS) return;
    child.kill("SIGKILL");
  }, LOOK_MS);
  child.send(order);
  const [status, signal] = (await once(child, "exit")) as [number | null, string | null];
  clearInterval(watch);
  if (!isDone) fail(readFileSync(order.current), `the process ended: status ${status}, signal ${signal}`);
  return failures;
}

function reportFailure({ target, seed }: SearchOrder, input: Buffer, error: string): void {
  mkdirSync(FAILURES, { recursive: true });
  const path = join(FAILURES, `${target}-${nameInput(input)}`);
  writeFileSync(path, input);
  console.error(`${target} (seed ${seed}): ${error}`);
  console.error(`  npm run fuzz -- ${target} --replay ${path}\n`);
}

if (process.argv[2] === "--child") {
  process.once("message", (order: SearchOrder) => {
    const tell = (news: SearchNews): void => void process.send?.(news);
    void search(order, tell).finally(() => process.disconnect());
  });
} else process.exit(await main());
