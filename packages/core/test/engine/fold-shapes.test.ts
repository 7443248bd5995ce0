import { makeTemporaryFolder } from "@lossless/testkit";
import { isSoak, rounds } from "@lossless/testkit/rounds.ts";
import { describe, expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Engine } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";
import { makeTurns, SESSION, settingsFor } from "./conversation.ts";

const CONVERSATION = 1;
const BUDGET = 16_000;
const ROOT_ROUNDS = rounds({ test: 5, soak: 10 });
const LONG_TURNS = rounds({ test: 6, soak: 10 });

async function open(
  config: Record<string, unknown> = {},
): Promise<{ engine: Engine; expectSound: () => Promise<void> }> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const engine = await openEngine({
    database,
    thread: false,
    settings: settingsFor(database, { leafChunkTokens: 4_000, ...config }),
  });
  onTestFinished(() => engine.close());
  const expectSound = async () => {
    expect((await engine.verify()).problems).toEqual([]);
    const archive = new ArchiveView(database, CONVERSATION);
    for (const budgetTokens of [2_000, 5_000, BUDGET, 200_000]) {
      const context = await engine.assemble({
        conversationId: CONVERSATION,
        budgetTokens,
        checkGrammars: true,
      });
      expect(context && findFaults(context, archive)).toEqual([]);
    }
  };
  return { engine, expectSound };
}

const recordNew = (engine: Engine, eventId: string) =>
  engine.recordBoundary({ session: SESSION, eventId, reason: "new" });
const contextTokens = async (engine: Engine): Promise<number | undefined> =>
  (await engine.status({ sessionKey: SESSION.key })).folding?.contextTokens;

describe("behind a soft boundary", () => {
  test("folding goes on, however much that is not folded lies before it", async () => {
    const { engine, expectSound } = await open();
    await engine.ingest({ session: SESSION, messages: makeTurns(0, 200) });
    expect(await contextTokens(engine)).toBeGreaterThan(2 * BUDGET);
    await recordNew(engine, "new-1");
    expect(await contextTokens(engine)).toBe(0);
    await engine.ingest({ session: SESSION, messages: makeTurns(200, 320) });
    const answer = await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(answer).toMatchObject({ compacted: true });
    expect(answer.tokensAfter).toBeLessThan(0.75 * BUDGET);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    await expectSound();
  });

  test("what is deep enough stays visible, also when nothing has been said since", async () => {
    const { engine, expectSound } = await open({ newSessionRetainDepth: 1 });
    await engine.ingest({ session: SESSION, messages: makeTurns(0, 200) });
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, targetTokens: 4_000 });
    await recordNew(engine, "new-1");
    const kept = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(kept?.items.length).toBeGreaterThan(0);
    expect(kept?.items.every(({ kind, depth }) => kind === "summary" && depth >= 1)).toBe(true);
    await expectSound();
    await engine.ingest({ session: SESSION, messages: makeTurns(200, 300) });
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    await recordNew(engine, "new-2");
    await engine.ingest({ session: SESSION, messages: makeTurns(300, 302) });
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    await expectSound();
  });
});

test("turns longer than the window are folded while they run, and what they leave over does not keep summaries apart", async () => {
  const { engine, expectSound } = await open();
  for (let turn = 0; turn < LONG_TURNS; turn++) {
    await engine.ingest({
      session: SESSION,
      messages: makeTurns(turn, turn + 1, { calls: 60, resultWords: 120 }),
    });
    const { tokensAfter } = await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(tokensAfter).toBeLessThan(0.75 * BUDGET);
  }
  await expectSound();
  // One summary of each depth: only neighbours of different depths are left to condense.
  const folded = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET });
  const depths = folded?.items.filter(({ kind }) => kind === "summary").map(({ depth }) => depth) ?? [];
  expect(depths.length).toBeGreaterThan(2);
  expect(new Set(depths).size).toBe(depths.length);
  const { tokensAfter } = await engine.compact({
    conversationId: CONVERSATION,
    budgetTokens: BUDGET,
    targetTokens: 6_000,
  });
  expect(tokensAfter).toBeLessThanOrEqual(6_000);
  expect(tokensAfter).toBeGreaterThanOrEqual(0.8 * 6_000);
  await engine.ingest({ session: SESSION, messages: makeTurns(LONG_TURNS, LONG_TURNS + 50) });
  await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET });
  await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
  const small = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: 5_000 });
  const unseen = small?.items
    .filter(({ kind }) => kind === "range")
    .reduce((sum, { messages }) => sum + messages, 0);
  expect(unseen).toBeLessThan(64);
  await expectSound();
});

test("a root that is remade does not change a context that was begun with the old one", async () => {
  const { engine, expectSound } = await open({
    leafTargetTokens: 600,
    condensedTargetTokens: 400,
    sweepMaxDepth: 0,
  });
  const assemble = () => engine.assemble({ conversationId: CONVERSATION, budgetTokens: 5_000 });
  let next = 0;
  let compared = 0;
  for (let round = 0; round < ROOT_ROUNDS; round++) {
    await engine.ingest({ session: SESSION, messages: makeTurns(next, (next += 40)) });
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: 20_000, force: true });
    const before = await assemble();
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: 20_000 });
    const after = await assemble();
    if (isSoak || round === ROOT_ROUNDS - 1) await expectSound();
    if (after?.epoch !== before?.epoch) continue;
    expect(JSON.stringify(after?.messages) === JSON.stringify(before?.messages)).toBe(true);
    compared += 1;
  }
  expect(compared).toBeGreaterThan(ROOT_ROUNDS / 2);
  const roots = (await engine.listSummaries({ conversationId: CONVERSATION, limit: 1_000 })).items.filter(
    ({ isRoot }) => isRoot,
  );
  expect(roots.length).toBeGreaterThan(1);
  expect(roots.filter(({ state }) => state === "reserve").length).toBeLessThanOrEqual(2);
});
