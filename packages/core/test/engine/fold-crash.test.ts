import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { runWithCrashes } from "@lossless/testkit/crash.ts";
import { rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";

import type { Engine } from "../../src/index.ts";

import { openFolding } from "./fold-engine.ts";
import { ArchiveView, findFaults } from "./context-checks.ts";
import { BUDGET_TOKENS, CONVERSATION, makeMarkedTurns } from "./fold-program.ts";
import type { CallNote } from "./fold-program.ts";
import { SESSION } from "./conversation.ts";

const PROGRAM = fileURLToPath(new URL("fold-program.ts", import.meta.url));
const LEASE_MS = 120_000;
const SEED = 31;
const KILLS = rounds({ test: 2, soak: 9 });
const TURNS = 130;

/** Filled once; each test has a copy. */
const original = makeTemporaryFolder();
afterAll(() => original[Symbol.dispose]());
let filled: Promise<void> | null = null;

async function fill(): Promise<void> {
  const engine = await openFolding(original.file("lcm.db"));
  await engine.ingest({ session: SESSION, messages: makeMarkedTurns(0, TURNS) });
  await engine.close();
}

async function makeArchive(): Promise<string> {
  await (filled ??= fill());
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  copyFileSync(original.file("lcm.db"), database);
  return database;
}

const compact = (engine: Engine) =>
  engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });

async function expectSound(engine: Engine, database: string): Promise<void> {
  expect((await engine.verify()).problems).toEqual([]);
  const archive = new ArchiveView(database, CONVERSATION);
  expect(archive.shown).toHaveLength(2 * TURNS);
  for (const budgetTokens of [2_000, BUDGET_TOKENS]) {
    const context = await engine.assemble({
      conversationId: CONVERSATION,
      budgetTokens,
      checkGrammars: true,
    });
    expect(context && findFaults(context, archive)).toEqual([]);
  }
}

test("a process killed at random moments of a fold leaves a whole cover, and what was stored is never paid for again", async () => {
  const database = await makeArchive();
  const runs: string[][] = [];
  const { kills } = await runWithCrashes({
    module: PROGRAM,
    // Each run begins when the lease of the one before has ended.
    args: (count) => [
      database,
      JSON.stringify({ skewMs: count * 2 * LEASE_MS, isBackground: count % 2 === 1 }),
    ],
    random: makeRandom(SEED),
    kills: KILLS,
    beforeRun: () => {
      runs.push([]);
      const archive = new ArchiveView(database, CONVERSATION);
      expect(archive.shown).toHaveLength(2 * TURNS);
    },
    onMessage: (message) => {
      const note = message as CallNote | { kind: "done" };
      if (note.kind === "call") runs.at(-1)?.push(note.key);
    },
  });
  expect(kills).toBe(KILLS);
  // A call is made only when the one before it has been stored, so of each run only the last one may have been in vain.
  const paid = new Set<string>();
  const twice: string[] = [];
  for (const calls of runs) {
    twice.push(...calls.filter((key) => paid.has(key)));
    for (const key of calls.slice(0, -1)) paid.add(key);
  }
  expect(twice).toEqual([]);
  expect(paid.size).toBeGreaterThan(2 * KILLS);

  const calls: string[] = [];
  const engine = await openFolding(database, { skewMs: 1_000 * LEASE_MS, onCall: (key) => calls.push(key) });
  await expectSound(engine, database);
  await compact(engine);
  await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });
  expect(calls).toEqual([]);
  expect((await engine.status({ sessionKey: SESSION.key })).folding?.summaries).toMatchObject({
    extractive: 0,
    stale: 0,
  });
  const spent = await engine.spend({ by: "all" });
  expect(spent[0]?.calls).toBeLessThanOrEqual(runs.flat().length);
});

/** A process that is in the middle of a fold: it has asked its model and waits for the answer. */
async function startHeld(database: string, options: object = {}): Promise<ChildProcess> {
  const child = fork(PROGRAM, [database, JSON.stringify({ skewMs: 0, holds: true, ...options })], {
    execArgv: [],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [message] = (await once(child, "message")) as [CallNote];
  expect(message.kind).toBe("call");
  return child;
}

/** Lets the model answer, this call and all that follow. */
async function finish(child: ChildProcess): Promise<number> {
  let calls = 1;
  child.on("message", (message: { kind: string }) => {
    if (message.kind !== "call") return;
    calls += 1;
    child.send("answer");
  });
  child.send("answer");
  const [status] = (await once(child, "close")) as [number | null];
  expect(status).toBe(0);
  return calls;
}

describe("two processes at one conversation", () => {
  test("one folds, the other says so and pays nothing", async () => {
    const database = await makeArchive();
    const child = await startHeld(database);
    const calls: string[] = [];
    const engine = await openFolding(database, { onCall: (key) => calls.push(key) });
    expect(await compact(engine)).toMatchObject({
      compacted: false,
      reason: "another process is folding this conversation",
    });
    expect(await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS })).toEqual({
      changed: false,
    });
    expect((await engine.status({ sessionKey: SESSION.key })).folding?.debt?.leaseHolder).toMatch(
      new RegExp(`^${child.pid}-`),
    );
    // Turns go on meanwhile, and so do contexts.
    await engine.ingest({ session: SESSION, messages: makeMarkedTurns(TURNS, TURNS + 1) });
    expect((await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS }))?.mode).toBe(
      "tight",
    );
    expect(await finish(child)).toBeGreaterThan(5);
    expect(calls).toEqual([]);
    expect(await compact(engine)).toMatchObject({ compacted: false, reason: "below threshold" });
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("upkeep keeps others out as a fold does", async () => {
    const database = await makeArchive();
    const first = await openFolding(database);
    await compact(first);
    await first.ingest({ session: SESSION, messages: makeMarkedTurns(TURNS, TURNS + 12) });
    await first.close();
    const child = await startHeld(database);
    const calls: string[] = [];
    const engine = await openFolding(database, { onCall: (key) => calls.push(key) });
    expect(await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS })).toEqual({
      changed: false,
    });
    expect(
      await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS, force: true }),
    ).toMatchObject({
      compacted: false,
      reason: "another process is folding this conversation",
    });
    expect(calls).toEqual([]);
    await finish(child);
    expect((await engine.verify()).problems).toEqual([]);
  });

  test("the lease of a dead process is taken over when it has ended, not before", async () => {
    const database = await makeArchive();
    const child = await startHeld(database);
    child.kill("SIGKILL");
    await once(child, "close");
    const early = await openFolding(database, { skewMs: LEASE_MS / 2 });
    expect(await compact(early)).toMatchObject({
      compacted: false,
      reason: "another process is folding this conversation",
    });
    const late = await openFolding(database, { skewMs: LEASE_MS + 60_000 });
    expect(await compact(late)).toMatchObject({ compacted: true });
    await expectSound(late, database);
  });

  test("a process that works for longer than its lease keeps it", async () => {
    const database = await makeArchive();
    const leaseMs = 400;
    const child = await startHeld(database, { leaseMs });
    const engine = await openFolding(database);
    const readLease = async () =>
      (await engine.status({ sessionKey: SESSION.key })).folding?.debt?.leaseUntil ?? 0;
    const first = await readLease();
    // Two renewals, however long they take.
    while ((await readLease()) < first + 2 * (leaseMs / 3)) await sleep(20);
    expect(await compact(engine)).toMatchObject({ compacted: false });
    await finish(child);
  });
});

test("a fold in the same process waits for the step of upkeep that is under way, and uses what it made", async () => {
  const database = await makeArchive();
  const calls: string[] = [];
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let noteFirst = (): void => undefined;
  const first = new Promise<void>((resolve) => (noteFirst = resolve));
  const engine = await openFolding(database, {
    onCall: async (key) => {
      calls.push(key);
      noteFirst();
      await held;
    },
  });
  const upkeep = engine.maintain({ conversationId: CONVERSATION, budgetTokens: 30_000 });
  await first;
  const fold = engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET_TOKENS });
  release();
  expect(await upkeep).toEqual({ changed: true });
  expect(await fold).toMatchObject({ compacted: true });
  expect(new Set(calls).size).toBe(calls.length);
  await expectSound(engine, database);
});
