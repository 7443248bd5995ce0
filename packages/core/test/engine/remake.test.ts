import { makeClock, makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";

import { POSITION_STEP } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import type { Engine, SummaryRow } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";
import { makeTurns, SESSION, settingsFor, START_MS } from "./conversation.ts";

const BUDGET = 6_000;
const CONVERSATION = 1;

interface Folded {
  readonly engine: Engine;
  readonly database: string;
  /** Lets time pass. */
  readonly wait: (ms: number) => void;
}

/** A conversation folded into leaves and a condensed summary, with a few turns after them. */
async function foldConversation(): Promise<Folded> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const config = {
    freshTailCount: 4,
    leafChunkTokens: 2_000,
    leafTargetTokens: 300,
    condensedTargetTokens: 250,
    leafMinFanout: 4,
  };
  const clock = makeClock(9, START_MS + 80 * 90_000);
  let passedMs = 0;
  const engine = await openEngine({
    database,
    thread: false,
    settings: settingsFor(database, { ...config, pruneHeartbeatOk: false }),
    clock: { now: () => clock.now() + passedMs, random: clock.random },
  });
  onTestFinished(() => engine.close());
  const messages = makeTurns(0, 80, { calls: 1 }).map((arrival, line) => ({
    ...arrival,
    position: (line + 1) * POSITION_STEP,
  }));
  await engine.ingest({ session: SESSION, messages });
  await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, targetTokens: 3_000 });
  return { engine, database, wait: (ms) => (passedMs += ms) };
}

async function listSummaries(engine: Engine): Promise<SummaryRow[]> {
  return (await engine.listSummaries({ conversationId: CONVERSATION, limit: 1_000 })).items;
}

const stale = async (engine: Engine): Promise<number | undefined> =>
  (await engine.status({ sessionKey: SESSION.key })).folding?.summaries.stale;

async function expectSound({ engine, database }: Folded): Promise<void> {
  expect((await engine.verify()).problems).toEqual([]);
  const archive = new ArchiveView(database, CONVERSATION);
  for (const budgetTokens of [2_000, 4_000, BUDGET]) {
    const context = await engine.assemble({
      conversationId: CONVERSATION,
      budgetTokens,
      checkGrammars: true,
    });
    expect(context && findFaults(context, archive)).toEqual([]);
  }
}

const assembled = async (engine: Engine): Promise<string> =>
  JSON.stringify((await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET }))?.messages);

const FACT = "The spare key of the cold store hangs behind meter ZX-4471-B, decided by Mira.";
const late = { eventId: "late", position: 5.5 * POSITION_STEP, message: { role: "user", content: FACT } };
const revised = { eventId: "t1-0", position: 5 * POSITION_STEP, message: { role: "user", content: FACT } };

describe("a change under summaries", () => {
  test.each([
    ["a row that arrives late", late],
    ["a revision", revised],
  ])(
    "%s: they count as stale, are remade from below, and are swapped with the next fold",
    async (_, arrival) => {
      const folded = await foldConversation();
      const { engine } = folded;
      const before = await listSummaries(engine);
      const above = before.filter(
        ({ state, startPosition, endPosition }) =>
          state === "cover" && startPosition <= arrival.position && arrival.position <= endPosition,
      );
      expect(above.map(({ depth }) => depth).sort()).toEqual(above.map((__, depth) => depth));
      expect(above.length).toBeGreaterThan(1);

      await engine.ingest({ session: SESSION, messages: [arrival] });
      expect(await stale(engine)).toBe(above.length);
      const shown = await assembled(engine);
      await expectSound(folded);

      await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
      expect((await assembled(engine)) === shown).toBe(true);
      expect(await stale(engine)).toBe(above.length);
      await expectSound(folded);
      const made = (await listSummaries(engine)).length;
      await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
      expect(await listSummaries(engine)).toHaveLength(made);

      await engine.ingest({ session: SESSION, messages: makeTurns(80, 84, { calls: 1 }) });
      await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, force: true });
      expect(await stale(engine)).toBe(0);
      const after = await listSummaries(engine);
      for (const { summaryId } of above) {
        expect(after.find((summary) => summary.summaryId === summaryId)?.state).toBe("retired");
        expect(await engine.readSummary({ summaryId })).not.toBeNull();
      }
      const leaf = after.find(
        ({ state, depth, startPosition }) =>
          state === "cover" && depth === 0 && startPosition === above[0]?.startPosition,
      );
      expect(leaf?.content).toContain("ZX-4471-B");
      await expectSound(folded);
    },
  );

  test("in a conversation nobody has used for long, they are swapped at once", async () => {
    const folded = await foldConversation();
    const { engine } = folded;
    await engine.ingest({ session: SESSION, messages: [late] });
    folded.wait(2 * 3_600_000);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(await stale(engine)).toBe(0);
    await expectSound(folded);
  });

  test("what is swapped in says when it took its place, as every other summary in force does", async () => {
    const folded = await foldConversation();
    const { engine } = folded;
    const published = async (): Promise<Map<string, number | null>> => {
      const { nodes } = await engine.readGraph({ conversationId: CONVERSATION });
      const cover = nodes.filter(({ state }) => state === "cover");
      return new Map(cover.map(({ summaryId, publishedSeq }) => [summaryId, publishedSeq]));
    };
    const before = await published();
    await engine.ingest({ session: SESSION, messages: [late] });
    const { items } = await engine.listMessages({ conversationId: CONVERSATION, limit: 1_000 });
    const newest = Math.max(...items.map(({ seq }) => seq));
    folded.wait(2 * 3_600_000);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    const after = await published();
    const swapped = [...after.keys()].filter((summaryId) => !before.has(summaryId));
    expect(swapped.length).toBeGreaterThan(1);
    for (const summaryId of swapped) expect(after.get(summaryId)).toBe(newest);
    for (const [summaryId, seq] of after) expect(seq).toBe(before.get(summaryId) ?? newest);
  });

  test("a summary regenerated from something stale stays stale, and tells the change once both are remade", async () => {
    const folded = await foldConversation();
    const { engine } = folded;
    await engine.ingest({ session: SESSION, messages: [late] });
    const condensed = (await listSummaries(engine)).find(
      ({ state, depth, isStale }) => state === "cover" && depth === 1 && isStale,
    );
    const { newId } = await engine.rewriteSummary({
      summaryId: condensed?.summaryId ?? "",
      dryRun: false,
      text: {
        content: "Written by hand.",
        model: "hand",
        level: "normal",
        sourceKeys: (await engine.rewriteSummary({ summaryId: condensed?.summaryId ?? "", dryRun: true }))
          .sourceKeys,
      },
    });
    expect((await engine.readSummary({ summaryId: newId ?? "" }))?.isStale).toBe(true);
    await expectSound(folded);
    folded.wait(2 * 3_600_000);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(await stale(engine)).toBe(0);
    await expectSound(folded);
  });

  test("while one is being remade, another change makes it stale again", async () => {
    const folded = await foldConversation();
    const { engine } = folded;
    await engine.ingest({ session: SESSION, messages: [late] });
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    await engine.ingest({ session: SESSION, messages: [revised] });
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, force: true });
    expect(await stale(engine)).toBeGreaterThan(0);
    await expectSound(folded);
    folded.wait(2 * 3_600_000);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(await stale(engine)).toBe(0);
    await expectSound(folded);
  });

  test("a summary of which every message is hidden is not shown, and comes back with them", async () => {
    const folded = await foldConversation();
    const { engine } = folded;
    const whole = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    const first = whole?.items.find(({ kind }) => kind === "summary");
    const count = first?.messages ?? 0;
    const { items } = await engine.listMessages({ conversationId: CONVERSATION, limit: count });
    const offBranch = items.map(({ eventId }) => eventId);
    await engine.setBranch({ session: SESSION, offBranch });
    const without = await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(without?.items.map(({ summaryId }) => summaryId)).not.toContain(first?.summaryId);
    expect(without?.shownMessages).toBe((whole?.shownMessages ?? 0) - count);
    await expectSound(folded);

    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    await engine.compact({ conversationId: CONVERSATION, budgetTokens: BUDGET, force: true });
    await expectSound(folded);
    await engine.setBranch({ session: SESSION, offBranch: offBranch.slice(1) });
    await expectSound(folded);
    await engine.setBranch({ session: SESSION, offBranch: [] });
    expect(
      (await engine.assemble({ conversationId: CONVERSATION, budgetTokens: BUDGET }))?.shownMessages,
    ).toBe(whole?.shownMessages);
    folded.wait(2 * 3_600_000);
    await engine.maintain({ conversationId: CONVERSATION, budgetTokens: BUDGET });
    expect(await stale(engine)).toBe(0);
    await expectSound(folded);
  });
});
