/** The plot of growth is what happened: checked against an engine that folds while the conversation grows. */
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { describe, expect, onTestFinished, test } from "vitest";
import { Outlines } from "@lossless/core/doors";
import { SharedSteps } from "../src/shared-steps.ts";
import { addUpGrowth, planTimeline } from "../src/timeline.ts";
import { makeTemporaryFolder } from "@lossless/testkit";

const SESSION = { key: "agent:main:main", id: "s1", owner: "main" };
const day = (at: number): string => new Date(at).toISOString().slice(0, 10);

const finish = <T>(steps: Iterator<void, T>): Promise<T> =>
  new SharedSteps(steps).finish(() => Promise.resolve());

async function openArchive() {
  const folder = makeTemporaryFolder();
  const database = join(folder.path, "lcm.db");
  const config = { databasePath: database, leafChunkTokens: 1_500, freshTailCount: 8 };
  const { settings } = resolveSettings({ env: {}, config });
  const engine = await openEngine({ database, settings, thread: false });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  const say = (from: number, count: number) =>
    engine.ingest({
      session: SESSION,
      messages: Array.from({ length: count }, (_, index) => ({
        eventId: `e${from + index}`,
        message: {
          role: index % 2 === 0 ? "user" : "assistant",
          content: `Step ${from + index}. ${"Something was said about the parcels. ".repeat(40)}`,
          timestamp: Date.UTC(2026, 0, 1) + (from + index) * 600_000,
        },
      })),
    });
  const readShown = async () =>
    (await engine.readConversation({ conversationId: 1 }))?.shownTokens ?? Number.NaN;
  const plan = async () => {
    const conversation = await engine.readConversation({ conversationId: 1 });
    if (conversation === null) throw new Error("nothing was stored");
    const rows = await new Outlines(engine, {}).read(conversation);
    return finish(planTimeline(rows, await engine.readGraph({ conversationId: 1 }), day));
  };
  return { engine, say, plan, readShown };
}

describe("a conversation that is folded while it grows", () => {
  test("the line is what the context had after each turn, and each compaction is marked", async () => {
    const { engine, say, plan, readShown } = await openArchive();
    const seen: { index: number; before: number; after: number }[] = [];
    for (let turn = 0; turn < 60; turn++) {
      await say(turn * 2, 2);
      const before = await readShown();
      await engine.compact({ conversationId: 1, budgetTokens: 6_000 });
      seen.push({ index: turn * 2 + 1, before, after: await readShown() });
    }
    const { points, compactions, isExact } = await plan();
    expect(isExact).toBe(true);
    for (const { index, before, after } of seen) {
      const here = points.filter((point) => point.index === index).map((point) => point.contextTokens);
      expect(here).toEqual(before === after ? [after] : [before, after]);
    }
    const folded = seen.filter(({ before, after }) => before !== after);
    expect(folded.length).toBeGreaterThan(3);
    expect(
      compactions.map(({ index, tokensBefore, tokensAfter }) => [index, tokensBefore, tokensAfter]),
    ).toEqual(folded.map(({ index, before, after }) => [index, before, after]));
  });

  test("a summary regenerated counts from when the first of its place was published", async () => {
    const { engine, say, plan, readShown } = await openArchive();
    await say(0, 60);
    await engine.compact({ conversationId: 1, budgetTokens: 6_000 });
    await say(60, 2);
    const before = await plan();
    const { nodes } = await engine.readGraph({ conversationId: 1 });
    const leaf = nodes.find(({ state, depth }) => state === "cover" && depth === 0);
    await engine.rewriteSummary({ summaryId: leaf?.summaryId ?? "", dryRun: false, isExtractive: true });
    const after = await plan();
    expect(after.compactions.map(({ index }) => index)).toEqual(before.compactions.map(({ index }) => index));
    expect(after.points.at(-1)?.contextTokens).toBe(await readShown());
  });
});

test("of many messages there are as many points as a screen can show, and the last is exact", async () => {
  const column = (make: (index: number) => number): Float64Array =>
    Float64Array.from({ length: 20_000 }, (_, index) => make(index));
  const rows = {
    seqs: column((index) => index + 1),
    positions: column((index) => index * 10),
    tokens: column(() => 10),
    createdAts: column((index) => Date.UTC(2026, 0, 1) + index * 60_000),
  };
  const { points, days, compactions } = await finish(planTimeline(rows, { nodes: [], edges: [] }, day));
  expect(points.length).toBeLessThan(1_000);
  expect(points.at(-1)).toMatchObject({ index: 19_999, rawTokens: 200_000, contextTokens: 200_000 });
  expect(compactions).toEqual([]);
  expect(days.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(200_000);
});

test("several conversations add up over time", () => {
  const line = (start: number) =>
    [0, 1, 2].map((index) => ({
      index,
      at: start + index * 100,
      rawTokens: (index + 1) * 10,
      contextTokens: index + 1,
    }));
  const points = addUpGrowth([line(0), line(100)], 4);
  expect(points).toEqual([
    { at: 0, rawTokens: 10, contextTokens: 1 },
    { at: 100, rawTokens: 30, contextTokens: 3 },
    { at: 200, rawTokens: 50, contextTokens: 5 },
    { at: 300, rawTokens: 60, contextTokens: 6 },
  ]);
  expect(addUpGrowth([], 4)).toEqual([]);
});
