/**
 * Nothing wears out: what a process holds and what its calls cost stay as they are, however long it runs. `npm run test:soak -- --minutes 60`
 * plays for an hour and prints what it saw; a soak without minutes plays a few hundred cycles.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { makeTemporaryFolder } from "@lossless/testkit";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";
import { findWear, renderThirds } from "./lasting-wear.ts";
import type { LastingOrders, LastingSample } from "./lasting-program.ts";

const PROGRAM = fileURLToPath(new URL("./lasting-program.ts", import.meta.url));
const MINUTES = Number(process.env["LCM_MINUTES"] ?? 0);
/** More samples than anything wears out by chance. */
const SAMPLES = 24;

async function play(orders: LastingOrders): Promise<LastingSample[]> {
  const child = fork(PROGRAM, [JSON.stringify(orders)], {
    execArgv: ["--expose-gc"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let errors = "";
  child.stderr?.on("data", (data: Buffer) => (errors += data.toString()));
  const samples: LastingSample[] = [];
  child.on("message", (sample) => samples.push(sample as LastingSample));
  const [status] = (await once(child, "close")) as [number | null];
  if (status !== 0) throw new Error(`the program ended with status ${status}: ${errors}`);
  return samples;
}

test.runIf(isSoak)(
  "memory, files, handles and the cost of calls stay flat while a host goes on and on",
  { timeout: (MINUTES + 15) * 60_000 },
  async () => {
    using folder = makeTemporaryFolder();
    const orders = { database: folder.file("lcm.db"), minutes: MINUTES, samples: SAMPLES };
    const samples = await play({ ...orders, cycles: MINUTES > 0 ? 0 : rounds({ test: 0, soak: 192 }) });
    console.log(renderThirds(samples));
    expect(findWear(samples)).toEqual([]);
  },
);

describe("what wears out is named", () => {
  const flat = Array.from({ length: SAMPLES }, (_, at): LastingSample => ({
    seconds: at,
    cycles: at * 10,
    messages: at * 40,
    heapMb: 25,
    memoryMb: 200,
    files: 24,
    handles: 1,
    calls: { turn: [2, 2.5], search: [8, 9] },
  }));
  const grown = (change: (at: number) => Partial<LastingSample>): string[] =>
    findWear(flat.map((sample, at) => ({ ...sample, ...change(at) })));

  test("by a sentence for each", () => {
    expect(findWear(flat)).toEqual([]);
    expect(grown((at) => ({ heapMb: 25 + at }))).toEqual([
      "the heap grew from 31 MB in the first third to 45 MB in the last",
    ]);
    expect(grown((at) => ({ memoryMb: 200 + 10 * at }))).toEqual([
      "the memory of the process grew from 260 MB in the first third to 400 MB in the last",
    ]);
    expect(grown((at) => ({ files: 24 + Math.floor(at / 6) }))).toEqual([
      "open files grew from 25 in the first third to 27 in the last",
    ]);
    expect(grown((at) => ({ calls: { turn: [2, 2 + at / 2] } }))).toEqual([
      "the cost of a call (turn) grew from 3.5 ms in the first third to 10.5 ms in the last",
    ]);
  });

  test("and a call that never came says so", () => {
    expect(grown((at) => (at > 15 ? { calls: { turn: [2] } } : {}))).toEqual([
      "there was no call (search) in the last third",
    ]);
  });
});
