/** Many processes around one database: nothing lost, nothing twice, and no lock ever reaches a caller as an error. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { SHARED_SESSION, sharedArrival, TURN_MESSAGES } from "@lossless/testkit/crowd-program.ts";
import type { CrowdOrders, CrowdResult, CrowdRole } from "@lossless/testkit/crowd-program.ts";
import { rounds } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

const PROGRAM = fileURLToPath(import.meta.resolve("@lossless/testkit/crowd-program.ts"));
const WRITERS = 2;
const READERS = rounds({ test: 2, soak: 10 });
const TURNS = rounds({ test: 30, soak: 200 });
const SHARED_EVENTS = rounds({ test: 60, soak: 300 });

/** A process of the crowd, and what it says at its end. Fails with its output when it fails. */
class Member {
  readonly process: ChildProcess;
  readonly report: Promise<CrowdResult>;

  constructor(role: CrowdRole, orders: CrowdOrders) {
    this.process = fork(PROGRAM, [role, JSON.stringify(orders)], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.report = this.#watch(`${role} ${orders.name}`);
    // Awaited late by the test; until then a failure is not an unhandled one.
    this.report.catch(() => undefined);
  }

  async #watch(title: string): Promise<CrowdResult> {
    let report: CrowdResult | null = null;
    let errors = "";
    this.process.stderr?.on("data", (data: Buffer) => (errors += data.toString()));
    this.process.on("message", (message: { kind: string }) => {
      if (message.kind === "done") report = message as CrowdResult;
    });
    const [status, signal] = (await once(this.process, "close")) as [number | null, string | null];
    if (status !== 0 || report === null)
      throw new Error(`${title} ended with ${status ?? signal}: ${errors}`);
    return report;
  }

  async heldLock(): Promise<void> {
    await Promise.race([once(this.process, "message"), this.report]);
  }

  async stop(): Promise<CrowdResult> {
    if (this.process.connected) this.process.send("stop");
    return this.report;
  }
}

async function readEventIds(engine: Engine, conversationId: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: 1_000 });
    ids.push(...page.items.map((row) => row.eventId));
    if (page.next === null) return ids;
    after = page.next;
  }
}

test("two writers, several readers and a meddler share a database without losing or doubling anything", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  await (await openEngine({ database, thread: false })).close();
  const orders = (name: string): CrowdOrders => ({
    database,
    name,
    turns: TURNS,
    sharedEvents: SHARED_EVENTS,
  });
  const onlookers = [
    new Member("meddle", orders("meddler")),
    ...Array.from({ length: READERS }, (_, i) => new Member("read", orders(`reader-${i}`))),
  ];
  const writers = Array.from({ length: WRITERS }, (_, i) => new Member("write", orders(`writer-${i}`)));
  const written = await Promise.all(writers.map((writer) => writer.report));
  const watched = await Promise.all(onlookers.map((onlooker) => onlooker.stop()));
  expect(Math.min(...watched.map((report) => report.rounds))).toBeGreaterThan(0);

  const stored = written.reduce((sum, report) => sum + report.stored, 0);
  expect(stored).toBe(WRITERS * TURNS * TURN_MESSAGES + SHARED_EVENTS);
  expect(written.reduce((sum, report) => sum + report.known, 0)).toBe((WRITERS - 1) * SHARED_EVENTS);

  const engine = await openEngine({ database, thread: false });
  expect(await engine.verify()).toMatchObject({
    ok: true,
    problems: [],
    messages: stored,
    conversations: WRITERS + 1,
  });
  for (const { conversationId, sessionKey } of (await engine.listConversations({ limit: 10 })).items) {
    const ids = await readEventIds(engine, conversationId);
    const isShared = sessionKey === SHARED_SESSION.key;
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBe(isShared ? SHARED_EVENTS : TURNS * TURN_MESSAGES);
  }
  await engine.close();
  const raw = new DatabaseSync(database, { readOnly: true });
  expect(raw.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  raw.close();
});

test("a lock that another process holds for three seconds delays a call, and this thread runs on meanwhile", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database });
  const holder = new Member("hold", { database, name: "holder", turns: 0, sharedEvents: 0 });
  await holder.heldLock();
  const since = performance.now();
  let settled = false;
  const call = engine
    .ingest({ session: SHARED_SESSION, messages: [sharedArrival(1)] })
    .finally(() => (settled = true));
  let ticks = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      ticks += 1;
      if (performance.now() - since < 3_000) return;
      clearInterval(timer);
      resolve();
    }, 10);
  });
  expect(settled).toBe(false);
  // A thread that waited for the lock would have ticked once; how often exactly depends on the machine.
  expect(ticks).toBeGreaterThan(1);
  await holder.stop();
  expect((await call).results).toMatchObject([{ outcome: "stored" }]);
  await engine.close();
});

test("a lock that outlasts the limit fails the call with database_busy and stores nothing", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database, busyLimitMs: 100 });
  const holder = new Member("hold", { database, name: "holder", turns: 0, sharedEvents: 0 });
  await holder.heldLock();
  const messages = [sharedArrival(1), sharedArrival(2)];
  await expect(engine.ingest({ session: SHARED_SESSION, messages })).rejects.toMatchObject({
    code: "database_busy",
  });
  await holder.stop();
  expect(await engine.status()).toMatchObject({ messages: 0, conversations: 0 });
  expect((await engine.ingest({ session: SHARED_SESSION, messages })).results).toMatchObject([
    { outcome: "stored" },
    { outcome: "stored" },
  ]);
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
});
