/** Messages are indexed a moment after they were stored: nothing may be missed, indexed twice, or keep a forgotten text alive. */
import { DatabaseSync } from "node:sqlite";
import { openEngine } from "lossless-claw";
import type { Engine } from "@lossless/core";
import { makeTemporaryFolder } from "@lossless/testkit/temporary.ts";
import { describe, expect, test } from "vitest";

const session = { key: "agent:main:main", id: "s1", owner: "main" };

const say = (from: number, to: number, word = "pigeon") => ({
  session,
  messages: Array.from({ length: to - from }, (_, i) => ({
    eventId: `e${from + i}`,
    message: { role: "user", content: `${word} number ${from + i}` },
  })),
});

const count = async (engine: Engine, query: string): Promise<number> =>
  (await engine.search({ query, limit: 1 })).total;

/** What the index holds, read beside the engine. */
function countIndexed(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare("SELECT count(*) AS n FROM messages_fts_1_docsize").get() as { n: number };
  database.close();
  return row.n;
}

describe("messages on their way into the index", () => {
  test("are found at once by the engine that stored them, behind a thread as without", async () => {
    for (const thread of [true, false]) {
      using folder = makeTemporaryFolder();
      const engine = await openEngine({ database: folder.file("lcm.db"), thread });
      for (let i = 0; i < 5; i++) {
        await engine.ingest(say(i, i + 1));
        expect(await count(engine, "pigeon")).toBe(i + 1);
        expect((await engine.grep({ pattern: "pigeon", mode: "full_text", limit: 1 })).total).toBe(i + 1);
      }
      await engine.close();
    }
  });

  test("are found by every one of several searches that come at once", async () => {
    using folder = makeTemporaryFolder();
    const engine = await openEngine({ database: folder.file("lcm.db") });
    for (let i = 1; i <= 10; i++) {
      await engine.ingest(say(i - 1, i));
      const counts = await Promise.all([1, 2, 3].map(() => count(engine, "pigeon")));
      expect(counts).toEqual([i, i, i]);
    }
    await engine.close();
  });

  test("are indexed whatever their id is: one may be committed after others that have higher ones", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const first = await openEngine({ database: path, thread: false });
    await first.ingest(say(0, 5));
    await first.close();
    const database = new DatabaseSync(path);
    database.exec(
      "DELETE FROM messages_fts_1 WHERE rowid = 2; INSERT INTO index_pending (message_id) VALUES (2)",
    );
    database.close();
    const engine = await openEngine({ database: path, thread: false });
    expect(await count(engine, "pigeon")).toBe(5);
    expect((await engine.verify()).problems).toEqual([]);
    expect((await engine.status()).index).toEqual({ kind: "ready", messages: 5, pending: 0 });
    await engine.close();
  });

  test("wait in the database when the process dies, are counted for readers and indexed by the next writer", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const first = await openEngine({ database: path, thread: false });
    await first.ingest(say(0, 3));
    // Not closed and not given the time to index, as if it had been killed here.
    const reader = await openEngine({ database: path, thread: false, readOnly: true });
    expect((await reader.status()).index).toEqual({ kind: "ready", messages: 0, pending: 3 });
    expect((await reader.verify()).problems).toEqual([]);
    const unseen = await reader.grep({ pattern: "pigeon", mode: "full_text", limit: 5 });
    expect(unseen).toMatchObject({
      total: 0,
      notes: [{ text: expect.stringContaining("3 newest messages") as string }],
    });
    expect((await reader.grep({ pattern: "pigeon number [12]", mode: "regex", limit: 5 })).total).toBe(2);
    const writer = await openEngine({ database: path, thread: false });
    expect(await count(writer, "pigeon")).toBe(3);
    expect(countIndexed(path)).toBe(3);
    expect(await count(reader, "pigeon")).toBe(3);
    expect((await writer.verify()).problems).toEqual([]);
    // The first one comes to life again and finds its work done.
    await first.ingest(say(3, 4));
    expect(await count(first, "pigeon")).toBe(4);
    expect((await first.verify()).problems).toEqual([]);
    for (const engine of [reader, writer, first]) await engine.close();
    expect(countIndexed(path)).toBe(4);
  });

  test("are indexed without being asked: many at once, and all when the engine closes", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const engine = await openEngine({ database: path, thread: false });
    await engine.ingest(say(0, 2_100));
    expect(countIndexed(path)).toBe(2_100);
    await engine.ingest(say(2_100, 2_105));
    await engine.close();
    expect(countIndexed(path)).toBe(2_105);
  });

  test("go into an index that was made before pieces were merged by sixteens", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const first = await openEngine({ database: path, thread: false });
    await first.ingest(say(0, 3));
    await first.close();
    const readSettings = (): unknown => {
      using database = new DatabaseSync(path);
      return database.prepare("SELECT k, v FROM messages_fts_1_config WHERE k <> 'version' ORDER BY k").all();
    };
    const settings = readSettings();
    expect(settings).toContainEqual({ k: "automerge", v: 16 });
    {
      using database = new DatabaseSync(path);
      database.exec(
        "INSERT INTO messages_fts_1 (messages_fts_1, rank) VALUES ('automerge', 4), ('hashsize', 1048576)",
      );
    }
    const second = await openEngine({ database: path, thread: false });
    await second.ingest(say(3, 6));
    expect(await count(second, "pigeon")).toBe(6);
    await second.close();
    expect(readSettings()).toEqual(settings);
  });

  test("are indexed once when two engines store by turns", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const [left, right] = await Promise.all([
      openEngine({ database: path, thread: false }),
      openEngine({ database: path, thread: false }),
    ]);
    for (let i = 0; i < 40; i++) {
      await (i % 3 === 0 ? left : right).ingest(say(i, i + 1));
      if (i % 7 === 0) await left.flushIndex();
    }
    expect(await count(left, "pigeon")).toBe(40);
    expect(await count(right, "pigeon")).toBe(40);
    expect((await right.verify()).problems).toEqual([]);
    await left.close();
    await right.close();
    expect(countIndexed(path)).toBe(40);
  });

  test("leave no term behind when they are forgotten before they were indexed", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const storing = await openEngine({ database: path, thread: false });
    const { results } = await storing.ingest(say(0, 2, "quetzal"));
    const forgetting = await openEngine({ database: path, thread: false });
    const messageIds = results.map(({ messageId }) => messageId);
    await forgetting.forget({ messageIds, reason: "test" });
    await storing.ingest(say(2, 3));
    expect(await count(storing, "quetzal")).toBe(0);
    expect(await count(storing, "pigeon")).toBe(1);
    expect((await storing.verify()).problems).toEqual([]);
    await storing.close();
    await forgetting.close();
    expect(countIndexed(path)).toBe(1);
  });

  test("do not count when their transaction failed", async () => {
    using folder = makeTemporaryFolder();
    const path = folder.file("lcm.db");
    const engine = await openEngine({ database: path, thread: false });
    await engine.ingest(say(0, 1));
    const database = new DatabaseSync(path);
    database.exec(
      "CREATE TRIGGER refuse BEFORE INSERT ON context_items WHEN NEW.seq > 2 BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    await expect(engine.ingest(say(1, 5, "heron"))).rejects.toThrow();
    database.exec("DROP TRIGGER refuse");
    database.close();
    await engine.ingest(say(10, 12, "stork"));
    expect([await count(engine, "heron"), await count(engine, "stork")]).toEqual([0, 2]);
    expect((await engine.verify()).problems).toEqual([]);
    await engine.close();
  });
});
