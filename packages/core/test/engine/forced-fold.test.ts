/** Folds that somebody asks for: they go on until the context is under its target, and report what is then stored. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Engine } from "../../src/index.ts";

import { makeTurn, makeTurns, SESSION, settingsFor } from "./conversation.ts";

const CONVERSATION = { conversationId: 1 };
const BUDGET = { ...CONVERSATION, budgetTokens: 8_000 };
/** Just under 75 % of the budget. */
const TARGET = 5_999;

async function openWithHistory(config: Record<string, unknown> = {}): Promise<Engine> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const settings = settingsFor(database, { leafChunkTokens: 1_000, maxSweepIterations: 2, ...config });
  const engine = await openEngine({ database, thread: false, settings });
  onTestFinished(() => engine.close());
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 80) });
  return engine;
}

const countStored = async (engine: Engine): Promise<number | undefined> =>
  (await engine.readConversation(CONVERSATION))?.shownTokens;

test("a forced fold runs as many sweeps as it takes to get under the threshold", async () => {
  const engine = await openWithHistory();
  const before = await countStored(engine);
  expect(before).toBeGreaterThan(10_000);
  const progress: number[] = [];
  const folded = await engine.compact({ ...BUDGET, force: true, onProgress: (done) => progress.push(done) });
  expect(folded).toMatchObject({ compacted: true, targetTokens: TARGET, targetReached: true });
  expect(folded.tokensAfter).toBeLessThanOrEqual(TARGET);
  expect(folded.passes).toBeGreaterThan(4);
  expect(progress).toEqual(Array.from({ length: folded.passes }, (_, index) => index + 1));
  expect(folded.tokensBefore).toBe(before);
  expect(folded.tokensAfter).toBe(await countStored(engine));
  expect((await engine.verify()).problems).toEqual([]);
});

test("a fold at the threshold and one down to a target go on as long", async () => {
  const due = await (await openWithHistory()).compact(BUDGET);
  expect(due).toMatchObject({ compacted: true, targetTokens: TARGET, targetReached: true });
  const engine = await openWithHistory({ maxSweepIterations: 1 });
  const aimed = await engine.compact({ ...BUDGET, targetTokens: 5_000 });
  expect(aimed).toMatchObject({ reason: "under the target", targetTokens: 5_000, targetReached: true });
  expect(aimed.tokensAfter).toBe(await countStored(engine));
});

test("a fold to a target leaves 80 to 100 % of it, also far below the tail of the budget", async () => {
  for (const budgetTokens of [null, 128_000])
    for (const targetTokens of [1_100, 2_200, 3_000, 5_500]) {
      const engine = await openWithChat();
      const folded = await engine.compact({
        ...CONVERSATION,
        budgetTokens: budgetTokens ?? targetTokens,
        targetTokens,
      });
      expect(folded).toMatchObject({ compacted: true, targetReached: true });
      expect(folded.tokensAfter / targetTokens, `${targetTokens} of ${budgetTokens}`).toBeGreaterThan(0.8);
      expect((await engine.verify()).problems).toEqual([]);
    }
});

/** Short messages: a chunk can be cut almost anywhere. */
async function openWithChat(): Promise<Engine> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  onTestFinished(() => engine.close());
  const chat = Array.from({ length: 400 }, (_, number) => makeTurn(number, { words: 20, calls: 0 }));
  await engine.ingest({ session: SESSION, messages: chat.flat() });
  return engine;
}

test("a forced fold below the threshold folds what is outside the tail", async () => {
  const engine = await openWithHistory({ freshTailCount: 8, maxSweepIterations: 100 });
  const folded = await engine.compact({ ...CONVERSATION, budgetTokens: 1_000_000, force: true });
  expect(folded).toMatchObject({ compacted: true, targetReached: true });
  expect(folded.reason).toBe("everything outside the tail is folded");
});

test("a target that cannot be reached is reported, with the reason", async () => {
  const engine = await openWithHistory();
  const folded = await engine.compact({ ...BUDGET, targetTokens: 10 });
  expect(folded).toMatchObject({ compacted: true, targetTokens: 10, targetReached: false });
  expect(folded.reason).toBe("everything outside the tail is folded");
  expect(folded.tokensAfter).toBe(await countStored(engine));
  const again = await engine.compact({ ...BUDGET, targetTokens: 10 });
  expect(again).toMatchObject({ compacted: false, reason: "nothing to fold", targetReached: false });
});

test("a cancelled fold reports where it was stopped and leaves a whole archive", async () => {
  const engine = await openWithHistory();
  const cancel = new AbortController();
  const onProgress = (done: number): void => {
    if (done === 3) cancel.abort();
  };
  const folded = await engine.compact({ ...BUDGET, force: true, signal: cancel.signal, onProgress });
  expect(folded).toMatchObject({ compacted: true, passes: 3, reason: "cancelled", targetReached: false });
  expect(folded.tokensAfter).toBe(await countStored(engine));
  expect((await engine.verify()).problems).toEqual([]);
  expect(await engine.compact({ ...BUDGET, force: true })).toMatchObject({ targetReached: true });
});
