/** What is read by those who look at an archive: the graph without its texts, messages by number, the context of an earlier turn. */
import { copyFileSync } from "node:fs";

import { makeTemporaryFolder } from "@lossless/testkit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Engine } from "../../src/index.ts";

import { makeTurns, SESSION, settingsFor } from "./conversation.ts";

const CONVERSATION = 1;

const open = (database: string, thread: boolean): Promise<Engine> =>
  openEngine({ database, thread, settings: settingsFor(database, { leafChunkTokens: 2_000 }) });

/** Folded once; each test has a copy. */
const original = makeTemporaryFolder();
beforeAll(async () => {
  const engine = await open(original.file("lcm.db"), false);
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 200) });
  await engine.compact({ conversationId: CONVERSATION, budgetTokens: 16_000, targetTokens: 3_000 });
  await engine.close();
});
afterAll(() => original[Symbol.dispose]());

async function openFolded(thread: boolean): Promise<Engine> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  copyFileSync(original.file("lcm.db"), database);
  const engine = await open(database, thread);
  onTestFinished(() => engine.close());
  return engine;
}

test.each([false, true])(
  "the graph has every summary, no text, and an edge to each source (thread: %s)",
  async (thread) => {
    const engine = await openFolded(thread);
    const { nodes, edges } = await engine.readGraph({ conversationId: CONVERSATION });
    const { items } = await engine.listSummaries({ conversationId: CONVERSATION, limit: 1_000 });
    expect(nodes.map(({ publishedSeq: _publishedSeq, ...node }) => node)).toEqual(
      items.map(({ content: _content, previousId: _previousId, ...item }) => item),
    );
    expect(nodes.some(({ depth }) => depth > 0)).toBe(true);
    // Everything was said before the fold began.
    for (const { state, publishedSeq } of nodes) expect(publishedSeq).toBe(state === "cover" ? 800 : null);
    for (const { summaryId } of items) {
      const node = await engine.readSummary({ summaryId });
      expect(edges.filter(([id]) => id === summaryId).map(([, source]) => source)).toEqual(node?.sourceIds);
    }
    expect(await engine.readGraph({ conversationId: CONVERSATION, owner: "somebody else" })).toEqual({
      nodes: [],
      edges: [],
    });
  },
);

test("the context before a turn is what was shown before the turn came", async () => {
  const engine = await openFolded(false);
  const budgets = [2_000, 8_000, 200_000];
  const read = (budgetTokens: number, endBefore?: number) =>
    engine.assemble({
      conversationId: CONVERSATION,
      budgetTokens,
      endBefore,
    });
  const before = await Promise.all(budgets.map((budget) => read(budget)));
  const newest = await engine.listMessages({ conversationId: CONVERSATION, limit: 1, direction: "newest" });
  await engine.ingest({ session: SESSION, messages: makeTurns(200, 201) });
  for (const [index, budget] of budgets.entries()) {
    const again = await read(budget, (newest.items[0]?.position ?? 0) + 1);
    expect(again?.items).toEqual(before[index]?.items);
    expect(again?.estimatedTokens).toBe(before[index]?.estimatedTokens);
    expect(again?.fingerprint).toBe(before[index]?.fingerprint);
    expect((await read(budget))?.items).not.toEqual(again?.items);
  }
});

test.each([false, true])(
  "messages are found by their numbers, and numbers by their messages (thread: %s)",
  async (thread) => {
    const engine = await openFolded(thread);
    const { items } = await engine.listMessages({ conversationId: CONVERSATION, limit: 1_000 });
    const ids = items.map(({ messageId }) => messageId);
    for (const [at, limit] of [
      [0, 3],
      [400, 10],
      [795, 50],
      [800, 5],
    ] as const) {
      expect(await engine.listMessageIds({ conversationId: CONVERSATION, at, limit })).toEqual(
        ids.slice(at, at + limit),
      );
    }
    for (const number of [0, 1, 399, 799]) {
      const messageId = ids[number] ?? 0;
      expect(await engine.locateMessage({ messageId })).toEqual({ conversationId: CONVERSATION, number });
      expect(await engine.locateMessage({ messageId, owner: "somebody else" })).toBeNull();
    }
    expect(await engine.locateMessage({ messageId: 99_999 })).toBeNull();
    const foreign = { conversationId: CONVERSATION, at: 0, limit: 5, owner: "somebody else" };
    expect(await engine.listMessageIds(foreign)).toEqual([]);
  },
);
