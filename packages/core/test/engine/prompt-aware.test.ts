/** `promptAwareEviction`: in a tight budget, the summaries about the newest user message up to the anchor keep their room. */
import { makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Arrival, Engine } from "../../src/index.ts";

import { ArchiveView, findFaults } from "./context-checks.ts";
import { drawWords, SESSION, settingsFor } from "./conversation.ts";

const TOPICS = (
  "violin harbour glacier bakery telescope orchard subway lantern beehive compass quarry velvet marathon " +
  "saxophone aquarium windmill"
).split(" ");
const ASKED = "glacier";
/** Stand-ins come before preferred summaries: everything must be covered, so there it takes more room to keep one. */
const BUDGETS = { withoutStandIns: 2_500, withStandIns: 3_800 };

let count = 0;
const say = (role: string, content: string): Arrival => ({
  eventId: `m${count++}`,
  message: { role, content },
});

/** About as many tokens on each topic as a leaf takes. */
function makeHistory(): Arrival[] {
  const random = makeRandom(7);
  const speak = (topic: string): string => `The ${topic}: ${drawWords(random, 70)}, says the ${topic}.`;
  return TOPICS.flatMap((topic) =>
    Array.from({ length: 4 }, () => [say("user", speak(topic)), say("assistant", speak(topic))]).flat(),
  );
}

/** A question, and an answer so long that the anchor comes to lie after the question. */
const ask = (question: string): Arrival[] => [
  say("user", question),
  say("assistant", drawWords(makeRandom(8), 700)),
];

async function openFolded(
  promptAwareEviction: boolean,
  hasStandIns: boolean,
): Promise<{ engine: Engine; show: () => Promise<{ ids: readonly string[]; text: string; front: string }> }> {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const database = folder.file("lcm.db");
  const config = { promptAwareEviction, leafChunkTokens: 900, freshTailCount: 2, maxSweepIterations: 100 };
  const settings = settingsFor(database, {
    ...config,
    leafTargetTokens: 250,
    condensedTargetTokens: 250,
    summaryPrefixTargetTokens: 100_000,
  });
  const engine = await openEngine({ database, thread: false, settings });
  onTestFinished(() => engine.close());
  count = 0;
  await engine.ingest({ session: SESSION, messages: makeHistory() });
  await engine.compact({ conversationId: 1, budgetTokens: 100_000, force: true });
  if (hasStandIns) await engine.maintain({ conversationId: 1, budgetTokens: 100_000 });
  await engine.ingest({ session: SESSION, messages: ask(`What did we say about the ${ASKED}?`) });
  const budgetTokens = hasStandIns ? BUDGETS.withStandIns : BUDGETS.withoutStandIns;
  const show = async () => {
    const context = await engine.assemble({ conversationId: 1, budgetTokens, checkGrammars: true });
    if (context === null) throw new Error("there is no context");
    const archive = new ArchiveView(database, 1);
    expect(findFaults(context, archive)).toEqual([]);
    const summaries = context.items.filter(({ summaryId, depth }) => summaryId !== null && depth === 0);
    const texts = await Promise.all(
      summaries.map(
        async ({ summaryId }) => (await engine.readSummary({ summaryId: summaryId ?? "" }))?.content,
      ),
    );
    return {
      ids: summaries.flatMap(({ summaryId }) => summaryId ?? []),
      text: texts.join("\n"),
      front: `${context.epoch} ${context.fingerprint}`,
    };
  };
  return { engine, show };
}

test.each([false, true])("what was asked about keeps its room (with stand-ins: %s)", async (hasStandIns) => {
  const plain = await (await openFolded(false, hasStandIns)).show();
  expect(plain.text).not.toContain(ASKED);
  const { show } = await openFolded(true, hasStandIns);
  const asked = await show();
  expect(asked.text).toContain(ASKED);
  expect(asked.ids.length).toBeGreaterThan(1);
});

test("the front stays the same until the anchor moves, whatever is asked meanwhile", async () => {
  const { engine, show } = await openFolded(true, false);
  const before = await show();
  await engine.ingest({
    session: SESSION,
    messages: [say("user", "And the violin?"), say("assistant", "Played.")],
  });
  expect(await show()).toEqual(before);
  // A fifth of the budget later the anchor has moved past the new question.
  await engine.ingest({ session: SESSION, messages: [say("assistant", drawWords(makeRandom(9), 700))] });
  const after = await show();
  expect(after.front).not.toBe(before.front);
  expect(after.text).toContain("violin");
});
