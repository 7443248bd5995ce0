/** Every face of the archive counts the same messages of a conversation, and what is left out of the context has a name. */
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, onTestFinished, test } from "vitest";

import { openEngine } from "lossless-claw";
import type { Engine } from "../../src/index.ts";

import { SESSION, settingsFor } from "./conversation.ts";

async function open(): Promise<Engine> {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database, thread: false, settings: settingsFor(database) });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  return engine;
}

const say = (n: number, text = `message ${n} `.repeat(40)) => ({
  eventId: `e${n}`,
  message: { role: n % 2 === 0 ? "user" : "assistant", content: text, timestamp: 1 + n },
});

async function check(engine: Engine): Promise<object | undefined> {
  const { conversation, folding } = await engine.status({ sessionKey: SESSION.key });
  const conversationId = conversation?.conversationId ?? 0;
  const [counts] = await engine.countMessages({ conversationIds: [conversationId] });
  const context = await engine.assemble({ conversationId, budgetTokens: 4_000 });
  expect(counts?.shownMessages).toBe(folding?.contextMessages);
  expect(counts?.shownMessages).toBe(context?.shownMessages);
  const { messages = 0, hiddenMessages = 0, shownMessages = 0, beforeBoundary = 0 } = counts ?? {};
  expect(messages).toBe(shownMessages + hiddenMessages + beforeBoundary);
  expect(messages + (counts?.revisions ?? 0)).toBe(conversation?.messages);
  return counts;
}

test("hidden messages, revisions and what lies before a boundary, folded or not", async () => {
  const engine = await open();
  await engine.ingest({
    session: SESSION,
    messages: [
      ...Array.from({ length: 60 }, (_, n) => say(n)),
      { ...say(60, "a heartbeat"), hidden: ["heartbeat"] },
      { ...say(61, "a line"), hidden: ["meta", "branch"] },
    ],
  });
  await engine.ingest({ session: SESSION, messages: [say(3, "said differently")] });
  const hidden = { heartbeat: 1, meta: 1, branch: 1, unplaced: 0, forgotten: 0, pending: 0 };
  const whole = {
    messages: 62,
    revisions: 1,
    shownMessages: 60,
    hiddenMessages: 2,
    hidden,
    beforeBoundary: 0,
  };
  expect(await check(engine)).toMatchObject(whole);
  await engine.compact({ sessionKey: SESSION.key, budgetTokens: 3_000, force: true });
  expect(await check(engine)).toMatchObject(whole);
  await engine.recordBoundary({ session: SESSION, eventId: "new", reason: "new" });
  await engine.ingest({ session: SESSION, messages: [say(70), say(71)] });
  const after = (await check(engine)) as { shownMessages: number; beforeBoundary: number };
  expect(after).toMatchObject({ messages: 64, revisions: 1, hiddenMessages: 2 });
  expect(after.beforeBoundary).toBeGreaterThan(0);
  expect(await engine.countMessages({ conversationIds: [1, 99], owner: "nobody" })).toEqual([]);
});

test("the shares of the storage add up to the file and its large files", async () => {
  const engine = await open();
  const empty = await engine.measureStorage();
  expect(empty).toMatchObject({ handedInBytes: 0, all: { share: null } });
  await engine.ingest({
    session: SESSION,
    messages: [
      ...Array.from({ length: 400 }, (_, n) => say(n)),
      say(400, "a long log line\n".repeat(20_000)),
    ],
  });
  await engine.compact({ sessionKey: SESSION.key, budgetTokens: 3_000, force: true });
  const { all, handedInBytes, ...kinds } = await engine.measureStorage();
  const sum = Object.values(kinds).reduce((bytes, kind) => bytes + kind.bytes, 0);
  expect(all).toEqual({ bytes: sum, share: sum / handedInBytes });
  for (const [name, { bytes, share }] of Object.entries(kinds)) {
    expect([name, bytes > 0, share]).toEqual([name, true, bytes / handedInBytes]);
  }
});
