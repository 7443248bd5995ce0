/** Windows that the newest user message and an open tool group nearly fill. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";

import { makeTurns, SESSION } from "./conversation.ts";

test("the least that is sent shows a root where there is room, and is above the budget only without one", async () => {
  const folder = makeTemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  onTestFinished(() => engine.close());
  await engine.ingest({ session: SESSION, messages: makeTurns(0, 60, { words: 60, calls: 1 }) });
  while ((await engine.maintain({ conversationId: 1, budgetTokens: 3_000 })).changed);
  const ids = ["call_1", "call_2", "call_3", "call_4"];
  const calls = ids.map((id) => ({ type: "toolCall", id, name: "exec", arguments: { command: "ls" } }));
  const results = ids.map((toolCallId) => ({
    role: "toolResult",
    toolCallId,
    toolName: "exec",
    content: [{ type: "text", text: "a tray of seedlings ".repeat(85) }],
  }));
  const open = [
    { role: "user", content: "Please count these trays: ".concat("fern, moss, heather; ".repeat(400)) },
    { role: "assistant", content: calls },
    ...results,
  ];
  const messages = open.map((message, nth) => ({ eventId: `open-${nth}`, message }));
  await engine.ingest({ session: SESSION, messages });
  const seen = { withRoot: 0, without: 0 };
  for (let budgetTokens = 1_000; budgetTokens < 8_000; budgetTokens += 50) {
    const context = await engine.assemble({ conversationId: 1, budgetTokens });
    if (context?.mode !== "least") continue;
    const hasRoot = context.items.some(({ kind }) => kind === "summary");
    seen[hasRoot ? "withRoot" : "without"]++;
    if (hasRoot) expect(context.estimatedTokens).toBeLessThanOrEqual(budgetTokens);
  }
  expect(seen.withRoot).toBeGreaterThan(3);
  expect(seen.without).toBeGreaterThan(3);
});
