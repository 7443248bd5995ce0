/** Many processes around one database: nothing lost, nothing twice, and no lock ever reaches a caller as an error. */
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { CrowdMember } from "@lossless/testkit/crowd.ts";
import { SHARED_SESSION, sharedArrival, TURN_MESSAGES } from "@lossless/testkit/crowd-program.ts";
import type { CrowdOrders } from "@lossless/testkit/crowd-program.ts";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { expect, test } from "vitest";

/** In a soak 5,300 events through ten processes; `npm run bench -- load` sends a million. */
const WRITERS = isSoak ? 10 : 2;
const READERS = isSoak ? 5 : 2;
const TURNS = rounds({ test: 30, soak: 125 });
const SHARED_EVENTS = rounds({ test: 60, soak: 300 });

async function readEventIds(engine: Engine, conversationId: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after: string | null = null; ;) {
    const page = await engine.listMessages({ conversationId, after, limit: 1_000 });
    ids.push(...page.items.map((row) => row.eventId));
    if (page.next === null) return ids;
    after = page.next;
  }
}

test("writers, readers and a meddler share a database without losing or doubling anything", async () => {
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
    new CrowdMember("meddle", orders("meddler")),
    ...Array.from({ length: READERS }, (_, i) => new CrowdMember("read", orders(`reader-${i}`))),
  ];
  const writers = Array.from({ length: WRITERS }, (_, i) => new CrowdMember("write", orders(`writer-${i}`)));
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
  for (const { conversationId, sessionKey } of (await engine.listConversations({ limit: 50 })).items) {
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
  const holder = new CrowdMember("hold", { database, name: "holder", turns: 0, sharedEvents: 0 });
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
  const holder = new CrowdMember("hold", { database, name: "holder", turns: 0, sharedEvents: 0 });
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
