import { openEngine, resolveSettings } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

const session = { key: "agent:main:test", id: "session-1", owner: "main" };

/** Eighty short turns with one bulky tool result near the beginning. */
function conversation() {
  const messages = Array.from({ length: 80 }, (_, i) => ({
    eventId: `u${i}`,
    message: { role: i % 2 ? "assistant" : "user", content: `turn ${i} about the greenhouse` },
  }));
  const call = {
    role: "assistant",
    content: [{ type: "toolCall", id: "call_1", name: "exec", arguments: { command: "cat boiler.log" } }],
  };
  const output = Array.from(
    { length: 900 },
    (_, i) => `line ${i}: boiler at ${40 + (i % 17)} degrees, valve ${i % 5}`,
  ).join("\n");
  const result = {
    role: "toolResult",
    toolCallId: "call_1",
    toolName: "exec",
    content: [{ type: "text", text: output }],
  };
  messages.splice(
    4,
    0,
    { eventId: "call", message: call as never },
    { eventId: "result", message: result as never },
  );
  return messages;
}

async function assembleWith(config: Record<string, unknown>, extra: { prompt?: string } = {}) {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const { settings } = resolveSettings({ env: {}, config: { databasePath: database, ...config } });
  const engine = await openEngine({ database, settings, thread: false });
  try {
    await engine.ingest({ session, messages: conversation() });
    // Assembling never writes, so the cue finds what has been indexed by then.
    await engine.settleIndex();
    const context = await engine.assemble({ conversationId: 1, budgetTokens: 60_000, ...extra });
    expect(context?.items.reduce((sum, item) => sum + item.messages, 0)).toBe(82);
    return context;
  } finally {
    await engine.close();
  }
}

test("stubLargeToolPayloads shows old bulky results as stubs that can be opened, and says how large they are", async () => {
  const plain = await assembleWith({});
  const stubbed = await assembleWith({ stubLargeToolPayloads: true });
  expect(plain?.items.filter((item) => item.kind === "stub")).toEqual([]);
  const stub = stubbed?.items.find((item) => item.kind === "stub");
  expect(stub?.ids).toEqual(["msg_6"]);
  expect(JSON.stringify(stubbed?.messages)).toMatch(
    /about \d{4,5} tokens, left out here.*lcm_describe\(id=\\"msg_6\\"\)/,
  );
  expect(stubbed?.estimatedTokens ?? 0).toBeLessThan((plain?.estimatedTokens ?? 0) / 2);
});

test("maxAssemblyTokenBudget caps what any caller asks for", async () => {
  const context = await assembleWith({ maxAssemblyTokenBudget: 2_000 });
  expect(context?.budgetTokens).toBe(2_000);
  expect(context?.estimatedTokens).toBeLessThanOrEqual(2_000);
});

test("a recall cue stands last, only with a prompt, and can be switched off", async () => {
  const last = (context: Awaited<ReturnType<typeof assembleWith>>) =>
    JSON.stringify(context?.messages.at(-1));
  const prompt = "boiler valve degrees";
  expect(last(await assembleWith({}, { prompt }))).toContain("<recall");
  expect(last(await assembleWith({}))).not.toContain("<recall");
  expect(last(await assembleWith({ recallCue: false }, { prompt }))).not.toContain("<recall");
});
