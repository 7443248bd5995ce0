/**
 * What exists only for speed is in force. Each test counts calls, rows or the order of events, never time, and fails when its mechanism is
 * switched off; everything else about it would pass.
 */
import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { syncBuiltinESMExports } from "node:module";
import zlib from "node:zlib";
import { makeTemporaryFolder } from "@lossless/testkit";
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { IngestRequest } from "../../src/index.ts";
import { resolveSettings } from "../../src/index.ts";
import { openEngine } from "lossless-claw";
import { encodeBody } from "../../src/store/body.ts";
import { importTranscript } from "@lossless/interchange";
import { createPreparer } from "../../src/bulk/index.ts";
import { generateSession, openTestEngine } from "@lossless/testkit/session-archive.ts";

const compress = vi.spyOn(zlib, "zstdCompressSync");
const decompress = vi.spyOn(zlib, "zstdDecompressSync");
syncBuiltinESMExports();
beforeEach(() => vi.clearAllMocks());
afterAll(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const session = { key: "agent:main:main", id: "s1", owner: "main" };

/** Long enough to be compressed. */
const say = (n: number) => ({
  session,
  messages: [
    { eventId: `e${n}`, message: { role: "user", content: `message ${n}: ${"lorem ipsum ".repeat(100)}` } },
  ],
});

test("bodies are compressed by the compressor that is kept, not by one made for each", () => {
  const bodyOf = (n: number) => Buffer.from(JSON.stringify(say(n)));
  // The first body of a process makes the compressor and tries it out.
  encodeBody(bodyOf(0));
  compress.mockClear();
  for (let n = 1; n <= 50; n++) encodeBody(bodyOf(n));
  expect(compress).not.toHaveBeenCalled();
  encodeBody(Buffer.alloc(300_000, JSON.stringify(say(1))));
  expect(compress).toHaveBeenCalled();
});

test("the bodies of the context before are not decompressed again", async () => {
  const engine = await openTestEngine();
  for (let n = 0; n < 20; n++) await engine.ingest(say(n));
  const assemble = () => engine.assemble({ conversationId: 1, budgetTokens: 100_000 });
  const first = await assemble();
  expect(decompress.mock.calls.length).toBeGreaterThanOrEqual(20);
  decompress.mockClear();
  expect(await assemble()).toEqual(first);
  expect(decompress).not.toHaveBeenCalled();
  await engine.ingest(say(20));
  await assemble();
  expect(decompress).toHaveBeenCalledOnce();
});

test("turns are indexed together: many of them make one piece of the full-text index", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  // The moment after which what was stored is indexed never comes.
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const engine = await openEngine({ database, thread: false });
  for (let n = 0; n < 30; n++) await engine.ingest(say(n));
  await engine.flushIndex();
  const connection = new DatabaseSync(database, { readOnly: true });
  const pieces = connection.prepare("SELECT count(DISTINCT segid) AS n FROM messages_fts_1_idx").get();
  const indexed = connection.prepare("SELECT count(*) AS n FROM messages_fts_1_docsize").get();
  connection.close();
  expect([pieces, indexed]).toEqual([{ n: 1 }, { n: 30 }]);
  await engine.close();
});

test("a reading call is answered by a thread of its own while a write waits for a lock", async () => {
  using folder = makeTemporaryFolder();
  const database = folder.file("lcm.db");
  const engine = await openEngine({ database, busyLimitMs: 60_000 });
  await engine.ingest(say(0));
  await engine.readMessage({ messageId: 1 });
  // The index of what was just stored may still be written.
  const other = new DatabaseSync(database, { timeout: 60_000 });
  other.exec("BEGIN IMMEDIATE");
  const order: string[] = [];
  const writing = engine.ingest(say(1)).catch(() => undefined);
  void writing.then(() => order.push("write"));
  // A thread that serves both comes to the second call when the first has given up.
  await engine.readMessage({ messageId: 1 });
  order.push("read");
  other.exec("ROLLBACK");
  other.close();
  await writing;
  expect(order).toEqual(["read", "write"]);
  await engine.close();
});

test("an import reads on and prepares batches while one before is being stored", async () => {
  using folder = makeTemporaryFolder();
  const path = folder.file("session.jsonl");
  writeFileSync(path, generateSession(3, 60));
  const engine = await openTestEngine();
  const prepareAhead = createPreparer(resolveSettings({ env: {} }).settings);
  const handed: IngestRequest[] = [];
  const second = Promise.withResolvers<void>();
  const { ingest } = engine;
  engine.ingest = async (request) => {
    handed.push(request);
    if (handed.length === 2) second.resolve();
    // The first batch is stored only when the second has been handed over: without reading on, that is never.
    await second.promise;
    return ingest.call(engine, request);
  };
  const { imported } = await importTranscript({ engine, path, prepareAhead, batchLines: 10 });
  expect(imported).toBeGreaterThan(40);
  expect(handed.length).toBeGreaterThan(3);
  const unprepared = handed.filter(({ messages, prepared }) => messages.length > 0 && prepared === undefined);
  expect(unprepared).toEqual([]);
  expect((await engine.verify()).problems).toEqual([]);
});

test("a regular expression reads no text where blocks of words say that its literal cannot be", async () => {
  using folder = makeTemporaryFolder();
  const engine = await openEngine({ database: folder.file("lcm.db"), thread: false });
  // Two blocks of 512 messages, and a third that is not full and has to be read.
  const messages = Array.from({ length: 1_100 }, (_, n) => say(n).messages).flat();
  await engine.ingest({ session, messages });
  await engine.flushIndex();
  decompress.mockClear();
  const { hits } = await engine.grep({ pattern: "zumzum", mode: "regex", allConversations: true });
  expect(hits).toEqual([]);
  expect(decompress.mock.calls.length).toBeLessThan(2 * 76);
  await engine.close();
});
