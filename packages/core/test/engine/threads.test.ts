/**
 * The engine behind threads does what the table of verbs says: each call one message to the thread that serves it, searches and contexts once,
 * what a reader has to write by the writer, and the same cancellation and errors as without threads.
 */
import { readFileSync } from "node:fs";
import { serialize } from "node:v8";
import { Worker } from "node:worker_threads";
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import type { Complete, CompleteResult, Embed, Engine } from "@lossless/core";
import { VERBS } from "../../src/engine/engine.ts";
import type { ToWorker } from "../../src/engine/thread-messages.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import { describe, expect, onTestFinished, test } from "vitest";
import { longTalk, main, say } from "../recall/archive.ts";

interface OpenOptions {
  readonly thread?: boolean;
  readonly complete?: Complete;
  readonly embed?: Embed;
  readonly settings?: Record<string, unknown>;
}

async function open({ thread = true, complete, embed, settings }: OpenOptions = {}): Promise<Engine> {
  const folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const config = { databasePath: database, ...settings };
  const engine = await openEngine({
    database,
    thread,
    complete,
    embed,
    settings: resolveSettings({ env: {}, config }).settings,
  });
  onTestFinished(async () => {
    await engine.close();
    folder[Symbol.dispose]();
  });
  return engine;
}

/** The verbs that are posted to any thread while some work is done. */
async function listPosted(work: () => Promise<unknown>): Promise<string[]> {
  const posted: string[] = [];
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (this: Worker, message: ToWorker, ...rest): void {
    if (message.kind === "call") posted.push(message.verb);
    post.call(this, message, ...rest);
  };
  try {
    await work();
  } finally {
    Worker.prototype.postMessage = post;
  }
  return posted;
}

const FOLDING = { freshTailCount: 4, leafChunkTokens: 400, leafTargetTokens: 100 };
const ACTIVE = { sessionKey: main.key, owner: main.owner };

describe("behind threads", () => {
  test("a search with a vector runs once, and the writer makes the vector", async () => {
    const embed: Embed = async ({ texts }) => ({
      kind: "vectors",
      vectors: texts.map((text) => Float32Array.of(/kitten|feline/.test(text) ? 1 : 0, 0.1)),
      usage: { inputTokens: texts.length },
    });
    const engine = await open({
      embed,
      settings: { embedding: { baseUrl: "http://127.0.0.1:1", model: "m" } },
    });
    await engine.ingest({
      session: main,
      messages: [say("a", "user", "My kitten sleeps."), say("b", "user", "Rain.")],
    });
    await engine.embedMessages();
    const question = { session: main, pattern: "What does the feline do?", mode: "full_text" } as const;
    const posted = await listPosted(async () => {
      expect(await engine.grep(question)).toMatchObject({ rule: "fused", hits: [{ id: "msg_1" }, {}] });
    });
    expect(posted).toEqual(["flushIndex", "grep", "embedQuestion"]);
    expect(await engine.spend({ by: "purpose" })).toMatchObject([{ key: "embed", calls: 2 }]);
  });

  test("an answer by a model is one call, and the writer keeps the books", async () => {
    const complete: Complete = async () => ({
      kind: "text",
      text: "Three times [msg_1].",
      model: { provider: "p", model: "m" },
      inputTokens: 100,
      outputTokens: 10,
    });
    const engine = await open({ complete });
    await engine.ingest({ session: main, messages: [say("a", "user", "Uploads are retried three times.")] });
    const posted = await listPosted(async () => {
      const answer = await engine.ask({ session: main, prompt: "How often are uploads retried?" });
      expect(answer).toMatchObject({ answeredBy: "model", citedIds: ["msg_1"] });
    });
    expect(posted).toEqual(["flushIndex", "ask", "recordSpend"]);
    expect(await engine.spend({ by: "purpose" })).toMatchObject([{ key: "ask", inputTokens: 100 }]);
  });

  test("what a sub-agent reads is read beside the writes and charged by the writer", async () => {
    const engine = await open();
    const child = { key: "agent:main:subagent:one", id: "child", owner: "main" };
    await engine.ingest({ session: main, messages: [say("a", "user", "The hangar is at gate 9.")] });
    await engine.createGrant({ session: main, holderKey: child.key, tokenCap: 20 });
    const read = (): Promise<unknown> => engine.describe({ session: child, delegated: true, id: "msg_1" });
    expect(await listPosted(read)).toEqual(["describe", "chargeGrant"]);
    const readAll = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await read();
    };
    await expect(readAll()).rejects.toMatchObject({ code: "denied", message: /used up/ });
  });

  test("the reader drops the texts it keeps once messages are forgotten", async () => {
    const engine = await open();
    await engine.ingest({ session: main, messages: [say("a", "user", "The code is 4711.")] });
    const found = await engine.grep({ session: main, pattern: "code is \\d+" });
    expect(found.total).toBe(1);
    const posted = await listPosted(() => engine.forget({ messageIds: [1], reason: "test" }));
    expect(posted).toEqual(["forget", "dropTexts"]);
  });

  test("a context crosses once", async () => {
    const engine = await open();
    const marker = "only-once-4711";
    await engine.ingest({ session: main, messages: [say("a", "user", `Remember ${marker}, please.`)] });
    const context = await engine.assemble({ ...ACTIVE, budgetTokens: 10_000 });
    const bytes = serialize(context).toString("latin1");
    expect(bytes.split(marker)).toHaveLength(2);
  });

  test("errors keep their class, code and next step", async () => {
    for (const thread of [false, true]) {
      const engine = await open({ thread });
      const failing = engine.compact({ conversationId: 99, budgetTokens: 1_000 });
      await expect(failing).rejects.toMatchObject({
        name: "EngineError",
        code: "not_found",
        message: "cannot find conversation 99",
        step: { kind: "list", what: "conversations" },
      });
    }
  });
});

describe.each([false, true])("a caller that cancels (behind a thread: %s)", (thread) => {
  test("no longer waits for a model", async () => {
    const controller = new AbortController();
    const complete: Complete = (_request, signal) =>
      new Promise<CompleteResult>((resolve) => {
        signal.addEventListener("abort", () =>
          resolve({ kind: "failure", failure: "aborted", message: "cancelled" }),
        );
        controller.abort();
      });
    const engine = await open({ thread, complete });
    await engine.ingest({ session: main, messages: [say("a", "user", "Uploads are retried three times.")] });
    const prompt = "How often are uploads retried?";
    expect(await engine.ask({ session: main, prompt, signal: controller.signal })).toMatchObject({
      answeredBy: "passages",
      failure: { errorCode: "DELEGATED_EXPANSION_WAIT_FAILED" },
    });
  });

  test("no longer waits for its turn to fold, and the next one waits for the fold that goes on", async () => {
    const asked = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const complete: Complete = async () => {
      asked.resolve();
      await released.promise;
      return { kind: "failure", failure: "unavailable", message: "no answer" };
    };
    const engine = await open({ thread, complete, settings: FOLDING });
    await engine.ingest({ session: main, messages: longTalk("n", 30) });
    const fold = { ...ACTIVE, budgetTokens: 2_000, force: true };
    let isFolded = false;
    const first = engine.compact(fold).then((result) => {
      isFolded = true;
      return result;
    });
    await asked.promise;
    const controller = new AbortController();
    const second = engine.compact({ ...fold, signal: controller.signal });
    const third = engine.maintain({ ...ACTIVE, budgetTokens: 2_000, signal: controller.signal });
    controller.abort();
    expect(await second).toMatchObject({ compacted: false, reason: "cancelled" });
    expect(await third).toEqual({ changed: false });
    expect(isFolded).toBe(false);
    const fourth = engine.compact(fold).then(() => expect(isFolded).toBe(true));
    released.resolve();
    expect(await first).toMatchObject({ compacted: true });
    await fourth;
  });
});

test("every verb of the table says what it does", () => {
  const source = readFileSync(new URL("../../src/engine/engine.ts", import.meta.url), "utf8");
  const documented = [...source.matchAll(/\*\/\n {2}(\w+): (?:writer|reader|every)\(/g)].map(
    ([, name]) => name,
  );
  expect(documented).toEqual(Object.keys(VERBS));
});
