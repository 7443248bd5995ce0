/**
 * Contexts of random conversations, for counting those larger than their budget: turns with tools, parallel calls, long results, images and long
 * questions, folded for small windows, shown for budgets from very small to ample. The same seed gives the same contexts.
 */
import { openEngine } from "lossless-claw";
import type { Arrival, AssembledContext } from "@lossless/core";
import { makeClock, makeRandom } from "@lossless/testkit/random.ts";
import type { Random } from "@lossless/testkit/random.ts";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";

const SESSION = { key: "agent:main:random", id: "random", owner: "main" };
const CONVERSATIONS = 32;
/** Zero: not folded yet. In sequence, so that the later folds find summaries of the earlier. */
const FOLDED_FOR = [0, 16_000, 4_000];
const BUDGETS = 30;
const MIN_BUDGET = 150;
const MAX_BUDGET = 40_000;
const WORDS =
  "queue worker retry file error test build change index table order stock crate label frost gate".split(" ");

export interface RandomContexts {
  readonly contexts: number;
  readonly over: number;
  /** Over budget, and more than the newest user message, its open tool group and one line. */
  readonly overForNothing: number;
  readonly worst: string;
}

export async function countOver(): Promise<RandomContexts> {
  let contexts = 0;
  let over = 0;
  let overForNothing = 0;
  let worst = { excess: 0, name: "none" };
  for (let seed = 1; seed <= CONVERSATIONS; seed++) {
    await assembleRandom(seed, (context, budget) => {
      contexts++;
      const excess = context.estimatedTokens - budget;
      if (excess <= 0) return;
      over++;
      if (context.mode === "least" && context.items.every(({ kind }) => kind !== "summary")) return;
      overForNothing++;
      if (excess > worst.excess) worst = { excess, name: `${context.estimatedTokens} for ${budget}` };
    });
  }
  return { contexts, over, overForNothing, worst: worst.name };
}

async function assembleRandom(
  seed: number,
  look: (context: AssembledContext, budget: number) => void,
): Promise<void> {
  using folder = makeTemporaryFolder("lossless-bench-");
  const random = makeRandom(seed);
  const engine = await openEngine({
    database: folder.file("lcm.db"),
    thread: false,
    clock: makeClock(seed),
  });
  try {
    await engine.ingest({ session: SESSION, messages: drawConversation(random) });
    for (const window of FOLDED_FOR) {
      if (window > 0) while ((await engine.maintain({ conversationId: 1, budgetTokens: window })).changed);
      for (let n = 0; n < BUDGETS; n++) {
        const budgetTokens = Math.floor(MIN_BUDGET * (MAX_BUDGET / MIN_BUDGET) ** random.next());
        const context = await engine.assemble({ conversationId: 1, budgetTokens });
        if (context) look(context, budgetTokens);
      }
    }
  } finally {
    await engine.close();
  }
}

function drawConversation(random: Random): Arrival[] {
  const messages: Record<string, unknown>[] = [];
  const turns = 5 + random.below(60);
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: "user", content: drawUser(random) });
    const rounds = random.below(4);
    for (let round = 0; round < rounds; round++) messages.push(...drawRound(random, `${turn}_${round}`));
    // The last turn may still be running.
    if (turn < turns - 1 || random.next() < 0.5)
      messages.push({ role: "assistant", content: drawText(random, 200) });
  }
  return messages.map((message, n) => ({ eventId: `e${n}`, message }));
}

function drawUser(random: Random): unknown {
  const text = drawText(random, random.next() < 0.1 ? 3_000 : 60);
  if (random.next() > 0.1) return text;
  return [
    { type: "text", text },
    {
      type: "image",
      mimeType: "image/png",
      data: Buffer.from(random.bytes(2_000 + random.below(20_000))).toString("base64"),
    },
  ];
}

function drawRound(random: Random, name: string): Record<string, unknown>[] {
  const ids = Array.from({ length: 1 + random.below(3) }, (_, n) => `call_${name}_${n}`);
  const content = ids.map((id) => ({
    type: "toolCall",
    id,
    name: "exec",
    arguments: { command: drawText(random, 12) },
  }));
  const results = ids.map((toolCallId) => ({
    role: "toolResult",
    toolCallId,
    toolName: "exec",
    content: [{ type: "text", text: drawText(random, random.next() < 0.2 ? 4_000 : 150) }],
  }));
  return [{ role: "assistant", content }, ...results];
}

const drawText = (random: Random, maxWords: number): string =>
  Array.from({ length: 1 + random.below(maxWords) }, () => random.pick(WORDS)).join(" ");
