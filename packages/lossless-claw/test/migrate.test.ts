/** An archive with everything in it goes to a server and back, through kills, and comes out the same to the byte. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deriveMessage } from "@lossless/core/formats";
import { makeTemporaryFolder } from "@lossless/testkit";
import { runWithCrashes } from "@lossless/testkit/crash.ts";
import { describePostgres } from "@lossless/testkit/postgres-server.ts";
import { makeRandom } from "@lossless/testkit/random.ts";
import { rounds } from "@lossless/testkit/rounds.ts";
import { afterAll, expect, test } from "vitest";
import { openEngine, openStore, resolveSettings } from "../src/index.ts";
import type { Engine } from "../src/index.ts";
import { exportConversations, migrate } from "../src/interchange.ts";

const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());
const PROGRAM = fileURLToPath(new URL("./migrate-program.ts", import.meta.url));
const CONVERSATIONS = 6;
/** With the fork. */
const ALL = CONVERSATIONS + 1;

const sessionOf = (n: number) => ({ key: `agent:main:${n}`, id: `s${n}`, owner: n % 2 ? "main" : "other" });
const say = (n: number, at: number, content: string) => ({
  eventId: `e${at}`,
  message: { role: at % 2 ? "assistant" : "user", content: `${content} ${n} ${at}` },
});

async function withEngine<T>(database: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  const keyFile = folder.file("key");
  writeFileSync(keyFile, `${"42".repeat(32)}\n`, { mode: 0o600 });
  const { settings } = resolveSettings({
    env: {},
    config: {
      databasePath: database,
      redactPatterns: ["hunter\\S+"],
      redactedValues: "seal",
      redactionKeyFile: keyFile,
      largeFileThresholdTokens: 1000,
    },
  });
  const engine = await openEngine({ database, thread: false, settings });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

/** Summaries, large files, sealed values, a revision, a boundary, something hidden and something forgotten. */
async function fill(database: string): Promise<void> {
  await withEngine(database, async (engine) => {
    for (let n = 1; n <= CONVERSATIONS; n++) {
      const session = sessionOf(n);
      const messages = Array.from({ length: 30 }, (_, at) =>
        say(n, at, "words about the orders ".repeat(20)),
      );
      const { conversationId } = await engine.ingest({
        session,
        messages,
        turn: { advancementKey: `turn ${n}` },
      });
      await engine.ingest({ session, messages: [say(n, 30, `the password is hunter2-${n}`)] });
      await engine.ingest({ session, messages: [say(n, 31, `${"a long table,".repeat(2_000)}${n}`)] });
      await engine.ingest({ session, messages: [say(n, 3, "said again")] });
      await engine.compact({ conversationId, budgetTokens: 4_000, force: true });
    }
    const fork = { ...sessionOf(1), key: "agent:main:fork", id: "fork" };
    await engine.fork({ session: fork, parentSessionId: "s1", eventIds: ["e0", "e1"] });
    await engine.ingest({ session: fork, messages: [say(0, 50, "in the fork")] });
    const [last] = (await engine.listMessages({ conversationId: 2, limit: 3, direction: "newest" })).items;
    await engine.forget({ messageIds: [last?.messageId ?? 0], reason: "a test" });
  });
}

async function exportBytes(database: string, name: string): Promise<string> {
  const out = folder.file(name);
  await exportConversations({ database, format: "archive", out, overwrite: true });
  return readFileSync(out, "utf8");
}

describePostgres("migrating", (server) => {
  test("goes to a server and back through kills, goes on after them, and is the same to the byte", async () => {
    const database = folder.file("source.db");
    await fill(database);
    const there = await server.createDatabase();
    const back = folder.file("back.db");
    for (const [seed, [from, to]] of [
      [database, there],
      [there, back],
    ].entries()) {
      const { kills } = await runWithCrashes({
        module: PROGRAM,
        args: [from ?? "", to ?? ""],
        random: makeRandom(seed),
        kills: rounds({ test: 3, soak: 15 }),
      });
      expect(kills).toBeGreaterThan(0);
    }
    const whole = await exportBytes(database, "source.lcmx");
    expect(await exportBytes(there, "there.lcmx")).toBe(whole);
    expect(await exportBytes(back, "back.lcmx")).toBe(whole);
    expect(whole).toContain('"sealed"');
    expect(whole).toContain('"record":"piece"');
    expect(await withEngine(there, (engine) => engine.verify())).toMatchObject({ ok: true });
    const redacted = { messages: CONVERSATIONS, proven: CONVERSATIONS };
    expect(await withEngine(back, (engine) => engine.verify())).toMatchObject({ ok: true, redacted });
  });

  test("brings what was stored since, and refuses what the target has from elsewhere, before it writes", async () => {
    const database = folder.file("grows.db");
    await fill(database);
    const place = { from: { database }, to: { database: await server.createDatabase() } };
    expect(await migrate({ ...place, dryRun: true })).toMatchObject({ conversations: ALL });
    // One of the files was forgotten with its message.
    expect(await migrate(place)).toMatchObject({ conversations: ALL, files: CONVERSATIONS - 1 });
    await withEngine(database, (engine) =>
      engine.ingest({ session: sessionOf(1), messages: [say(1, 90, "later")] }),
    );
    expect(await migrate(place)).toMatchObject({ conversations: 1, presentBefore: ALL - 1 });
    await withEngine(database, async (engine) => {
      const turn = { advancementKey: "another turn", baseTokens: 9_000 };
      await engine.ingest({ session: sessionOf(1), messages: [], turn });
      await engine.labelConversation({ conversationId: 2, name: "the orders" });
      const next = { ...sessionOf(3), id: "s3 after a reset" };
      await engine.ingest({ session: next, messages: [say(3, 200, "anew")] });
      await engine.recordBoundary({ session: sessionOf(4), eventId: "reset", reason: "reset" });
      await engine.ingest({ session: sessionOf(4), messages: [say(4, 200, "anew")] });
    });
    await migrate(place);
    const grown = await exportBytes(database, "grown.lcmx");
    expect(await exportBytes(place.to.database, "followed.lcmx")).toBe(grown);
    expect(await migrate(place)).toMatchObject({ conversations: 0 });
    const other = folder.file("other.db");
    await migrate({ from: place.from, to: { database: other } });
    await withEngine(other, (engine) =>
      engine.ingest({ session: sessionOf(99), messages: [say(99, 1, "new")] }),
    );
    const clash = { from: { database: other }, to: place.to };
    await expect(migrate(clash)).rejects.toThrow(/the target has these conversations already: agent:main:1/);
    const skipped = await migrate({ ...clash, skipExisting: true });
    expect(skipped).toMatchObject({ conversations: 1, messages: 1 });
    expect(skipped.leftOut).toHaveLength(ALL + 1);
  });

  test("goes into an archive with partitions, and says what is not copied", async () => {
    const database = folder.file("spent.db");
    await fill(database);
    const store = await openStore(database, { create: false, derive: deriveMessage });
    const call = { at: 1, conversationId: 1, purpose: "leaf", provider: "p", model: "m" };
    await store.recordSpend({ ...call, inputTokens: 1, outputTokens: 1, durationMs: 1, outcome: "ok" });
    await store.addDebt({ conversationId: 1, budgetTokens: 1_000, now: 1 });
    await store.close();
    const there = `${await server.createDatabase()}&partitions=3`;
    const result = await migrate({ from: { database }, to: { database: there } });
    expect(result).toMatchObject({ conversations: ALL, notCopied: { vectors: 0, modelCalls: 1, debts: 1 } });
    expect(await exportBytes(there, "there.lcmx")).toBe(await exportBytes(database, "here.lcmx"));
  });
});
