/** Kills a worker at one step after another behind an answer, on one archive, and finds out which answers were asked for again. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openEngine } from "lossless-claw";
import { POSITION_STEP } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect } from "vitest";
import type { DoomedOrders } from "./doomed-worker.ts";
import { look } from "./worker-stage.ts";

const PROGRAM = fileURLToPath(new URL("./doomed-worker.ts", import.meta.url));
const SESSION = { key: "agent:main:paid", id: "paid", owner: "main" };
const MESSAGES = 40;
/** More than any lease, and long enough that a remade summary is swapped in. */
const HOUR_MS = 3_700_000;

async function say(database: string, places: readonly number[]): Promise<void> {
  const engine = await openEngine({ database, thread: false });
  const messages = places.map((at) => ({
    eventId: `e${at}`,
    position: at * POSITION_STEP,
    message: {
      role: at % 2 === 0 ? "user" : "assistant",
      content: `fact-1-${at} ${"of some words that were said about it ".repeat(12)}`,
    },
  }));
  await engine.ingest({ session: SESSION, messages });
  await engine.close();
}

async function run(orders: DoomedOrders): Promise<"killed" | "done"> {
  const child = fork(PROGRAM, [JSON.stringify(orders)], {
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  if (signal === "SIGKILL") return "killed";
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  return "done";
}

const countPaid = (database: string): Promise<number> =>
  look(database, async (engine) => (await engine.spend({ since: 0, by: "all" }))[0]?.calls ?? 0);

/** More than there are between two answers of most kinds. */
export const STEPS = 12;

/**
 * The first worker is killed so many steps after its first answer, the next one a step later, and so on; the last one ends by itself. Then a row that comes
 * late makes summaries stale, and it begins again. What the ledger has was stored with its answer, so nobody may ask for it again; an answer that is not in
 * it was lost before it was stored.
 */
export async function expectPaidOnceWhenKilled(
  database: string,
  { kills, firstSteps = 1 }: { readonly kills: number; readonly firstSteps?: number },
): Promise<void> {
  using folder = makeTemporaryFolder("lcm-paid-");
  const log = join(folder.path, "answers");
  const readLog = (): string[] => (existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : []);
  const stored = new Set<string>();
  let aheadMs = 0;
  const work = async (stepsAfterAnswer: number | null): Promise<"killed" | "done"> => {
    const [paidBefore, known] = [await countPaid(database), readLog().length];
    aheadMs += HOUR_MS;
    const end = await run({ database, log, stepsAfterAnswer, aheadMs });
    const lines = readLog().slice(known);
    const answers = lines.filter((line) => !line.startsWith("dead"));
    const paid = (await countPaid(database)) - paidBefore;
    expect(answers.filter((answer) => stored.has(answer))).toEqual([]);
    for (const answer of answers.slice(0, paid)) stored.add(answer);
    // The first thing that is done with an answer is to store it: only who dies before that begins has lost it.
    expect(answers.length - paid).toBe(lines.at(-1) === "dead 1" ? 1 : 0);
    return end;
  };
  const workAndDie = async (): Promise<void> => {
    for (let round = 0; round < kills; round++)
      if ((await work(1 + ((firstSteps - 1 + round) % STEPS))) === "done") return;
    expect(await work(null)).toBe("done");
  };
  const late = Math.floor(MESSAGES / 3);
  const places = Array.from({ length: MESSAGES }, (_, at) => at);
  await say(
    database,
    places.filter((at) => at !== late),
  );
  await workAndDie();
  await say(database, [late]);
  await workAndDie();
  await look(database, async (engine) => {
    expect(await engine.verify()).toMatchObject({ ok: true });
    const { items } = await engine.listSummaries({ conversationId: 1, limit: 1_000 });
    expect(items.map(({ model }) => model)).not.toContain("extractive");
    const vectorCalls = [...stored].filter((answer) => answer.startsWith("vectors")).length;
    expect(vectorCalls).toBeGreaterThan(0);
    expect(items).toHaveLength(stored.size - vectorCalls);
    expect(await engine.embedStatus()).toMatchObject({ spaces: [{ vectors: MESSAGES }] });
    // What the late row made stale was written again, once.
    expect(items.filter(({ state }) => state === "retired")).not.toEqual([]);
  });
}
