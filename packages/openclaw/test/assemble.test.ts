import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { holdRoom } from "../src/assemble/attempt.ts";
import type { AgentMessage, AssembleParams, ContextEngine } from "../src/host/host.ts";
import { ProcessMemory } from "../src/host/process-memory.ts";
import { closeProven, makeEngine } from "./engine-parts.ts";
import { FakeTranscript, SESSION_ID, SESSION_KEY } from "./fake-transcript.ts";

const session = { sessionId: SESSION_ID, sessionKey: SESSION_KEY };
const written = { api: "fake-api", provider: "fake", model: "fake-1" };

let folder: string;
let archive: Engine;
let transcript: FakeTranscript;
let memory: ProcessMemory;
let failure: Error | null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-assemble-"));
  archive = await openEngine({ database: join(folder, "lcm.db"), settings: makeSettings(), thread: false });
  transcript = new FakeTranscript();
  memory = new ProcessMemory();
  failure = null;
});

afterEach(() => closeProven(archive, folder));

function makeSettings() {
  return resolveSettings({ config: {}, configSource: "test", stateDir: folder }).settings;
}

function newEngine(): ContextEngine {
  return makeEngine({
    settings: makeSettings(),
    folder,
    open: async () => {
      if (failure) throw failure;
      return archive;
    },
    transcript,
    memory,
    describeMemory: () => "Ask the memory first.",
  });
}

async function playTurn(text: string, answer = `answer to ${text}`): Promise<void> {
  const engine = newEngine();
  if (transcript.events.length > 0) await engine.bootstrap(session);
  const first = transcript.say("user", text);
  const last = transcript.say("assistant", [{ type: "text", text: answer }], written);
  await engine.commitTurn(transcript.turn(first, last));
}

function ask(tokenBudget: number, fields: Partial<AssembleParams> = {}): AssembleParams {
  return {
    ...session,
    messages: [],
    tokenBudget,
    model: "fake-1",
    runtimeSettings: { model: { provider: "fake", resolved: "fake-1" } },
    ...fields,
  };
}

function textOf(messages: readonly AgentMessage[]): string {
  return JSON.stringify(messages.map((message) => message.content));
}

describe("a budget that changes a little from turn to turn", () => {
  test("does not change the front of the context", async () => {
    for (let turn = 0; turn < 20; turn++) await playTurn(`${turn}`, `answer ${turn} ${"words ".repeat(300)}`);
    const contexts = [];
    for (const budget of [3_000, 2_950, 2_990, 2_900, 3_000]) {
      const engine = newEngine();
      await engine.bootstrap(session);
      const { messages, contextProjection } = await engine.assemble(ask(budget));
      contexts.push({ messages: textOf(messages), epoch: contextProjection?.epoch });
    }
    const [, shrunk, ...later] = contexts;
    expect(shrunk!.epoch).not.toContain("whole");
    expect(later).toEqual([shrunk, shrunk, shrunk]);
  });

  test("is used whole again when it has grown", () => {
    expect(holdRoom(undefined, 3_000)).toBe(3_000);
    expect(holdRoom(3_000, 3_000)).toBe(3_000);
    expect(holdRoom(3_000, 3_200)).toBe(3_000);
    expect(holdRoom(3_000, 4_000)).toBe(4_000);
    expect(holdRoom(3_000, 2_000)).toBe(1_940);
    expect(holdRoom(3_000, 1)).toBe(1);
  });
});

test("a window that the host stated with an earlier turn holds for contexts, too", async () => {
  await playTurn("one");
  const engine = newEngine();
  await engine.bootstrap(session);
  const windows: (number | undefined)[] = [];
  const { assemble } = archive;
  archive.assemble = (request) => {
    windows.push(request.contextWindow);
    return assemble(request);
  };
  await engine.assemble(ask(10_000));
  const first = transcript.say("user", "two");
  const last = transcript.say("assistant", [{ type: "text", text: "answer" }], written);
  await engine.commitTurn({
    ...transcript.turn(first, last),
    runtimeContext: { ...written, modelContextWindow: 200_000 },
  });
  await engine.bootstrap(session);
  await engine.assemble(ask(10_000));
  // Nothing is known of another model.
  await engine.bootstrap(session);
  await engine.assemble(ask(10_000, { model: "fake-2", runtimeSettings: {} }));
  expect(windows).toEqual([undefined, 200_000, undefined]);
});

describe("the first call of an attempt", () => {
  test("answers from the archive, whatever the host hands over", async () => {
    await playTurn("one");
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages, contextProjection } = await engine.assemble(
      ask(10_000, { messages: [{ role: "user", content: "a merged view" }] }),
    );
    expect(messages).toEqual([
      expect.objectContaining({ role: "user", content: "one", timestamp: 1000 }),
      expect.objectContaining({
        role: "assistant",
        content: [{ type: "text", text: "answer to one" }],
        ...written,
        stopReason: "stop",
        usage: expect.objectContaining({ totalTokens: 0 }),
      }),
    ]);
    expect(contextProjection).toMatchObject({ mode: "thread_bootstrap", epoch: expect.any(String) });
  });

  test("is empty for a session that has just begun", async () => {
    expect(await newEngine().assemble(ask(10_000))).toMatchObject({ messages: [], estimatedTokens: 0 });
  });

  test("shows rows that are not stored yet at their place, up to the fence", async () => {
    await playTurn("stored");
    transcript.say("user", "/lcm status");
    transcript.say("assistant", [{ type: "text", text: "fine" }], written);
    transcript.fence = transcript.say("user", "the turn that runs now");
    const { messages } = await newEngine().assemble(ask(10_000));
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(textOf(messages)).toContain("/lcm status");
    expect(textOf(messages)).not.toContain("runs now");
  });

  test("shows each row once that is stored while the cursor is still before it", async () => {
    await playTurn("stored");
    // Outside a turn rows are stored, and the cursor stays.
    const user = { role: "user", content: "outside a turn" };
    transcript.say("user", user.content);
    await newEngine().ingestBatch({ ...session, messages: [user] });
    // A turn that was stored as handed over: its rows in the middle have no ids of the transcript yet.
    const first = transcript.say("user", "use the tool");
    const call = { type: "toolCall", id: "call_1", name: "clock", arguments: {} };
    transcript.say("assistant", [call], written);
    transcript.say("toolResult", [{ type: "text", text: "noon" }], { toolCallId: "call_1" });
    const last = transcript.say("assistant", [{ type: "text", text: "it is twelve" }], written);
    transcript.broken = true;
    await newEngine().commitTurn(transcript.turn(first, last));
    transcript.broken = false;
    transcript.say("user", "not stored");
    const shown = textOf((await newEngine().assemble(ask(10_000))).messages);
    for (const text of ["outside a turn", "use the tool", "call_1", "noon", "it is twelve", "not stored"])
      expect([text, shown.split(text).length - 1]).toEqual([text, 1]);
  });

  test("shows nothing from before a reset that is not stored yet", async () => {
    await playTurn("before");
    transcript.reset("reset");
    transcript.say("user", "after");
    expect(textOf((await newEngine().assemble(ask(10_000))).messages)).toBe('["after"]');
    // The same once the reset and what follows it are stored, and only the cursor is behind.
    await newEngine().ingestBatch({ ...session, messages: [{ role: "user", content: "after" }] });
    transcript.say("user", "later");
    expect(textOf((await newEngine().assemble(ask(10_000))).messages)).toBe('["after","later"]');
  });

  test("passes runtime context on", async () => {
    await playTurn("one");
    const carrier = { role: "user", content: "it is noon", runtimeContextCarrier: true };
    const { messages } = await newEngine().assemble(ask(10_000, { messages: [carrier] }));
    expect(messages.at(-1)).toEqual(carrier);
    expect(messages).toHaveLength(3);
  });

  test("puts pictures back that the host hands over, where there is room", async () => {
    await playTurn("look at this");
    const image = { type: "image", data: "iVBOR", mimeType: "image/png" };
    const handed = {
      role: "user",
      content: [{ type: "text", text: "look at this" }, image],
      timestamp: 1000,
    };
    const { messages } = await newEngine().assemble(ask(10_000, { messages: [handed] }));
    expect(messages[0]!.content).toEqual([{ type: "text", text: "look at this" }, image]);
    expect((await newEngine().assemble(ask(100, { messages: [handed] }))).messages[0]!.content).toBe(
      "look at this",
    );
  });

  test("keeps a long history within the budget, folded or not, in a valid order", async () => {
    for (let turn = 0; turn < 60; turn++) await playTurn(`question ${turn} ${"word ".repeat(120)}`);
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages, estimatedTokens } = await engine.assemble(ask(4000));
    expect(estimatedTokens).toBeLessThanOrEqual(4000);
    expect(textOf(messages)).toContain("question 59");
    const context = await archive.assemble({
      sessionKey: SESSION_KEY,
      budgetTokens: 4000,
      checkGrammars: true,
    });
    expect(context!.grammars).toContainEqual({ provider: "anthropic", violations: [] });
  });

  test("adds a short prompt of its own and the memory plugin's, the same each time", async () => {
    await playTurn("one");
    const additions = [];
    for (const tools of [["lcm_grep"], ["lcm_grep"], []])
      additions.push(
        (await newEngine().assemble(ask(9000, { availableTools: new Set(tools) }))).systemPromptAddition,
      );
    expect(additions[0]).toBe(additions[1]);
    expect(additions[0]).toMatch(/lcm_grep.*\n\nAsk the memory first\.$/s);
    expect(additions[2]).not.toContain("lcm_grep");
  });
});

describe("later calls of an attempt", () => {
  test("give the same messages, although rows were stored and the host hands over ours", async () => {
    await playTurn("one");
    const engine = newEngine();
    await engine.bootstrap(session);
    const first = await engine.assemble(ask(5000, { prompt: "two" }));
    transcript.say("user", "two");
    await newEngine().bootstrap(session);
    const again = await engine.assemble(ask(9000, { messages: first.messages }));
    expect(again.messages).toEqual(first.messages);
    expect((await newEngine().assemble(ask(5000))).messages).not.toEqual(first.messages);
  });

  test("shrink only when what was sent no longer fits beside the overhead", async () => {
    for (let turn = 0; turn < 10; turn++) await playTurn(`question ${turn} ${"word ".repeat(100)}`);
    const engine = newEngine();
    await engine.bootstrap(session);
    const first = await engine.assemble(ask(4000));
    await engine.assemble(ask(10_000));
    expect((await engine.assemble(ask(9000))).messages).toEqual(first.messages);
    const tight = await engine.assemble(ask(7000));
    expect(tight.estimatedTokens).toBeLessThanOrEqual(1000);
    expect(tight.messages).not.toEqual(first.messages);
  });

  test("carry the open turn where the host does not append it itself", async () => {
    await playTurn("one");
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages } = await engine.assemble(ask(5000));
    const open = { role: "user", content: "outside a durable turn" };
    await engine.afterTurn({
      ...session,
      messages: [...messages, open],
      prePromptMessageCount: messages.length,
    });
    expect((await engine.assemble(ask(5000, { messages: [...messages, open] }))).messages.at(-1)).toEqual(
      open,
    );
  });
});

describe("without the archive", () => {
  const call = { type: "toolCall", id: "c1", name: "clock", arguments: {} };
  const history = [
    { role: "user", content: `old ${"word ".repeat(500)}` },
    { role: "assistant", content: [call] },
    { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: "noon" }] },
    { role: "user", content: "new" },
    { role: "assistant", content: [{ type: "text", text: "yes" }] },
  ];

  test("the host's messages are cut to the budget between turns, and it is told", async () => {
    failure = new Error("the disk is gone");
    const engine = newEngine();
    await engine.bootstrap(session);
    const { messages } = await engine.assemble(ask(300, { messages: history }));
    expect(messages).toEqual(history.slice(3));
    expect((await engine.assemble(ask(3000, { messages }))).messages).toEqual(messages);
    expect(memory.outages.map((outage) => outage.part)).toEqual(["archive", "context"]);
    failure = null;
    await newEngine().assemble(ask(300));
    expect(memory.outages.map((outage) => outage.part)).toEqual(["archive"]);
  });

  test("all of them are handed through when they fit", async () => {
    failure = new Error("the disk is gone");
    expect((await newEngine().assemble(ask(9000, { messages: history }))).messages).toEqual(history);
  });

  test("an archive that is behind a transcript that cannot be read is not used", async () => {
    await playTurn("stored");
    transcript.broken = true;
    const engine = newEngine();
    await engine.bootstrap(session);
    expect((await engine.assemble(ask(9000, { messages: history }))).messages).toEqual(history);
    expect(memory.outages[0]?.message).toContain("behind");
  });
});
