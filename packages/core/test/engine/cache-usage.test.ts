import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";

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

const answer = (usage: object | undefined, text = "Done.") => ({
  role: "assistant",
  content: [{ type: "text", text }],
  usage,
});

const readCache = async (engine: Engine) =>
  (await engine.status({ sessionKey: SESSION.key })).folding?.cache ?? null;

const ingest = (engine: Engine, messages: Parameters<Engine["ingest"]>[0]["messages"]) =>
  engine.ingest({ session: SESSION, messages });

/** One row of an answer that is written in several. */
const split = (n: number) =>
  answer({ input_tokens: 3, cache_read_input_tokens: 500, cache_creation_input_tokens: 0 }, `row ${n}`);

describe("what a host reports about its provider's prompt cache", () => {
  test.each([
    ["pi and OpenClaw", { input: 100, output: 7, cacheRead: 800, cacheWrite: 100 }, 1_000, 800],
    [
      "Claude Code",
      { input_tokens: 4, output_tokens: 7, cache_read_input_tokens: 900, cache_creation_input_tokens: 96 },
      1_000,
      900,
    ],
    [
      "OpenAI",
      { prompt_tokens: 1_000, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 640 } },
      1_000,
      640,
    ],
    ["a first request, which finds nothing cached", { input: 10, cacheRead: 0, cacheWrite: 990 }, 1_000, 0],
  ])("is counted as %s writes it", async (_, usage, promptTokens, cachedTokens) => {
    const engine = await open();
    await ingest(engine, [
      { eventId: "u", message: { role: "user", content: "Go on." } },
      { eventId: "a", message: answer(usage) },
    ]);
    expect(await readCache(engine)).toEqual({ requests: 1, promptTokens, cachedTokens });
  });

  test("adds up over turns, and counts no message twice", async () => {
    const engine = await open();
    const turn = (n: number) => ({
      eventId: `a${n}`,
      message: answer({ input: 10, cacheRead: 100 * n, cacheWrite: 0 }),
    });
    await ingest(engine, [turn(1)]);
    await ingest(engine, [turn(1), turn(2)]);
    // The same event in other words is a revision, not another request.
    await ingest(engine, [
      { eventId: "a2", message: answer({ input: 10, cacheRead: 200 }, "Done, I think.") },
    ]);
    expect(await readCache(engine)).toEqual({ requests: 2, promptTokens: 320, cachedTokens: 300 });
  });

  test("counts once an answer that is written in several rows", async () => {
    const engine = await open();
    const usage = { input_tokens: 3, cache_read_input_tokens: 500, cache_creation_input_tokens: 0 };
    await ingest(
      engine,
      ["one", "two", "three"].map((text) => ({ eventId: text, message: answer(usage, text) })),
    );
    expect(await readCache(engine)).toEqual({ requests: 1, promptTokens: 503, cachedTokens: 500 });
  });

  test.each([
    [
      "the host names it",
      (n: number) => ({ type: "assistant", uuid: `row-${n}`, message: { id: "msg_01", ...split(n) } }),
    ],
    ["nobody names it", split],
  ])("counts it once when its rows come in two batches, and each batch twice; %s", async (_, row) => {
    const engine = await open();
    const [one, two, three] = [1, 2, 3].map((n) => ({ eventId: `e${n}`, message: row(n) }));
    if (!one || !two || !three) throw new Error("no rows");
    const user = { eventId: "result", message: { role: "user", content: "a result in between" } };
    for (const batch of [[one], [one], [two, user], [one, two, user, three], [three]])
      await ingest(engine, batch);
    expect(await readCache(engine)).toEqual({ requests: 1, promptTokens: 503, cachedTokens: 500 });
  });

  test("counts two answers of equal reports when the host names them", async () => {
    const engine = await open();
    const named = (n: number) => ({ type: "assistant", message: { id: `msg_0${n}`, ...split(n) } });
    for (const n of [1, 2]) await ingest(engine, [{ eventId: `e${n}`, message: named(n) }]);
    expect(await readCache(engine)).toEqual({ requests: 2, promptTokens: 1_006, cachedTokens: 1_000 });
  });

  test.each([
    ["no usage", undefined],
    ["a usage that says nothing of a cache", { input: 100, output: 7 }],
    ["a usage of nothing", { input: 0, cacheRead: 0, cacheWrite: 0 }],
    ["numbers that are none", { input: 100, cacheRead: "many" }],
  ])("is not counted from %s", async (_, usage) => {
    const engine = await open();
    await ingest(engine, [{ eventId: "a", message: answer(usage) }]);
    expect(await readCache(engine)).toBeNull();
  });
});
