/** A bundle says how the archive is and nothing of what is in it; cleaning takes only what has ended. */
import { resolveSettings } from "@lossless/core";
import { openEngine } from "lossless-claw";
import { listCleanable } from "../../src/repair/clean.ts";
import { applyForget } from "lossless-claw/repair";
import { buildSupportBundle } from "../../src/repair/support.ts";
import { makeTemporaryFolder } from "@lossless/testkit";
import { expect, test } from "vitest";

const say = (eventId: string, content: string, createdAt = 1) => ({
  eventId,
  message: { role: "user", content },
  createdAt,
});

test("a support bundle holds no text of messages, sessions, names or settings", async () => {
  using folder = makeTemporaryFolder();
  const databasePath = folder.file("lcm.db");
  const config = {
    databasePath,
    freshTailCount: 4,
    customInstructions: "zqinstruction",
    ignoreSessionPatterns: ["zqpattern"],
  };
  const { settings, defaults } = resolveSettings({ env: {}, config });
  const engine = await openEngine({ database: databasePath, settings, thread: false });
  const session = { key: "agent:zqagent:zqphone", id: "zqsession", owner: "zqowner" };
  await engine.ingest({
    session,
    messages: Array.from({ length: 60 }, (_, i) => say(`zqevent${i}`, `zqtext number ${i} about the garden`)),
  });
  await engine.compact({ conversationId: 1, budgetTokens: 500, force: true });
  const bundle = await buildSupportBundle({
    engine,
    settings,
    defaults,
    databasePath,
    filesDir: folder.file("lcm-files"),
    version: "1",
  });
  const text = JSON.stringify(bundle);
  expect(text).not.toMatch(/zq|garden/);
  expect(text).not.toContain(folder.path);
  expect(bundle).toMatchObject({ archive: { messages: 60 }, settings: { freshTailCount: 4 } });
  await engine.close();
});

test("cleaning finds ended jobs and old sub-agents only, and forgetting them leaves the rest", async () => {
  using folder = makeTemporaryFolder();
  const databasePath = folder.file("lcm.db");
  const engine = await openEngine({ database: databasePath, thread: false });
  const store = (key: string, id: string, at: number) =>
    engine.ingest({ session: { key, id, owner: "main" }, messages: [say("a", `words of ${id}`, at)] });
  await store("agent:main:main", "s1", 1);
  await store("agent:main:cron:daily", "s2", 1);
  await store("agent:main:cron:daily", "s3", 1);
  await store("agent:main:subagent:x", "s4", 1);
  await store("agent:main:subagent:y", "s5", 5_000);
  const options = { engine, kinds: ["cron", "subagent"] as const, before: 4_000 };
  const found = await listCleanable(options);
  expect(found.map((row) => [row.conversationId, row.kind])).toEqual([
    [2, "cron"],
    [4, "subagent"],
  ]);
  const selection = { conversationIds: found.map((row) => row.conversationId) };
  await applyForget({ engine, databasePath, selection, reason: "a test" });
  expect(await listCleanable(options)).toEqual([]);
  expect((await engine.verify()).problems).toEqual([]);
  expect((await engine.search({ query: "words", limit: 10 })).hits).toHaveLength(3);
  await engine.close();
});
