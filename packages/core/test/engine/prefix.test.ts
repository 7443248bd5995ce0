import { makeClock, makeRandom, makeTemporaryFolder } from "@lossless/testkit";
import { someOf } from "@lossless/testkit/rounds.ts";
import { describe, expect, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { AssembledContext } from "../../src/index.ts";

import { makeTurn, SESSION, settingsFor, START_MS } from "./conversation.ts";

interface Turns {
  readonly turns: number;
  readonly budgetTokens: number;
  readonly upkeep: "never" | "every turn" | "sometimes";
  readonly asks: boolean;
  /** The window folding is done for, where it is another one than the context is made for. */
  readonly foldTokens?: number;
}

/** Plays a conversation and assembles before each answer, as a host does. */
async function play({
  turns,
  budgetTokens,
  upkeep,
  asks,
  foldTokens = budgetTokens,
}: Turns): Promise<AssembledContext[]> {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const settings = settingsFor(database, {
    freshTailCount: 12,
    leafChunkTokens: 3_000,
    leafTargetTokens: 500,
    condensedTargetTokens: 400,
  });
  const engine = await openEngine({ database, thread: false, settings, clock: makeClock(5, START_MS) });
  const random = makeRandom(turns + budgetTokens);
  const contexts: AssembledContext[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const { conversationId } = await engine.ingest({ session: SESSION, messages: makeTurn(turn) });
    if (upkeep === "every turn" || (upkeep === "sometimes" && random.next() < 0.3))
      await engine.maintain({ conversationId, budgetTokens: foldTokens });
    const prompt = asks ? { prompt: `What did we say about question ${random.below(turns)}?` } : {};
    const context = await engine.assemble({ conversationId, budgetTokens, ...prompt });
    if (context) contexts.push(context);
  }
  expect((await engine.verify()).problems).toEqual([]);
  await engine.close();
  return contexts;
}

/** Where the front changed although the epoch did not: the last message is left out, because the next may be joined to it. */
function findBreaks(contexts: readonly AssembledContext[]): string[] {
  const breaks: string[] = [];
  for (const [index, context] of contexts.entries()) {
    const before = contexts[index - 1];
    if (before === undefined || before.epoch !== context.epoch) continue;
    const [old, now] = [before, context].map(({ messages }) =>
      messages.map((message) => JSON.stringify(message)),
    );
    const kept = (old ?? []).slice(0, -1).findIndex((message, at) => message !== now?.[at]);
    if (kept >= 0)
      breaks.push(`turn ${index}: message ${kept} of ${old?.length} changed within epoch ${context.epoch}`);
    if (before.fingerprint !== context.fingerprint && context.mode === "tight")
      breaks.push(`turn ${index}: the fingerprint changed`);
  }
  return breaks;
}

function measurePrefix(contexts: readonly AssembledContext[]): number {
  let share = 0;
  for (const [index, context] of contexts.entries()) {
    const now = JSON.stringify(context.messages);
    const old = JSON.stringify(contexts[index - 1]?.messages ?? []);
    let same = 0;
    while (same < now.length && now[same] === old[same]) same++;
    share += same / now.length;
  }
  return share / contexts.length;
}

describe("between two folds the front of the prompt keeps its bytes", () => {
  test.each<Turns & { share: number }>(
    someOf(
      [
        { turns: 140, budgetTokens: 8_000, upkeep: "never", asks: false, share: 0.8 },
        { turns: 140, budgetTokens: 8_000, upkeep: "every turn", asks: true, share: 0.85 },
        { turns: 120, budgetTokens: 4_000, upkeep: "sometimes", asks: false, share: 0.75 },
        { turns: 160, budgetTokens: 6_000, upkeep: "sometimes", asks: true, foldTokens: 30_000, share: 0.75 },
      ] as const,
      2,
    ),
  )(
    "$turns turns in $budgetTokens tokens, upkeep $upkeep, asks $asks, folded for $foldTokens",
    async ({ share, ...turns }) => {
      const contexts = await play(turns);
      expect(findBreaks(contexts)).toEqual([]);
      expect(measurePrefix(contexts)).toBeGreaterThan(share);
    },
  );
});
