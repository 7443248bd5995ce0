import { DatabaseSync } from "node:sqlite";

import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";

import { POSITION_STEP } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import type { Engine } from "../../src/index.ts";

import { makeTurns, SESSION, settingsFor } from "./conversation.ts";

const BUDGET = 6_000;
const CONVERSATION = 1;

async function open(config: Record<string, unknown> = {}): Promise<{ engine: Engine; database: string }> {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({
    database,
    thread: false,
    settings: settingsFor(database, {
      freshTailCount: 6,
      leafChunkTokens: 2_000,
      leafMinFanout: 4,
      ...config,
    }),
  });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  return { engine, database };
}

/** Changes whenever somebody else has written to the database. */
function watchWrites(database: string): () => number {
  const connection = new DatabaseSync(database, { readOnly: true });
  onTestFinished(() => connection.close());
  const version = connection.prepare("PRAGMA data_version");
  return () => version.get()?.data_version as number;
}

const maintain = (engine: Engine) => engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });

describe("a quiet moment in which nothing is to be done", () => {
  test.each([
    ["a conversation that is far from its threshold", 4],
    ["one that is folded, with stand-ins up to its root", 80],
  ])("writes nothing: %s", async (_, turns) => {
    const { engine, database } = await open();
    await engine.ingest({ session: SESSION, messages: makeTurns(0, turns) });
    while ((await maintain(engine)).changed);
    await engine.flushIndex();
    const readVersion = watchWrites(database);
    const before = readVersion();
    expect(await maintain(engine)).toEqual({ changed: false });
    expect(readVersion()).toBe(before);
    // The watch sees what is written.
    await engine.ingest({ session: SESSION, messages: makeTurns(turns, turns + 1) });
    expect(readVersion()).not.toBe(before);
  });
});

describe("a boundary behind a long history", () => {
  test("what is shown is counted from what is left, exactly, whatever boundaries there are", async () => {
    const { engine, database } = await open({ newSessionRetainDepth: 1 });
    let line = 0;
    let turn = 0;
    const add = async (turns: number) => {
      const messages = makeTurns(turn, turn + turns).map((arrival) => ({
        ...arrival,
        position: ++line * POSITION_STEP,
      }));
      turn += turns;
      await engine.ingest({ session: SESSION, messages });
    };
    const bound = (eventId: string) =>
      engine.recordBoundary({ session: SESSION, eventId, reason: "new", position: ++line * POSITION_STEP });
    await add(60);
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, targetTokens: 2_000 });
    await add(20);
    await bound("first");
    await add(5);
    await bound("second");
    await add(3);
    const { folding } = await engine.status({ sessionKey: SESSION.key });
    const whole = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: 1_000_000 });
    expect(whole?.mode).toBe("whole");
    const shown = whole?.items.reduce((sum, item) => sum + item.messages, 0);
    expect(folding?.contextMessages).toBe(shown);
    expect(folding?.contextTokens).toBe(countVisible(database));
    expect((await engine.verify()).problems).toEqual([]);
  });
});

/** By the rule itself, item by item: hidden is what ends before a boundary and is not as deep as it retains. */
function countVisible(database: string): number {
  using connection = new DatabaseSync(database, { readOnly: true });
  const sql = `
    SELECT sum(tokens) AS tokens FROM context_items i WHERE hidden = 0 AND NOT EXISTS (
      SELECT 1 FROM boundaries b WHERE b.conversation_id = i.conversation_id AND b.reason = 'new' AND b.undone_at IS NULL
        AND b.retain_depth >= 0 AND i.end_pos < b.position AND i.depth < b.retain_depth)`;
  return connection.prepare(sql).get()?.tokens as number;
}

test("a program that leaves folding to workers only notes what is owed, and a worker pays it", async () => {
  const { engine } = await open({ proactiveThresholdCompactionMode: "workers" });
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 60), budgetTokens: BUDGET });
  // What a background fold would do first, it would have done by now: it begins before the next call is served.
  await engine.flushIndex();
  expect(await engine.listDebts()).toMatchObject([
    { conversationId: CONVERSATION, attempts: 0, leaseHolder: null },
  ]);
  expect((await engine.listSummaries({ conversationId: CONVERSATION, limit: 1 })).items).toEqual([]);
  expect(await engine.payNextDebt()).toMatchObject({ conversationId: CONVERSATION, compacted: true });
  expect(await engine.payNextDebt()).toBeNull();
});
