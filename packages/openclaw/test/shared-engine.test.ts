import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { resolveSettings } from "@lossless/core";
import type { Engine } from "@lossless/core";
import { HANG_LIMIT_MS } from "@lossless/testkit/hang-limit.ts";
import { startFakeEmbedder } from "@lossless/testkit/fake-embedder.ts";
import { writeLongInterruptedArchive } from "@lossless/testkit/older-archive.ts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { HostLlm } from "../src/host/host.ts";
import { leaseEngine, type EngineLease } from "../src/host/shared-engine.ts";

const workerUrl = new URL("../../lossless-claw/src/worker.ts", import.meta.url);

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lossless-shared-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

function lease(config: Record<string, unknown> = {}): EngineLease {
  const { settings } = resolveSettings({ config, configSource: "test", stateDir: folder });
  return leaseEngine({ settings, workerUrl, onEvent: () => undefined });
}

describe("a database that another process holds", () => {
  test("refuses a call while the lock is still held, and takes it afterwards", async () => {
    const one = lease();
    const engine = await one.open();
    const session = { id: "session-1", key: "agent:main:test", owner: "main" };
    const arrival = { session, messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }] };
    const other = new DatabaseSync(join(folder, "lcm.db"));
    other.exec("BEGIN IMMEDIATE");
    await expect(engine.ingest(arrival)).rejects.toMatchObject({ code: "database_busy" });
    other.exec("ROLLBACK");
    other.close();
    expect((await engine.ingest(arrival)).results).toMatchObject([{ outcome: "stored" }]);
    await one.release();
  });
});

describe("vectors", () => {
  const session = { id: "session-1", key: "agent:main:test", owner: "main" };
  const say = (n: number) => ({
    session,
    messages: [{ eventId: `e${n}`, message: { role: "user", content: `The cat sleeps on roof ${n}.` } }],
  });

  const waitForVectors = (engine: Engine): Promise<void> =>
    vi.waitFor(async () => expect(await engine.embedStatus()).toMatchObject({ messages: 1, left: 0 }), {
      timeout: HANG_LIMIT_MS,
    });

  test("are made in the background from the messages that are stored, and serve searches", async () => {
    const server = await startFakeEmbedder();
    const one = lease({ embedding: { baseUrl: `${server.url}/v1`, model: "letters" } });
    const engine = await one.open();
    await engine.ingest(say(1));
    await waitForVectors(engine);
    const { hits } = await engine.grep({ session, pattern: "which feline naps?", mode: "full_text" });
    expect(hits).toMatchObject([{ eventId: "e1", foundBy: ["vector"] }]);
    await one.release();
    await server.close();
  });

  test("are not made beyond the tokens of the day", async () => {
    const server = await startFakeEmbedder();
    const embedding = { baseUrl: `${server.url}/v1`, model: "letters" };
    const one = lease({ embedding, spendMaxTokensPerDay: 1 });
    const engine = await one.open();
    await engine.ingest(say(1));
    await waitForVectors(engine);
    await engine.ingest(say(2));
    // A run of one's own joins the one in the background.
    expect(await engine.embedMessages()).toMatchObject({ kind: "stopped", failure: { failure: "denied" } });
    expect(server.requests).toHaveLength(1);
    await one.release();
    await server.close();
  });
});

describe("an archive of an older version whose upgrade takes long", () => {
  test("is not waited for: a turn is refused, so that it goes to the spool, and stored when the upgrade is done", async () => {
    writeLongInterruptedArchive(join(folder, "lcm.db"), 20_000);
    const one = lease();
    await expect(one.open()).rejects.toMatchObject({
      code: "database_busy",
      message: expect.stringMatching(/is being upgraded to this version \(\d+ %\)$/) as string,
    });
    await one.whenUpgraded();
    const session = { id: "session-1", key: "agent:main:test", owner: "main" };
    const arrival = { session, messages: [{ eventId: "e1", message: { role: "user", content: "hello" } }] };
    expect((await (await one.open()).ingest(arrival)).results).toMatchObject([{ outcome: "stored" }]);
    await one.release();
  });
});

describe("a shared engine", () => {
  // Each engine that is opened starts threads, which read the whole source: what needs none of its own is told of one that is there.
  test("is one for all who lease it with the same settings, closed by the last, and opened again by a lease that was given back", async () => {
    const [first, second, other] = [lease(), lease(), lease({ freshTailCount: 7 })];
    const engine = await first.open();
    expect(await second.open()).toBe(engine);
    // On the same file, under other settings.
    expect(await other.open()).not.toBe(engine);
    await first.release();
    await first.release();
    expect((await engine.status()).messages).toBe(0);
    await second.release();
    await expect(engine.status()).rejects.toThrow(/closed/);
    await other.release();
    expect((await (await first.open()).status()).messages).toBe(0);
    await first.release();
  });

  test("asks the host's own model after the settings' and before the fallbacks", async () => {
    const asked: string[] = [];
    const llm: HostLlm = {
      complete: async ({ model = "the host's" }) => {
        asked.push(model);
        throw new Error("503");
      },
    };
    const config = {
      summaryModel: "a/one",
      fallbackProviders: [{ provider: "b", model: "two" }],
      freshTailCount: 2,
    };
    const { settings } = resolveSettings({ config, configSource: "test", stateDir: folder });
    const one = leaseEngine({ settings, workerUrl, onEvent: () => undefined, llm });
    const engine = await one.open();
    const messages = Array.from({ length: 30 }, (_, at) => ({
      eventId: `e${at}`,
      message: { role: at % 2 === 0 ? "user" : "assistant", content: `locker ${at} is open. `.repeat(40) },
    }));
    const session = { key: "agent:main:main", id: "s1", owner: "main" };
    await engine.ingest({ session, messages });
    const [conversation] = (await engine.listConversations({ limit: 1 })).items;
    await engine.compact({ conversationId: conversation!.conversationId, budgetTokens: 8000, force: true });
    expect(asked.slice(0, 3)).toEqual(["a/one", "the host's", "b/two"]);
    await one.release();
  });

  test("is opened anew after its thread has died, and when its file was removed or replaced", async () => {
    const one = lease();
    const dead = await one.open();
    expect(await one.open()).toBe(dead);
    one.discard();
    const before = await one.open();
    expect(before).not.toBe(dead);
    await dead.close();
    for (const name of await readdir(folder)) if (name.startsWith("lcm.db")) await rm(join(folder, name));
    const after = await one.open();
    expect(after).not.toBe(before);
    expect((await after.status()).messages).toBe(0);
    await one.release();
  });

  test("is opened anew when its log was removed: it would store nothing any more", async () => {
    const one = lease();
    const before = await one.open();
    const messages = [{ eventId: "a", message: { role: "user", content: "hello" } }];
    const session = { key: "agent:main:main", id: "s1", owner: "main" };
    await before.ingest({ session, messages });
    await rm(join(folder, "lcm.db-wal"));
    await expect(before.ingest({ session, messages })).rejects.toMatchObject({ code: "database_replaced" });
    const after = await one.open();
    expect(after).not.toBe(before);
    await after.ingest({ session, messages });
    expect(await after.knownEvents({ sessionId: "s1", eventIds: ["a"] })).toEqual(["a"]);
    await one.release();
  });

  test("is tried again after it could not be opened", async () => {
    const broken = lease({ databasePath: folder });
    await expect(broken.open()).rejects.toThrow();
    await expect(broken.open()).rejects.toThrow();
    await broken.release();
  });
});

test("tasks of one session run one after the other, whoever asks; others do not wait", async () => {
  const [first, second] = [lease(), lease()];
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const slow = first.inOrder("s1", async () => {
    await gate.promise;
    order.push("slow");
  });
  const next = second.inOrder("s1", async () => void order.push("next"));
  await second.inOrder("s2", async () => void order.push("other"));
  gate.resolve();
  await Promise.all([slow, next]);
  expect(order).toEqual(["other", "slow", "next"]);
});

test("a task that fails does not stop the ones behind it", async () => {
  const one = lease();
  await expect(one.inOrder("s1", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await one.inOrder("s1", async () => "yes")).toBe("yes");
});
